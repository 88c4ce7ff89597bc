"""Prepares what the steps of a transaction write, independent of the stored partition keys."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from msgspec import structs
from pydantic.fields import FieldInfo

from dynashard.entity import Entity, EntityDefinition, definition, revision_in
from dynashard.errors import InvalidKeyError, InvalidQueryError, InvalidValueError
from dynashard.repository.conditions import absent_or_matching, live_or_none
from dynashard.repository.evidence import lineage
from dynashard.repository.item_access import ItemAccess
from dynashard.repository.key_names import key_named, name_of
from dynashard.repository.projection import Reading
from dynashard.repository.replacement import objects_read
from dynashard.repository.reservations import NOTHING, Reserving, expiry_stored, fields_stored, reserving_of
from dynashard.repository.store import KeyLike, Store
from dynashard.repository.updates import FieldUpdates, added_to, applied, check_updates
from dynashard.repository.write import CHECK, Kind, Write
from dynashard.repository.write_builder import WriteBuilder
from dynashard.schema import REV, TYPE
from dynashard.transactions.bounds import Bound, bounds_of, condition_of, refusal_of
from dynashard.transactions.steps import Check, CheckStored, Create, Delete, Put, Step, Update
from dynashard.transport.interface import Wire


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a step does.

    Attributes:
        write: what it does. A create and an upsert put an item if no live one is found.
        initial: returns the put, at the same revision, of the item that an update creates; None for other steps.
        from_read: it depends on an item that was read, and is prepared again if that has changed.
        accepts_absent: it succeeds if there is no live item: a check for that, or a delete that ignores it.
        item: what an update stores that returns it.
        reserving: which unique values it takes and leaves.
        bounds: what sums must keep to.
    """

    write: Write
    initial: Callable[[], Write] | None = None
    from_read: bool = False
    accepts_absent: bool = False
    item: Entity | None = None
    reserving: Reserving = NOTHING
    bounds: tuple[Bound, ...] = ()

    @property
    def creates(self) -> bool:
        """Whether it can do nothing but put an item that is not there."""
        return self.write.kind is Kind.CREATE and self.write.item is not None

    def creation(self) -> Write:
        """Return the put of a create or an upsert."""
        return self.initial() if self.initial else self.write.creation()


