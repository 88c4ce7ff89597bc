"""Many items at a time, each with an outcome of its own."""

from collections.abc import Sequence
from typing import Final, Generic, Protocol, TypeVar

from dynashard.entity import Entity
from dynashard.errors import DynashardError, OutcomeUnknownError, UnprocessedError
from dynashard.repository.item_access import ItemAccess
from dynashard.repository.key_names import key_named
from dynashard.repository.left_out import Found, found_in
from dynashard.repository.projection import without_index_keys
from dynashard.repository.store import E, KeyLike

_OPERATION: Final = "BatchWriteItem"

E_contra = TypeVar("E_contra", bound=Entity, contravariant=True)

Outcome = DynashardError | None
"""What became of one write of a batch: None if it was done, or why it was not, or that nothing proves either."""


class BatchWriter(Protocol[E_contra]):
    """Does the writes of batches, however their items are stored."""

    def do(self, put: Sequence[E_contra], delete: Sequence[KeyLike], *, whole: bool, refuse: bool) -> list[Outcome]:
        """Do the writes; return the outcome of each of `put`, then of each of `delete`.

        With `refuse`, an item that cannot be stored raises its `InputError` before anything is sent. Raises nothing
        once something was sent.
        """
        ...


class Batches(Generic[E]):
    """Reads and writes of many items of one entity; `writer` does the writes."""

    def __init__(self, items: ItemAccess[E], writer: BatchWriter[E]) -> None:
        self._items = items
        self._writer = writer

    def get(self, keys: Sequence[KeyLike], *, consistent: bool = False, strict: bool = False) -> Found[E]:
        """Return the live items with these keys, in the order of the keys; None for those that have none.

        Stored items that do not fit the entity are None too, and named by `undecodable` of the list. Raises
        `UnprocessedError` with the keys that could not be read in time; if `strict`, `UndecodableItemError`.

        Cost: what `find` costs for each, 1 round trip for 100 keys, up to 16 at a time; 1 more for those that have
        moved while their shard count changes. With random placement, that for every shard.
        """
        entity = self._items.entity
        wanted = [entity.key_of(key) for key in keys]
        names = dict(zip(wanted, keys, strict=True))
        # Two items of one key are two objects, so each is decoded by itself.
        reader = None
        if len(names) == len(keys):
            from dynashard.repository.batch_answers import entities_of  # noqa: PLC0415 - with msgspec

            reader = entities_of(entity)
        try:
            reading = without_index_keys(entity)._replace(consistent=consistent, reader=reader)
            stored = self._items.reader.read_all(list(names), reading)
        except UnprocessedError as error:
            raise self._items.batch_error(error, names) from error.__cause__
        return found_in(map(stored.get, wanted), entity.decode, strict=strict)

    def write(self, put: Sequence[E] = (), *, delete: Sequence[KeyLike] = (), whole: bool = False) -> None:
        """Store and delete many items, each whether or not its key had one.

        There is no condition and no order between them. An item that was read from the store keeps its creation
        stamp; others are stamped as created now. With random placement, items that were never stored get a drawn
        shard, whatever it and other shards hold. `try_write` returns an outcome for each instead of raising.

        What the items at these keys have besides the declared attributes is kept: it is read first, because
        BatchWriteItem replaces whole items. What another version stores between this read and the write is lost. With
        `whole`, nothing is read and nothing is kept: for new keys, or for a program that owns the items.

        Raises:
            InvalidKeyError, InvalidValueError, ItemTooLargeError: an item cannot be stored, or two have one key;
                nothing was sent.
            UnprocessedError: with the keys that were not written; the others are written. Its `retryable` is False if
                one of them cannot succeed, whose error is the cause.
            OutcomeUnknownError: with the keys of which no answer came and nothing stored proves anything, and with
                those that were certainly not written; the others are written.

        Cost: 1 write unit each, 1 round trip for 25, up to 16 at a time. Unless `whole`, 1 read unit for each put, and
        1 round trip for 100, up to 16 at a time. While a shard count changes, its items are
        written one by one, up to 16 at a time: 4 write units for those that are new at their new home. With random
        placement, what was stored before or is deleted is looked for first, for 1 read unit a shard.
        """
        outcomes = self._writer.do(put, delete, whole=whole, refuse=True)
        left = [(key, error) for key, error in zip([*put, *delete], outcomes, strict=True) if error is not None]
        if left:
            raise self._together(left)

    def try_write(self, put: Sequence[E] = (), *, delete: Sequence[KeyLike] = (), whole: bool = False) -> list[Outcome]:
        """Do what `write` does; return an outcome for each of `put`, then for each of `delete`.

        None says that it was certainly done. Every other outcome is the error that a single write would have raised, or
        an `UnprocessedError`. What cannot be stored does not stop the others. Raises no `DynashardError`.

        Cost: as `write`.
        """
        try:
            return self._writer.do(put, delete, whole=whole, refuse=False)
        except DynashardError as error:
            return [error] * (len(put) + len(delete))

    def _together(self, left: Sequence[tuple[KeyLike, DynashardError]]) -> DynashardError:
        """One error for all writes of a batch that were not done, or whose outcome is unknown."""
        entity = self._items.entity
        unknown = [key_named(entity, key) for key, error in left if isinstance(error, OutcomeUnknownError)]
        undone = [(key_named(entity, key), error) for key, error in left if not isinstance(error, OutcomeUnknownError)]
        keys = [key for key, _ in undone]
        if unknown:
            return OutcomeUnknownError(
                f"No answer came for {len(unknown)} keys of a batch: these may have been written, or may still be. "
                "Read them before you write them again, which may undo what others wrote since.",
                operation=_OPERATION,
                keys=unknown,
                unprocessed=keys,
            )
        final = next((error for _, error in undone if not error.retryable), None)
        cause = final or next((e.__cause__ if isinstance(e, UnprocessedError) else e for _, e in undone), None)
        message = f"DynamoDB left {len(keys)} keys of a batch unprocessed; send these again later"
        if final is not None:
            message = f"{len(keys)} keys of a batch were not written, and some of them cannot be: {final}"
        together = UnprocessedError(message, operation=_OPERATION, keys=keys, retryable=final is None)
        together.__cause__ = cause
        return together
