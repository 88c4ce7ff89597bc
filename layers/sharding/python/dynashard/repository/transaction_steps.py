"""From the steps of a transaction to what they write, whatever stored partition key that ends up at."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from pydantic.fields import FieldInfo

from dynashard.entity import Entity, EntityDefinition, ItemKey, revision_in
from dynashard.errors import InvalidQueryError, InvalidValueError
from dynashard.repository.batch import Reading
from dynashard.repository.changes import Changes, added_to, check_changes, fields_after
from dynashard.repository.conditions import Condition, absent, absent_or_matching, live_or_none, unmarked
from dynashard.repository.evidence import lineage
from dynashard.repository.items import KeyLike
from dynashard.repository.repository import Repository
from dynashard.repository.transaction import Check, Create, Delete, Put, Step, Update
from dynashard.repository.writes import Kind, Write
from dynashard.routing import rule_of
from dynashard.schema import REV, TYPE

CHECK: Final = "ConditionCheck"
"""The operation of a step that changes nothing."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a step does.

    Attributes:
        write: what it does where its item lives.
        alone: the condition where one place tells everything.
        over: the condition where only a live item is to be met, and nothing is no answer yet.
        born: gives what it puts where nothing lives, at the same revision; None if it puts nothing there.
        creates: it is nothing but `born`.
        fresh: it was made of what was read, and is made again if that is not so any more.
        accepts_absent: it is done where no item lives: a check for that, or a delete that ignores it.
        item: what an update stores that was made of what was read.
    """

    write: Write
    alone: Condition
    over: Condition
    born: Callable[[], Write] | None = None
    creates: bool = False
    fresh: bool = False
    accepts_absent: bool = False
    item: Entity | None = None


class Steps(Repository[Any]):
    """Prepares the steps of a transaction that concern one entity."""

    def key_of(self, step: Step) -> ItemKey:
        """The key of a step's item.

        Raises:
            InvalidKeyError: a field cannot stand in a key.
            InvalidQueryError: the entity's items have no home, or parts that a transaction would leave behind.
        """
        if not rule_of(self.entity).fixed:
            raise InvalidQueryError(
                f"{self.entity.name} places its items at random: a transaction cannot tell where they are"
            )
        if self.entity.attachments and isinstance(step, Put | Delete):
            raise InvalidQueryError(
                f"{self.entity.name} has attachments, whose pieces are stored beside the item: put and delete "
                "it by itself"
            )
        return self.entity.key_of(like(step))

    def name(self, step: Step) -> str:
        """The item of a step, as messages name it."""
        return self._name(like(step))

    def stored(self, prepared: Prepared) -> Entity | None:
        """The item that a put has stored, or an update that returns it."""
        return self._stored(prepared.write) if prepared.write.item is not None else prepared.item

    def prepare(self, step: Step) -> Prepared:
        """What a step does.

        Raises:
            NotFoundError, RevisionMismatchError: it was read first, and is not what the step asks for.
            InvalidKeyError, InvalidValueError, ItemTooLargeError: the step cannot be.

        Cost: none; 1 read unit for those that `Repository` reads first.
        """
        if isinstance(step, Create):
            return _creation(self._put_write(Kind.CREATE, step.item, created=None))
        if isinstance(step, Put):
            return self._put_step(step)
        if isinstance(step, Update):
            prepared = self._update_step(step)
            return prepared if step.returns else replace(prepared, item=None)
        return self._delete_step(step) if isinstance(step, Delete) else self._check_step(step)

    def refuse_sum(self, step: Step, refused: InvalidValueError) -> InvalidValueError:
        """DynamoDB's refusal of what a step adds, with the field at fault. Cost: 1 read unit, 1 round trip."""
        if not isinstance(step, Update):
            return refused
        changes = check_changes(self.entity, step.set or {}, remove=step.remove, add=step.add or {})
        return self._sum_refused(refused, step.key, changes)

    def _delete_step(self, step: Delete) -> Prepared:
        key, now = self.entity.key_of(step.key), self._store.now()
        write = Write(Kind.CHANGE, key, "DeleteItem", now, if_match=step.if_match)
        if step.missing == "refuse":
            return _change(write)
        return _change(write, absent_or_matching(now, if_match=step.if_match), accepts_absent=True)

    def _check_step(self, step: Check) -> Prepared:
        key, now = self.entity.key_of(step.key), self._store.now()
        if step.revision is None:
            return _change(Write(Kind.CREATE, key, CHECK, now), absent(now), accepts_absent=True)
        return _change(Write(Kind.CHANGE, key, CHECK, now, if_match=step.revision))

    def _put_step(self, step: Put) -> Prepared:
        item, if_match = step.item, step.if_match
        if not self.entity.created_fields or item.revision is not None:
            kind = Kind.UPSERT if if_match is None else Kind.CHANGE
            write = self._put_write(kind, item, created=self._created(item), if_match=if_match)
            if if_match is not None:
                return _change(write)
            return Prepared(write, unmarked(), write.changing(), born=lambda: write)
        current = self._read(item, Reading(consistent=True))
        revision = revision_in(current) if current else None
        self._require(if_match, revision, item)
        write = self._put_over(item, current)
        return replace(_creation(write) if current is None else _change(write), fresh=True)

    def _update_step(self, step: Update) -> Prepared:
        entity, key = self.entity, self.entity.key_of(step.key)
        changes = check_changes(entity, step.set or {}, remove=step.remove, add=step.add or {})
        known = {name: self._key_fields(step.key)[name] for name in entity.key_fields} | dict(changes.set)
        if step.missing == "create":
            return self._addition(step, key, changes, known)
        if not step.returns and not self._reads_first(changes, known):
            return _change(self._update_write(key, changes, known, step.if_match))
        current = self.get(step.key, consistent=True)
        self._require(step.if_match, current.revision, step.key)
        return self._change_of(key, current, changes)

    def _addition(self, step: Update, key: ItemKey, changes: Changes, known: Mapping[str, Any]) -> Prepared:
        """An update that makes its item where there is none."""
        entity = self.entity
        if changes.set or not changes.add or step.if_match is not None:
            raise InvalidValueError(f"{self._name(step.key)}: what may be missing can only be added to")
        _require_made(entity, known.keys() | changes.add.keys())
        if self._reads_first(changes, known) or not _starts_empty(entity, changes):
            current = self.find(step.key, consistent=True)
            if current is None:
                return replace(_creation(self._made(changes, known)), fresh=True)
            return self._change_of(key, current, changes)
        write = self._update_write(key, changes, known, None)
        write = replace(write, kind=Kind.UPSERT, options=self._making(write, known))
        return Prepared(
            write,
            live_or_none(write.now, not_by=write.revision),
            write.changing(),
            born=lambda: self._made(changes, known, write.revision),
        )

    def _change_of(self, key: ItemKey, current: Entity, changes: Changes) -> Prepared:
        """An update of the item that was read."""
        entity = self.entity
        stamp = datetime.fromtimestamp(self._store.runtime.clock(), UTC)
        after = {**fields_after(entity, current, changes), **dict.fromkeys(entity.updated_fields, stamp)}
        write = self._update_write(key, changes, after, current.revision, stamp=stamp)
        stored = {REV: {"S": write.revision}, **lineage(current.revision), **entity.encode(after)}
        return replace(_change(write), fresh=True, item=entity.decode(stored))

    def _made(self, changes: Changes, known: Mapping[str, Any], revision: str | None = None) -> Write:
        """The item that adding makes, as a put."""
        fields = self.entity.model.model_fields
        starts = {name: None if fields[name].is_required() else _default(fields[name]) for name in changes.add}
        values = {**known, **{name: added_to(starts[name], value) for name, value in changes.add.items()}}
        self.entity.assignment.check_whole(values)
        write = self._put_write(Kind.CREATE, self.entity.model(**values), created=None)
        if revision is None:
            return write
        return replace(write, item={**(write.item or {}), REV: {"S": revision}}, revision=revision)

    def _making(self, write: Write, known: Mapping[str, Any]) -> dict[str, Any]:
        """The options of an update that writes, besides its changes, what a new item needs."""
        entity, store = self.entity, self._store
        fixed = {TYPE: {"S": entity.name}, **entity.encode(known)}
        for index in entity.indexes.values():
            if not index.fields & entity.updated_fields:
                fixed |= store.router.index_attributes(entity, index, write.key, known)
        stamp = datetime.fromtimestamp(store.runtime.clock(), UTC)
        first = entity.encode(dict.fromkeys(entity.created_fields, stamp))
        alias = {name: f"k{at}" for at, name in enumerate([*fixed, *first])}
        terms = [f"#{alias[name]} = :{alias[name]}" for name in fixed]
        terms += [f"#{alias[name]} = if_not_exists(#{alias[name]}, :{alias[name]})" for name in first]
        names, values = write.options["ExpressionAttributeNames"], write.options["ExpressionAttributeValues"]
        return {
            "UpdateExpression": write.options["UpdateExpression"].replace("SET ", f"SET {', '.join(terms)}, ", 1),
            "ExpressionAttributeNames": {**names, **{f"#{alias[name]}": name for name in alias}},
            "ExpressionAttributeValues": {
                **values,
                **{f":{alias[name]}": value for name, value in {**fixed, **first}.items()},
            },
        }