class StepWrites:
    """Prepares what a step of a transaction writes; `InvalidQueryError` if its entity cannot take part."""

    def __init__(self, store: Store, step: Step | CheckStored) -> None:
        model: type[Entity]
        like: KeyLike
        if isinstance(step, CheckStored):
            model, like = step.entity.model, {}
        else:
            model, like = (type(step.item), step.item) if isinstance(step, Create | Put) else (step.model, step.key)
        self.entity: EntityDefinition[Any] = definition(model)
        if not self.entity.rule.fixed:
            raise InvalidQueryError(
                f"{self.entity.name} places its items at random, so a transaction does not know where they are"
            )
        if self.entity.attachments and isinstance(step, Put | Delete):
            raise InvalidQueryError(
                f"{self.entity.name} has attachments, whose pieces are stored outside the item: put and delete "
                "it by itself"
            )
        self.key = step.key if isinstance(step, CheckStored) else self.entity.key_of(like)
        self._like = like
        self._step = step
        self._store = store
        self._items: ItemAccess[Any] = ItemAccess(store, model)
        self._builder: WriteBuilder[Any] = WriteBuilder(store, self.entity)

    @property
    def name(self) -> str:
        """The name of the step's item in messages."""
        return name_of(self.entity, self._like)

    @property
    def named(self) -> dict[str, str | int]:
        """The key of the step's item as errors list it."""
        return key_named(self.entity, self._like)

    def stored(self, write: Write) -> Entity:
        """Return the item that a put has stored."""
        item: Entity = self._builder.item_of(write)
        return item

    def sum_refused(self, refused: InvalidValueError) -> InvalidValueError:
        """Return DynamoDB's refusal of what the step adds, with the field at fault. Cost: a consistent read."""
        step = self._step
        return self._items.sum_refused(refused, step.key, self._updates(step)) if isinstance(step, Update) else refused

    def require_decodable(self) -> None:
        """Raise `UndecodableItemError` if the item that the step adds to does not fit. Cost: a consistent read."""
        if isinstance(self._step, Update) and self._step.add:
            self._items.require_decodable(self._step.key)

    def prepare(self, *, reads: bool = False) -> Prepared:
        """Prepare the step, reading its item first if `Repository` would, or if it `reads` in any case."""
        step = self._step
        if isinstance(step, Create):
            return self._storing(Prepared(self._builder.put(Kind.CREATE, step.item, created=None)), None)
        if isinstance(step, Put):
            return self._put_step(step, reads=reads or (bool(self.entity.unique) and step.over is None))
        if isinstance(step, Update):
            return self._update_step(step, reads=reads)
        if isinstance(step, Delete):
            return self._delete_step(step)
        return self._check_step(step)

    def _check_step(self, step: Check | CheckStored) -> Prepared:
        kind = Kind.CREATE if step.revision is None else Kind.ALTER
        write = Write(kind, self.key, CHECK, self._store.now(), if_match=step.revision)
        reserving = step.reserving if isinstance(step, CheckStored) else NOTHING
        return Prepared(write, accepts_absent=step.revision is None, reserving=reserving)

    def _delete_step(self, step: Delete) -> Prepared:
        if self.entity.unique:
            return self._delete_of_stored(step)
        now = self._store.now()
        delete = Write(Kind.ALTER, self.key, "DeleteItem", now, if_match=step.if_match)
        if step.missing == "refuse":
            return Prepared(delete)
        return Prepared(
            structs.replace(delete, condition=absent_or_matching(now, if_match=step.if_match)), accepts_absent=True
        )

    def _reserving(
        self, prepared: Prepared, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
    ) -> Prepared:
        """Add what a step takes and leaves, by the fields of its item before it and after it."""
        if not self.entity.unique:
            return prepared
        return replace(prepared, reserving=reserving_of(self.entity, before, after))

    def _storing(self, prepared: Prepared, before: Mapping[str, Any] | None) -> Prepared:
        """Add what a put takes and leaves, by the fields of its item as readers will get them."""
        return self._reserving(prepared, before, self._builder.item_of(prepared.write).__dict__)

    def _delete_of_stored(self, step: Delete) -> Prepared:
        """A delete of the item that was read, whose unique values it leaves."""
        now, current = self._store.now(), self._items.read(step.key, Reading(consistent=True))
        if current is None and step.missing == "ignore":
            return Prepared(Write(Kind.CREATE, self.key, CHECK, now), from_read=True, accepts_absent=True)
        current = self._items.read_live(step.key, step.if_match) if current is None else current
        self._items.require(step.if_match, current, step.key)
        write = Write(Kind.ALTER, self.key, "DeleteItem", now, if_match=revision_in(current))
        return self._reserving(Prepared(write, from_read=True), fields_stored(self.entity, current), None)

    def _updates(self, step: Update) -> FieldUpdates:
        return check_updates(self.entity, step.set or {}, remove=step.remove, add=step.add or {})

    def _put_step(self, step: Put, *, reads: bool) -> Prepared:
        if step.over is not None:
            return self._storing(Prepared(self._builder.put_over(step.item, step.over)), step.over.__dict__)
        if not reads and (not self.entity.created_fields or step.item.revision is not None):
            return Prepared(self._builder.put_unread(step.item, step.if_match))
        current = self._items.read(step.item, Reading(consistent=True))
        self._items.require(step.if_match, current, step.item)
        prepared = Prepared(self._builder.put_over_stored(step.item, current), from_read=True)
        before = None if current is None or not self.entity.unique else fields_stored(self.entity, current)
        return self._storing(prepared, before)

    def _update_step(self, step: Update, *, reads: bool) -> Prepared:
        updates = self._updates(step)
        known = self._builder.known(step.key, updates)
        bounds = bounds_of(self.entity, updates.add, step.at_least, step.at_most)
        if step.missing == "create":
            return self._addition(step, updates, known, bounds, reads=reads)
        reads = reads or step.returns or not self.entity.reserving.isdisjoint(updates.fields)
        if not reads and not self._builder.reads_first(updates, known):
            return self._bounded(self._builder.update(self.key, updates, known, step.if_match), bounds)
        return self._update_of(step, self._items.read_live(step.key, step.if_match), updates)

    def _bounded(self, write: Write, bounds: tuple[Bound, ...], initial: Callable[[], Write] | None = None) -> Prepared:
        if bounds:
            kept = condition_of(self.entity, bounds)
            whole = None if write.condition is None else write.condition & kept
            write = structs.replace(write, bounds=kept, condition=whole)
        return Prepared(write, initial=initial, bounds=bounds)

    def _addition(
        self,
        step: Update,
        updates: FieldUpdates,
        known: Mapping[str, Any],
        bounds: tuple[Bound, ...],
        *,
        reads: bool = False,
    ) -> Prepared:
        """An update that creates its item if there is none."""
        entity = self.entity
        if updates.set.keys() - {entity.expires} or not updates.add or step.if_match is not None:
            raise InvalidValueError(
                f"{self.name}: an item that may be missing can only be added to, and its field of expiry be set"
            )
        for name, field in entity.model.model_fields.items():
            if field.is_required() and name not in {*known, *updates.add}:
                raise InvalidValueError(
                    f"{entity.name} cannot be created without {name}: give it a default", field=name
                )
        self._require_readable_key(known)
        reads = reads or step.returns or bool(entity.unique)
        if reads or self._builder.reads_first(updates, known) or not _starts_empty(entity, updates):
            current = self._items.read(step.key, Reading(consistent=True))
            if current is None:
                require_bounds(self.name, bounds, self._starts(updates))
                return self._storing(Prepared(self._initial_put(updates, known), from_read=True), None)
            return self._update_of(step, current, updates)
        stamp = self._store.stamp()
        fixed = {TYPE: {"S": entity.name}, **entity.versions.stored, **entity.encode(known)}
        for index in entity.indexes.values():
            if not index.fields & entity.updated_fields:
                fixed |= self._store.router.index_attributes(entity, index, self.key, known)
        first = entity.encode(dict.fromkeys(entity.created_fields, stamp))
        write = self._builder.update(self.key, updates, known, None, fixed, stamp=stamp, first=first)
        write = structs.replace(write, kind=Kind.UPSERT)
        condition = write.on_version(live_or_none(write.now, not_by=write.revision))
        write = structs.replace(write, condition=condition)
        return self._bounded(write, bounds, lambda: self._initial_put(updates, known, write.revision))

    def _require_readable_key(self, known: Mapping[str, Any]) -> None:
        """Refuse to create an item whose key is in another form than readers will get it, so that none accepts it."""
        entity = self.entity
        given = {name: known[name] for name in entity.key_fields}
        for name, value in given.items():
            try:
                read = entity.assignment.check(name, value)
            except InvalidValueError:
                # Another version may know this value.
                continue
            if entity.key_of({**given, name: read}) != self.key:
                raise InvalidKeyError(f"{self.name}: {name} would be read as {read!r}; send it so", field=name)

    def _update_of(self, step: Update, found: Wire, updates: FieldUpdates) -> Prepared:
        """An update of the item that was read."""
        entity, item = self.entity, None
        current = entity.decode(found)
        require_bounds(self.name, bounds_of(entity, updates.add, step.at_least, step.at_most), current.__dict__)
        stamp = self._store.stamp()
        fields, written = applied(entity, current, updates)
        after, before = {**fields, **dict.fromkeys(entity.updated_fields, stamp)}, objects_read(entity, found, current)
        write = self._builder.update(self.key, written, after, current.revision, stamp=stamp, before=before)
        if step.returns:
            item = entity.decode(
                {
                    TYPE: {"S": entity.name},
                    REV: {"S": write.revision},
                    **entity.versions.stored,
                    **lineage(current.revision),
                    **entity.encode(after),
                }
            )
        prepared = Prepared(write, from_read=True, item=item)
        if not entity.unique:
            return prepared
        expires = expiry_stored(entity, found)
        # An update of other fields leaves it as it is stored.
        kept = {} if entity.expires in written.fields else expires
        return self._reserving(prepared, {**current.__dict__, **expires}, {**after, **kept})

    def _starts(self, updates: FieldUpdates) -> dict[str, Any]:
        """What a missing item has before something is added to it."""
        fields = self.entity.model.model_fields
        return {name: None if fields[name].is_required() else _default(fields[name]) for name in updates.add}

    def _initial_put(self, updates: FieldUpdates, known: Mapping[str, Any], revision: str | None = None) -> Write:
        """The put of the item that adding creates."""
        starts = self._starts(updates)
        values = {**known, **{name: added_to(starts[name], value) for name, value in updates.add.items()}}
        self.entity.assignment.check_whole(values)
        write = self._builder.put(Kind.CREATE, self.entity.model(**values), created=None)
        if revision is None:
            return write
        return structs.replace(write, item={**(write.item or {}), REV: {"S": revision}}, revision=revision)


def require_bounds(name: str, bounds: Sequence[Bound], values: Mapping[str, Any]) -> None:
    """Raise `ExhaustedError` if adding to an item with these fields would not keep to the bounds."""
    if refused := refusal_of(name, bounds, values):
        raise refused


def _default(field: FieldInfo) -> Any:
    return field.get_default(call_default_factory=True, validated_data={})


def _starts_empty(entity: EntityDefinition[Any], updates: FieldUpdates) -> bool:
    """Whether adding to a missing item has the same result as creating the item with its defaults and then adding."""
    known = frozenset(entity.key_fields) | entity.server_fields
    for name, field in entity.model.model_fields.items():
        if name in updates.add:
            if not field.is_required() and _default(field):
                return False
        elif name not in known and field.default_factory not in (None, set, frozenset):
            return False
    settled = frozenset(entity.key_fields) | entity.updated_fields | entity.optional
    return all(index.fields <= settled for index in entity.indexes.values())
