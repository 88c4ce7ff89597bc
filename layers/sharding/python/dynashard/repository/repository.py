"""Create, read, update and delete items, one or many at a time, wherever their shards are."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple

from dynashard.entity import EntityDefinition, WriteGuarantee, definition, guarantee_of, revision_in
from dynashard.errors import (
    AlreadyExistsError,
    ConditionFailedError,
    InvalidQueryError,
    InvalidValueError,
    OutcomeUnknownError,
    RevisionMismatchError,
    WriteContendedError,
)
from dynashard.repository.batch import LIVENESS, Reading
from dynashard.repository.batch_item_writer import BatchItemWriter
from dynashard.repository.batches import Batches
from dynashard.repository.conditions import exists_already, is_live
from dynashard.repository.item_access import ItemAccess
from dynashard.repository.key_names import key_named, name_of, not_found
from dynashard.repository.late import ensure_home
from dynashard.repository.projection import Part, projection
from dynashard.repository.replacement import objects_read, revision_read
from dynashard.repository.store import Companion, E, KeyLike, Store, read_operation, write_operation
from dynashard.repository.updates import FieldUpdates, check_updates, fields_after
from dynashard.repository.write import Kind, Write
from dynashard.repository.write_builder import WriteBuilder
from dynashard.schema import PK, SK

_RACES: Final = 8
"""How often a read-then-write starts again because another writer came between."""


class Written(NamedTuple, Generic[E]):
    """A stored item, and whether its key had no live item before."""

    item: E
    created: bool


class Repository(Generic[E]):
    """The items of one entity. Safe to share between threads.

    Arguments: `key` is an item or the fields of its key. With `if_match`, a write is done only if the live item is at
    this revision. `handling` names the write guarantee, see `WriteGuarantee`; None means the entity's own.

    Every method raises `EngineError` or a subclass if DynamoDB refuses or cannot be reached, and `InvalidKeyError` for
    fields that cannot form a key. Every write raises `OutcomeUnknownError` if no answer came and nothing stored proves
    the outcome; one that stores an item raises `InvalidValueError` and `ItemTooLargeError` before anything is written.

    Costs are for items up to 1 KB (writes) and 4 KB (reads), larger ones in proportion, plus what each index entry of
    the item costs to write. While the shard count of a logical partition changes, an item whose home changes costs
    more: a create 4 write units, and an item that has moved 1 round trip more, with what that reads or writes. An item
    that is still being written or moved after the last retry raises `TransactionConflictError`: try again.

    With random placement only `create` knows an item's shard. Everything else first looks into all of them: a get for
    each, in 1 round trip for 100. `create` looks into none, so a key that is created twice may be stored twice; readers
    see one of the two, and `delete` deletes both.

    Attributes:
        items: reads stored items and sends their writes.
        builder: makes the writes.
        batches: reads and writes many items at a time.
    """

    def __init__(self, store: Store, model: type[E]) -> None:
        self.entity: EntityDefinition[E] = definition(model)
        self.items = ItemAccess(store, model)
        self.builder = WriteBuilder(store, self.entity)
        self.batches = Batches(self.items, BatchItemWriter(store, self.items, self.builder))
        self._store = store

    def check(self, item: E, *, timely: bool = True) -> None:
        """Raise the `InputError` that storing this item would raise before anything is sent. Costs nothing.

        Args:
            item: the item.
            timely: whether the time of its key must have come, for an entity whose placement is `epochs`. False for an
                item that is stored later, when it has.
        """
        self.builder.check(item, timely=timely)

    @write_operation
    def create(self, item: E, /, *, handling: str | None = None) -> E:
        """Store an item under a key that has no live item, and return it as stored, with its times and its revision.

        Raises `AlreadyExistsError` if a live item has the key.

        Cost: 1 write unit, 1 round trip; guarded, 1 read unit and 1 round trip more; exactly once, 2 write units.
        """
        level = self._level(handling)
        if level is WriteGuarantee.EXACTLY_ONCE:
            return self._store.exactly_once.create(self._store, item)
        write = self.builder.put(Kind.CREATE, item, created=None)
        if level is WriteGuarantee.GUARDED and self.items.read(item, Reading(consistent=True)) is not None:
            # After a lost answer a stored item proves nothing; before the first request it does.
            raise exists_already(name_of(self.entity, item))
        self.items.do(write, item)
        return self.builder.item_of(write)

    @property
    def can_create_with(self) -> bool:
        """Whether `create_with` can be used: items have one home, and no attachments."""
        return self.entity.rule.fixed and not self.entity.attachments

    @write_operation
    def create_with(self, item: E, companion: Companion) -> E:
        """Store an item under a key that has no live item, in one transaction with an action on another table.

        Raises:
            ConditionFailedError: the condition of the action fails, with the item that is stored there; nothing was
                done, and as long as it fails nothing will be.
            OutcomeUnknownError: with the item's key.

        Cost: 2 write units and those of the action, twice what it costs alone; 1 round trip. As much if it is refused.
        """
        try:
            return self._store.exactly_once.create(self._store, item, companion)
        except OutcomeUnknownError as unknown:
            unknown.key = key_named(self.entity, item)
            raise

    def confirm_created(self, key: KeyLike, revision: str, shards: int) -> bool:
        """Whether readers find what a create stored, unless it was changed or deleted since; see `ensure_home`."""
        return ensure_home(self._store, self.entity, self.entity.key_of(key), revision, shards)

    @read_operation
    def find(self, key: KeyLike, /, *, consistent: bool = False, include: Sequence[str] = ()) -> E | None:
        """Return the live item with this key, or None.

        A `consistent` read sees every write that was acknowledged before. Attachments are left unset, except those to
        `include`.

        Raises `InvalidQueryError` if a field to include is not an attachment.

        Cost: 0.5 read units, 1 if consistent; 1 round trip. With `include`, 1 round trip more, and what reading the
        attachments costs.
        """
        if include:
            raise InvalidQueryError(f"{self.entity.name} has no attachment {include[0]}", field="include")
        item = self.items.read(key, Reading(consistent))
        return None if item is None else self.entity.decode(item)

    def get(self, key: KeyLike, /, *, consistent: bool = False, include: Sequence[str] = ()) -> E:
        """Return what `find` returns, at its cost; raises `NotFoundError` if there is no live item."""
        item = self.find(key, consistent=consistent, include=include)
        if item is None:
            raise not_found(self.entity, key)
        return item

    @read_operation
    def exists(self, key: KeyLike, /, *, consistent: bool = False) -> bool:
        """Whether a live item has this key. Costs what `find` costs: DynamoDB bills the whole item."""
        return self.items.read(key, Reading(consistent, LIVENESS)) is not None

    @read_operation
    def part(self, key: KeyLike, /, *, fields: Sequence[str], consistent: bool = False) -> Part:
        """Return some fields of the live item with this key; nothing else of it is sent or decoded.

        Raises:
            NotFoundError: no live item has the key.
            InvalidQueryError: a field is unknown, or an attachment.

        Cost: what `find` costs, because DynamoDB bills the whole item.
        """
        stored = self.items.read(key, projection(self.entity, fields, consistent=consistent))
        if stored is None:
            raise not_found(self.entity, key)
        return Part(self.entity.part(stored, fields), revision_in(stored))

    def replace(
        self, item: E, /, *, if_match: str | None = None, handling: str | None = None, over: E | None = None
    ) -> E:
        """Do what `put` does, and return only the item as stored."""
        return self.put(item, if_match=if_match, handling=handling, over=over).item

    @write_operation
    def put(
        self, item: E, /, *, if_match: str | None = None, handling: str | None = None, over: E | None = None
    ) -> Written[E]:
        """Store an item, whether or not its key had one, and return it as stored, and whether the key was free.

        What the live item has besides the declared attributes, and in its objects besides the declared members, is
        kept. If the item was made from a stored one, pass that as `over`, as it was read: then the live item must be at
        its revision, and only what differs is written.

        If no answer came, and what is stored proves that it was done, `created` is False.

        Raises:
            RevisionMismatchError: the live item is at another revision than `if_match` or that of `over`, or there is
                none.
            InvalidQueryError: `over` was never stored, or both are given.

        Cost: 1 write unit, 1 round trip; 1 more if an expired item has the key. With `created_at()` and an item that
        was not read from the store, 1 read unit and 1 round trip more, so that the time is kept. Guarded, 1 read unit
        and 1 round trip more; exactly once, that and 1 write unit more. If a stored object has members that are not
        declared, or lacks declared ones, 1 write unit, 1 read unit and 2 round trips more.
        """
        level = self._level(handling)
        if over is not None:
            revision_read(over, if_match)
            if level is WriteGuarantee.EXACTLY_ONCE:
                return Written(self._store.exactly_once.put(self._store, item, if_match=None, over=over), created=False)
            changing = self.builder.put_over(item, over)
            self.items.do(changing, item)
            return Written(self.builder.item_of(changing), created=False)
        if level is not WriteGuarantee.PLAIN or (self.entity.created_fields and item.revision is None):
            return self._put_over_what_is_read(item, if_match, once=level is WriteGuarantee.EXACTLY_ONCE)
        write = self.builder.put_unread(item, if_match)
        try:
            done = self.items.write(write, item)
        except ConditionFailedError as failed:
            if write.refused_for_objects(failed.item):
                return self._put_over_what_is_read(item, if_match)
            raise self.items.refusal_of(failed, item, write) from None
        # Of a free key the local engine returns the key itself.
        there = is_live(done.attributes, write.now) and {*(done.attributes or ())} > {PK, SK}
        return Written(self.builder.item_of(write), write.kind is Kind.UPSERT and not done.proved and not there)

    @write_operation
    def update(
        self,
        key: KeyLike,
        /,
        *,
        set: Mapping[str, Any] | None = None,  # noqa: A002 - DynamoDB's own word for it
        remove: Collection[str] = (),
        add: Mapping[str, Any] | None = None,
        if_match: str | None = None,
        handling: str | None = None,
    ) -> E:
        """Update some fields of a live item. Values pass the validators of the fields and of the entity.

        `set` has new values by field, `remove` fields to set to None, and `add` numbers to add to numbers, and sets to
        add to sets. They are added once: a request that may have been done is not sent again, unless it names the
        revision that it updates.

        Returns the updated item; if its answer was lost and what is stored proves that it was done, the item as found.

        Raises:
            NotFoundError: no live item has the key.
            RevisionMismatchError: it is at another revision than `if_match`; or it was read first, and other writers
                came between each time.
            InvalidValueError: a field refuses its value, DynamoDB a sum, or the entity the whole.

        Cost: 1 write unit, 1 round trip. The item is read first, for 1 read unit and 1 round trip more, if an index
        key also needs fields that are not named here, if the entity has validators of the whole, or if something is
        added to a field that has bounds. If an object that is set is stored with members that are not declared, which
        are kept, or without declared ones, 1 write unit, 1 read unit and 2 round trips more.
        """
        entity = self.entity
        updates = check_updates(entity, set or {}, remove=remove, add=add or {})
        item_key = entity.key_of(key)
        level = self._level(handling)
        if level is WriteGuarantee.EXACTLY_ONCE:
            # A read afterwards could fail, or find what others have written since: the answer would not be true.
            return self._store.exactly_once.update(
                self._store, entity.model, key, set=set, remove=remove, add=add, if_match=if_match
            )
        known = self.builder.known(key, updates)
        if level is WriteGuarantee.PLAIN and not self.builder.reads_first(updates, known):
            write = self.builder.update(item_key, updates, known, if_match)
            try:
                return self._apply(write, key, updates)
            except (AlreadyExistsError, RevisionMismatchError):
                # Its objects are not those that the write would replace, or it is at another revision: read it.
                if write.objects is None:
                    raise
        for _ in range(_RACES):
            stored = self.items.read_live(key, if_match)
            current = entity.decode(stored)
            after, before = fields_after(entity, current, updates), objects_read(entity, stored, current)
            try:
                write = self.builder.update(item_key, updates, after, current.revision, before=before)
                return self._apply(write, key, updates)
            except RevisionMismatchError:
                if if_match is not None:
                    raise
        raise RevisionMismatchError(f"{name_of(self.entity, key)} changes too often to be updated; try again later")

    @write_operation
    def delete(self, key: KeyLike, /, *, if_match: str | None = None, handling: str | None = None) -> None:
        """Delete a live item.

        Raises:
            NotFoundError: no live item has the key.
            RevisionMismatchError: it is at another revision than `if_match`, or there is none.

        Cost: 1 write unit, 1 round trip; guarded, 1 read unit and 1 round trip more; exactly once, 2 write units.
        """
        level = self._level(handling)
        if level is WriteGuarantee.EXACTLY_ONCE:
            self._store.exactly_once.delete(self._store, self.entity.model, key, if_match=if_match)
            return
        if level is WriteGuarantee.GUARDED and if_match is None:
            self._delete_what_is_read(key)
            return
        if level is WriteGuarantee.GUARDED:
            self.items.require(if_match, self.items.read(key, Reading(consistent=True)), key)
        write = Write(Kind.ALTER, self.entity.key_of(key), "DeleteItem", self._store.now(), if_match=if_match)
        self.items.do(write, key)

    def _level(self, handling: str | None) -> WriteGuarantee:
        return guarantee_of(handling, self.entity.guarantee)

    def _delete_what_is_read(self, key: KeyLike) -> None:
        """Delete the live item, whatever others write meanwhile."""
        item_key = self.entity.key_of(key)
        for _ in range(_RACES):
            revision = revision_in(self.items.read_live(key))
            write = Write(Kind.ALTER, item_key, "DeleteItem", self._store.now(), if_match=revision, guarded=True)
            try:
                self.items.write(write, key)
            except ConditionFailedError as failed:
                if not is_live(failed.item, write.now):
                    raise self.items.refusal_of(failed, key, write._replace(if_match=None)) from None
                continue
            return
        raise WriteContendedError(f"{name_of(self.entity, key)} changes too often to be deleted; try again later")

    def _put_over_what_is_read(self, item: E, if_match: str | None, *, once: bool = False) -> Written[E]:
        for _ in range(_RACES):
            current = self.items.read(item, Reading(consistent=True))
            self.items.require(if_match, current, item)
            try:
                if once:
                    if current is None:
                        return Written(self._store.exactly_once.create(self._store, item), created=True)
                    over = self.builder.nested(current)
                    at = revision_in(current) if over is None else None
                    stored = self._store.exactly_once.put(self._store, item, if_match=at, over=over)
                    return Written(stored, created=False)
                write = self.builder.put_over_stored(item, current)
                self.items.write(write, item)
                return Written(self.builder.item_of(write), created=current is None)
            except (ConditionFailedError, AlreadyExistsError, RevisionMismatchError):
                continue
        raise RevisionMismatchError(f"{name_of(self.entity, item)} changes too often to be replaced; try again later")

    def _apply(self, write: Write, key: KeyLike, updates: FieldUpdates) -> E:
        """Do the write of an update; return the item as updated."""
        try:
            done = self.items.do(write, key)
        except InvalidValueError as refused:
            raise self.items.sum_refused(refused, key, updates) from None
        return self.entity.decode(done.attributes or {})