def like(step: Step) -> KeyLike:
    """What names the item of a step."""
    return step.item if isinstance(step, Create | Put) else step.key


def entity_of(step: Step) -> type[Entity]:
    """The entity that a step concerns."""
    return type(step.item) if isinstance(step, Create | Put) else step.model


def _creation(write: Write) -> Prepared:
    return Prepared(write, write.creating(), write.creating(), born=lambda: write, creates=True)


def _change(write: Write, condition: Condition | None = None, *, accepts_absent: bool = False) -> Prepared:
    condition = condition or write.changing()
    return Prepared(write, condition, condition, accepts_absent=accepts_absent)


def _default(field: FieldInfo) -> Any:
    return field.get_default(call_default_factory=True, validated_data={})


def _require_made(entity: EntityDefinition[Any], given: Collection[str]) -> None:
    """Refuse to make an item of less than its entity needs."""
    for name, field in entity.model.model_fields.items():
        if field.is_required() and name not in given:
            raise InvalidValueError(f"{entity.name} cannot be made without {name}: give it a default", field=name)


def _starts_empty(entity: EntityDefinition[Any], changes: Changes) -> bool:
    """Whether adding to an item that is not there makes the same as adding to one that is made first."""
    known = frozenset(entity.key_fields) | entity.server_fields
    for name, field in entity.model.model_fields.items():
        if name in changes.add:
            if not field.is_required() and _default(field):
                return False
        elif name not in known and field.default_factory not in (None, set, frozenset):
            return False
    settled = frozenset(entity.key_fields) | entity.updated_fields | entity.optional
    return all(index.fields <= settled for index in entity.indexes.values())
