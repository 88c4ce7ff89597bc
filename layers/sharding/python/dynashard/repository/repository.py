"""Create, read, update and delete items, one or many at a time, wherever their shards are."""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic

from dynashard.entity import EntityDefinition, definition, revision_in
from dynashard.errors import InvalidQueryError
from dynashard.repository.item_reads import ItemReads
from dynashard.repository.key_names import not_found
from dynashard.repository.projection import LIVENESS, Part, Reading, projection
from dynashard.repository.store import Companion, E, KeyLike, Store, Written, read_operation

if TYPE_CHECKING:
    from dynashard.repository.batches import Batches
    from dynashard.repository.item_writes import ItemWrites


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

    What writes is loaded by the first write, so that a process that only reads starts without it.
    """

    def __init__(self, store: Store, model: type[E]) -> None:
        self.entity: EntityDefinition[E] = definition(model)
        self._reads = ItemReads(store, model)
        self._store = store

    @cached_property
    def writes(self) -> "ItemWrites[E]":
        """What writes single items, and what its writes are made of."""
        from dynashard.repository.item_writes import ItemWrites  # noqa: PLC0415 - loaded by the first write

        return ItemWrites(self._store, self.entity.model)

    @cached_property
    def batches(self) -> "Batches[E]":
        """What reads and writes many items at a time."""
        from dynashard.repository.batch_item_writer import BatchItemWriter  # noqa: PLC0415 - loaded by the first batch
        from dynashard.repository.batches import Batches  # noqa: PLC0415 - as above

        items = self.writes.items
        if self.entity.unique:
            from dynashard.repository.single_batches import SingleBatchWriter  # noqa: PLC0415 - few entities need it

            return Batches(items, SingleBatchWriter(self._store, self))
        return Batches(items, BatchItemWriter(self._store, items, self.writes.builder))

    def check(self, item: E, *, timely: bool = True) -> None:
        """Raise the `InputError` that storing this item would raise before anything is sent. Costs nothing.

        Args:
            item: the item.
            timely: whether the time of its key must have come, for an entity whose placement is `epochs`. False for an
                item that is stored later, when it has.
        """
        self.writes.builder.check(item, timely=timely)

    def create(self, item: E, /, *, handling: str | None = None) -> E:
        """Store an item under a key that has no live item, and return it as stored, with its times and its revision.

        Raises `AlreadyExistsError` if a live item has the key.

        Cost: 1 write unit, 1 round trip; guarded, 1 read unit and 1 round trip more; exactly once, 2 write units.
        """
        return self.writes.create(item, handling=handling)

    @property
    def can_create_with(self) -> bool:
        """Whether `create_with` can be used: items have one home, and no attachments."""
        return self.entity.rule.fixed and not self.entity.attachments

    def create_with(self, item: E, companion: Companion) -> E:
        """Store an item under a key that has no live item, in one transaction with an action on another table.

        Raises:
            ConditionFailedError: the condition of the action fails, with the item that is stored there; nothing was
                done, and as long as it fails nothing will be.
            OutcomeUnknownError: with the item's key.

        Cost: 2 write units and those of the action, twice what it costs alone; 1 round trip. As much if it is refused.
        """
        return self.writes.create_with(item, companion)

    def confirm_created(self, key: KeyLike, revision: str, shards: int) -> bool:
        """Whether readers find what a create stored, unless it was changed or deleted since; see `ensure_home`."""
        from dynashard.repository.late import ensure_home  # noqa: PLC0415 - with what writes

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
        item = self._reads.read(key, Reading(consistent))
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
        return self._reads.read(key, Reading(consistent, LIVENESS)) is not None

    @read_operation
    def part(self, key: KeyLike, /, *, fields: Sequence[str], consistent: bool = False) -> Part:
        """Return some fields of the live item with this key; nothing else of it is sent or decoded.

        Raises:
            NotFoundError: no live item has the key.
            InvalidQueryError: a field is unknown, or an attachment.

        Cost: what `find` costs, because DynamoDB bills the whole item.
        """
        stored = self._reads.read(key, projection(self.entity, fields, consistent=consistent))
        if stored is None:
            raise not_found(self.entity, key)
        return Part(self.entity.part(stored, fields), revision_in(stored))

    def replace(
        self, item: E, /, *, if_match: str | None = None, handling: str | None = None, over: E | None = None
    ) -> E:
        """Do what `put` does, and return only the item as stored."""
        return self.put(item, if_match=if_match, handling=handling, over=over).item

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
        return self.writes.put(item, if_match=if_match, handling=handling, over=over)

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
        key also needs fields that are not named here, if validators may refuse a new value together with others, or
        if something is added to a field that has bounds. If an object that is set is stored with members that are not
        declared, which are kept, or without declared ones, 1 write unit, 1 read unit and 2 round trips more.
        """
        return self.writes.update(key, set=set, remove=remove, add=add, if_match=if_match, handling=handling)

    def delete(self, key: KeyLike, /, *, if_match: str | None = None, handling: str | None = None) -> None:
        """Delete a live item.

        Raises:
            NotFoundError: no live item has the key.
            RevisionMismatchError: it is at another revision than `if_match`, or there is none.

        Cost: 1 write unit, 1 round trip; guarded, 1 read unit and 1 round trip more; exactly once, 2 write units.
        """
        self.writes.delete(key, if_match=if_match, handling=handling)
