"""Create, read, change and delete single items, wherever their shards are."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Generic

from dynashard.entity import Entity, Handling, ItemKey, handling_of, revision_in
from dynashard.errors import (
    AlreadyExistsError,
    ConditionFailedError,
    InvalidQueryError,
    InvalidValueError,
    NotFoundError,
    OutcomeUnknownError,
    RevisionMismatchError,
    TransactionRefusedError,
    WriteContendedError,
)
from dynashard.repository.batch import LIVENESS, Reading
from dynashard.repository.batches import Batches
from dynashard.repository.changes import Changes, check_changes, fields_after, sum_refused
from dynashard.repository.conditions import exists_already, is_live
from dynashard.repository.items import E, KeyLike
from dynashard.repository.late import ensure_home
from dynashard.repository.operation import read_operation, write_operation
from dynashard.repository.store import Store
from dynashard.repository.transaction import Companion, Create, Delete, Put, Step, Update
from dynashard.repository.writes import Kind, Write
from dynashard.routing import rule_of

_RACES: Final = 8
"""How often a read-then-write starts again because another writer came between."""


@dataclass(frozen=True, slots=True)
class Written(Generic[E]):
    """A stored item, and whether its key had no live item before."""

    item: E
    created: bool


class Repository(Batches[E]):
    """The items of one entity. Safe to share between threads.

    Costs are for items up to 1 KB (writes) and 4 KB (reads), larger ones in proportion, plus what each index
    that the item stands in costs to write. Every method raises `EngineError` or a subclass if DynamoDB refuses or
    cannot be reached, and `InvalidKeyError` for key fields that cannot be.

    While the shard count of a logical partition changes, an item whose home changes costs more: one that is created,
    4 write units; one that has moved, 1 round trip more, and what that reads or writes. An item that does not come to
    rest in time, because others write or move it, raises `TransactionConflictError`: try again.

    With random placement nothing but `create` knows an item's shard. Everything else first looks into all of them:
    a get for each, in 1 round trip for 100. `create` looks into none, so a key that is created twice may be stored
    twice; readers see one of the two, and `delete` takes both away.
    """

    transact: ClassVar[Callable[[Store, Sequence[Step], Companion | None], list[Entity | None]]]
    """Does transactions, whose steps are prepared by repositories; the package sets it."""

    @write_operation
    def create(self, item: E, *, handling: str | None = None) -> E:
        """Store an item under a key that has no live item.

        Args:
            item: the item.
            handling: how to go about a lost answer, see `Handling`; the entity's own if None.

        Returns:
            The item as stored: stamped, and with its revision.

        Raises:
            AlreadyExistsError: a live item has the key.
            InvalidValueError, ItemTooLargeError: before anything is sent.
            OutcomeUnknownError: no answer came, and nothing stored proves anything; so for every write.

        Cost: 1 write unit, 1 round trip; guarded, 1 read unit and 1 round trip more; exactly once, 2 write units.
        """
        level = self._level(handling)
        if level is Handling.EXACTLY_ONCE:
            stored: E = self._once(Create(item))
            return stored
        write = self._put_write(Kind.CREATE, item, created=None)
        if level is Handling.GUARDED and self._read(item, Reading(consistent=True)) is not None:
            # After a lost answer an item that stands in the way proves nothing; before the first request it does.
            raise exists_already(self._name(item))
        self._do(write, item)
        return self._stored(write)

    @property
    def can_create_with(self) -> bool:
        """Whether `create_with` can be used: items have one home, and no attachments."""
        return rule_of(self._entity).fixed and not self._entity.attachments

    @write_operation
    def create_with(self, item: E, beside: Companion) -> E:
        """Store an item under a key that has no live item, together with an action on another table.

        Args:
            item: the item.
            beside: the action.

        Raises:
            ConditionFailedError: the condition of the action fails, with the item that was met there; nothing was done,
                and as long as it fails nothing will be.
            OutcomeUnknownError: as of `create`, with the item's key.

        Cost: 2 write units and those of the action, twice what it costs alone; 1 round trip. As much if it is refused.
        """
        try:
            stored: E = self._once(Create(item), beside)
        except OutcomeUnknownError as unknown:
            unknown.key = self._key_named(item)
            raise
        return stored

    def confirm_created(self, key: KeyLike, revision: str, shards: int) -> bool:
        """Whether readers find what a create stored by a shard count, unless it was changed or deleted since.

        It is brought home if it is not there; see `late.ensure_home`.

        Cost: none if its place is the same under the count in force; else 1 read unit, and what bringing it home costs.
        """
        return ensure_home(self._store, self._entity, self._entity.key_of(key), revision, shards)

    @read_operation
    def find(self, key: KeyLike, *, consistent: bool = False, include: Sequence[str] = ()) -> E | None:
        """The live item with this key, or None.

        Args:
            key: the item's key.
            consistent: see every write that was acknowledged before.
            include: attachments to bring along; others are left unset.

        Raises:
            InvalidQueryError: a field to include is not an attachment.

        Cost: 0.5 read units, 1 if consistent; 1 round trip. With `include`, 1 round trip more, and what reading the
        fields costs.
        """
        if include:
            return self._find_including(key, include, consistent=consistent)
        item = self._read(key, Reading(consistent))
        return None if item is None else self._entity.decode(item)

    def get(self, key: KeyLike, *, consistent: bool = False, include: Sequence[str] = ()) -> E:
        """The live item with this key; takes the arguments of `find`, and raises as it.

        Raises:
            NotFoundError: there is none.

        Cost: as `find`.
        """
        item = self.find(key, consistent=consistent, include=include)
        if item is None:
            raise NotFoundError(f"{self._name(key)} does not exist")
        return item

    @read_operation
    def exists(self, key: KeyLike, *, consistent: bool = False) -> bool:
        """Whether a live item has this key.

        Cost: as `find`: DynamoDB bills the whole item.
        """
        return self._read(key, Reading(consistent, LIVENESS)) is not None

    def replace(self, item: E, *, if_match: str | None = None, handling: str | None = None) -> E:
        """Store an item, whether or not its key had one.

        Args:
            item: the whole new item.
            if_match: store it only if the live item is at this revision.
            handling: how to go about a lost answer, see `Handling`; the entity's own if None.

        Returns:
            The item as stored.

        Raises:
            RevisionMismatchError: the live item is at another revision, or there is none.
            InvalidValueError, ItemTooLargeError: before anything is written.

        Cost: 1 write unit, 1 round trip; with a creation stamp and an item that was not read from the store, 1 read
        unit and 1 round trip more, so that the stamp is kept. Guarded, 1 read unit and 1 round trip more; exactly once,
        that and 1 write unit more.
        """
        return self.put(item, if_match=if_match, handling=handling).item

    @write_operation
    def put(self, item: E, *, if_match: str | None = None, handling: str | None = None) -> Written[E]:
        """As `replace`, and say whether the key was free.

        If no answer came, and what is stored proves that it was done, `created` is False.
        """
        level = self._level(handling)
        if level is not Handling.PLAIN or (self._entity.created_fields and item.revision is None):
            return self._put_over_what_is_read(item, if_match, once=level is Handling.EXACTLY_ONCE)
        kind = Kind.UPSERT if if_match is None else Kind.CHANGE
        write = self._put_write(kind, item, created=self._created(item), if_match=if_match)
        done = self._do(write, item)
        free = kind is Kind.UPSERT and not done.proved and not is_live(done.attributes, write.now)
        return Written(self._stored(write), free)

    @write_operation
    def update(
        self,
        key: KeyLike,
        *,
        set: Mapping[str, Any] | None = None,  # noqa: A002 - DynamoDB's own word for it
        remove: Collection[str] = (),
        add: Mapping[str, Any] | None = None,
        if_match: str | None = None,
        handling: str | None = None,
    ) -> E:
        """Change some fields of a live item.

        Values pass the fields' own validators, and then those of the whole entity, if it has any.

        Args:
            key: the item's key.
            set: new values by field.
            remove: fields to empty.
            add: numbers to add to numbers, sets to add to sets. Added once: a request that may have been done is not
                sent again, unless it names the revision that it changes.
            if_match: change it only if it is at this revision.
            handling: how to go about a lost answer, see `Handling`; the entity's own if None.

        Returns:
            The changed item; if its answer was lost and what is stored proves that it was done, the item as found.

        Raises:
            NotFoundError: no live item has the key.
            RevisionMismatchError: it is at another revision than `if_match`; or it was read first, and other writers
                came between each time.
            InvalidValueError: a field does not take its value, DynamoDB not a sum, or the entity not the whole.

        Cost: 1 write unit, 1 round trip. The item is read first, for 1 read unit and 1 round trip more, if an index
        key also needs fields that are not named here, if the entity has validators of the whole, or if something is
        added to a field that has bounds.
        """
        entity = self._entity
        changes = check_changes(entity, set or {}, remove=remove, add=add or {})
        item_key = entity.key_of(key)
        level = self._level(handling)
        if level is Handling.EXACTLY_ONCE:
            # A read afterwards could fail, or find what others have written since: the answer would not be true.
            step = Update(entity.model, key, set=set, remove=remove, add=add, if_match=if_match, returns=True)
            updated: E = self._once(step)
            return updated
        known = {name: self._key_fields(key)[name] for name in entity.key_fields}
        known |= changes.set
        if level is Handling.PLAIN and not self._reads_first(changes, known):
            return self._apply(item_key, key, changes, known, if_match)
        for _ in range(_RACES):
            current = self.get(key, consistent=True)
            revision = current.revision
            self._require(if_match, revision, key)
            after = fields_after(entity, current, changes)
            try:
                return self._apply(item_key, key, changes, after, revision)
            except RevisionMismatchError:
                if if_match is not None:
                    raise
        raise RevisionMismatchError(f"{self._name(key)} changes too often to be updated; try again later")

    @write_operation
    def delete(self, key: KeyLike, *, if_match: str | None = None, handling: str | None = None) -> None:
        """Delete a live item.

        Args:
            key: the item's key.
            if_match: delete it only if it is at this revision.
            handling: how to go about a lost answer, see `Handling`; the entity's own if None.

        Raises:
            NotFoundError: no live item has the key.
            RevisionMismatchError: it is at another revision than `if_match`, or there is none.

        Cost: 1 write unit, 1 round trip; guarded, 1 read unit and 1 round trip more; exactly once, 2 write units.
        """
        level = self._level(handling)
        if level is Handling.EXACTLY_ONCE:
            self._once(Delete(self._entity.model, key, if_match=if_match))
            return
        if level is Handling.GUARDED and if_match is None:
            self._delete_what_is_read(key)
            return
        if level is Handling.GUARDED:
            current = self._read(key, Reading(consistent=True))
            self._require(if_match, revision_in(current) if current else None, key)
        write = Write(Kind.CHANGE, self._entity.key_of(key), "DeleteItem", self._store.now(), if_match=if_match)
        self._do(write, key)

    def _find_including(self, key: KeyLike, include: Sequence[str], *, consistent: bool) -> E | None:
        del key, consistent
        raise InvalidQueryError(f"{self._entity.name} has no attachment {include[0]}", field="include")

    def _level(self, handling: str | None) -> Handling:
        return handling_of(handling, self._entity.handling)

    def _once(self, step: Create | Put | Update | Delete, beside: Companion | None = None) -> Any:
        """Do a step as a transaction with a token, which settles what became of it; what it stored, if a whole item."""
        try:
            [stored] = Repository.transact(self._store, [step], beside)
        except TransactionRefusedError as refused:
            raise refused.cause if refused.cause is not None else refused from None
        return stored

    def _delete_what_is_read(self, key: KeyLike) -> None:
        """Delete the item that stands there now, whatever others write meanwhile."""
        item_key = self._entity.key_of(key)
        for _ in range(_RACES):
            current = self._read(key, Reading(consistent=True))
            if current is None:
                raise NotFoundError(f"{self._name(key)} does not exist")
            write = Write(
                Kind.CHANGE, item_key, "DeleteItem", self._store.now(), if_match=revision_in(current), guarded=True
            )
            try:
                self._write(write, key)
            except ConditionFailedError as failed:
                if not is_live(failed.item, write.now):
                    raise self._refusal(failed, key, replace(write, if_match=None)) from None
                continue
            return
        raise WriteContendedError(f"{self._name(key)} changes too often to be deleted; try again later")

    def _put_over_what_is_read(self, item: E, if_match: str | None, *, once: bool = False) -> Written[E]:
        for _ in range(_RACES):
            current = self._read(item, Reading(consistent=True))
            revision = revision_in(current) if current else None
            self._require(if_match, revision, item)
            try:
                if once:
                    step = Create(item) if current is None else Put(item, if_match=revision)
                    return Written(self._once(step), created=current is None)
                write = self._put_over(item, current)
                self._write(write, item)
                return Written(self._stored(write), created=current is None)
            except (ConditionFailedError, AlreadyExistsError, RevisionMismatchError):
                continue
        raise RevisionMismatchError(f"{self._name(item)} changes too often to be replaced; try again later")

    def _apply(
        self, item_key: ItemKey, key: KeyLike, changes: Changes, after: Mapping[str, Any], if_match: str | None
    ) -> E:
        write = self._update_write(item_key, changes, after, if_match)
        try:
            done = self._do(write, key)
        except InvalidValueError as refused:
            raise self._sum_refused(refused, key, changes) from None
        return self._entity.decode(done.attributes or {})

    def _sum_refused(self, refused: InvalidValueError, key: KeyLike, changes: Changes) -> InvalidValueError:
        """DynamoDB's refusal of a sum, with the field at fault. Cost: as `find`."""
        return sum_refused(self._entity, self.find(key, consistent=True), changes, refused)
