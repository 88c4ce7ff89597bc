"""Many items at a time, each with an outcome of its own."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from dynashard.codec import require_fits
from dynashard.entity import ItemKey
from dynashard.errors import (
    DynashardError,
    InputError,
    InvalidKeyError,
    OutcomeUnknownError,
    ThrottledError,
    UnprocessedError,
)
from dynashard.repository.batch import Reading
from dynashard.repository.items import Items
from dynashard.repository.left_out import Found, found_in
from dynashard.repository.replacement import kept
from dynashard.repository.store import E, KeyLike
from dynashard.repository.write import Kind, Write
from dynashard.routing import IndexCounts
from dynashard.schema import PK, REV, SK
from dynashard.transport.deadline import evidence
from dynashard.transport.interface import Wire

_OPERATION: Final = "BatchWriteItem"

Outcome = DynashardError | None
"""What became of one write of a batch: None if it was done, or why it was not, or that nothing proves either."""


class Batches(Items[E]):
    """Reads and writes of many items of one entity."""

    def batch_get(self, keys: Sequence[KeyLike], *, consistent: bool = False, strict: bool = False) -> Found[E]:
        """Return the live items with these keys, in the order of the keys; None for those that have none.

        Stored items that do not fit the entity are None too, and named by `undecodable` of the list. Raises
        `UnprocessedError` with the keys that could not be read in time; if `strict`, `UndecodableItemError`.

        Cost: what `find` costs for each, 1 round trip for 100 keys, up to 16 at a time; 1 more for those that have
        moved while their shard count changes. With random placement, that for every shard.
        """
        wanted = [self._entity.key_of(key) for key in keys]
        names = dict(zip(wanted, keys, strict=True))
        # Two items of one key are two objects, so each is decoded by itself.
        reader = None
        if len(names) == len(keys):
            from dynashard.repository.batch_answers import entities_of  # noqa: PLC0415 - with msgspec

            reader = entities_of(self._entity)
        try:
            stored = self._reader.read_all(list(names), Reading(consistent, reader=reader))
        except UnprocessedError as error:
            raise self._batch_error(error, names) from error.__cause__
        return found_in(map(stored.get, wanted), self._entity.decode, strict=strict)

    def batch_write(self, put: Sequence[E] = (), *, delete: Sequence[KeyLike] = (), whole: bool = False) -> None:
        """Store and delete many items, each whether or not its key had one.

        There is no condition and no order between them. An item that was read from the store keeps its creation
        stamp; others are stamped as created now. With random placement, items that were never stored get a drawn
        shard, whatever it and other shards hold. `try_batch_write` returns an outcome for each instead of raising.

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
        prepared = self._prepared(put, delete)
        for error in prepared:
            if isinstance(error, InputError):
                raise error
        outcomes = zip([*put, *delete], self._outcomes(prepared, whole=whole), strict=True)
        left = [(key, error) for key, error in outcomes if error is not None]
        if left:
            raise self._together(left)

    def try_batch_write(
        self, put: Sequence[E] = (), *, delete: Sequence[KeyLike] = (), whole: bool = False
    ) -> list[Outcome]:
        """Do what `batch_write` does; return an outcome for each of `put`, then for each of `delete`.

        None says that it was certainly done. Every other outcome is the error that a single write would have raised, or
        an `UnprocessedError`. What cannot be stored does not stop the others. Raises no `DynashardError`.

        Cost: as `batch_write`.
        """
        try:
            prepared = self._prepared(put, delete)
        except DynashardError as error:
            return [error] * (len(put) + len(delete))
        return self._outcomes(prepared, whole=whole)

    def _outcomes(self, prepared: Sequence[Any], *, whole: bool) -> list[Outcome]:
        """Do prepared writes; return the outcome of each. What is an error already is its own outcome."""
        ready = prepared if whole else self._keeping(prepared)
        outcomes = iter(self._written([each for each in ready if not isinstance(each, DynashardError)]))
        return [each if isinstance(each, DynashardError) else next(outcomes) for each in ready]

    def _prepared(self, put: Sequence[E], delete: Sequence[KeyLike]) -> list[Any]:
        """What `_written` takes for each item and key, or the `InputError` of those that cannot be written."""
        now, stamp, homes = self._store.now(), self._store.stamp(), self._entity.rule.fixed
        counts = IndexCounts(self._store.router, self._entity)
        seen: set[ItemKey] = set()

        def write_of(key: ItemKey, place: int) -> Write:
            if place >= len(put):
                return Write(Kind.ALTER, key, "DeleteItem", now)
            item = put[place]
            wire = self._prepare(item, key, created=self._created(item), stamp=stamp, counts=counts)
            kind = Kind.UPSERT if homes or item.revision is not None else Kind.CREATE
            return Write(kind, key, "PutItem", now, wire, revision=wire[REV]["S"])

        prepared: list[Any] = []
        for place, member in enumerate((*put, *delete)):
            try:
                write = write_of(self._once(seen, member), place)
                self._store.router.require_writable(self._entity, write.key)
            except InputError as error:
                prepared.append(error)
            else:
                prepared.append((write, member))
        return prepared

    def _once(self, seen: set[ItemKey], key: KeyLike) -> ItemKey:
        item_key = self._entity.key_of(key)
        if item_key in seen:
            raise InvalidKeyError(f"{self._name(key)} appears twice in this batch; send it once.")
        seen.add(item_key)
        return item_key

    def _keeping(self, prepared: Sequence[Any]) -> list[Any]:
        """The prepared writes, the puts with what they keep of live items, or an error for each that cannot be done.

        Creates, which have random places, keep nothing.
        """
        puts = [each for each in prepared if not isinstance(each, DynashardError) and each[0].kind is Kind.UPSERT]
        names: dict[ItemKey, KeyLike] = {write.key: member for write, member in puts}
        found: Mapping[ItemKey, Wire] = {}
        unread: DynashardError | None = None
        try:
            found = self._reader.read_all(list(names), Reading(consistent=True)) if names else {}
        except UnprocessedError as error:
            unread = self._batch_error(error, names)
            unread.__cause__ = error.__cause__
        except DynashardError as error:
            unread = error

        def ready(each: Any) -> Any:
            if isinstance(each, DynashardError) or each[0].key not in names:
                return each
            write, member = each
            if isinstance(unread, UnprocessedError):
                return self._left(
                    member, "DynamoDB left the read of this item unprocessed, so it was not written", unread.__cause__
                )
            return unread or self._with_kept(write, member, found.get(write.key))

        return [ready(each) for each in prepared]

    def _with_kept(self, write: Write, member: KeyLike, stored: Wire | None) -> Any:
        if stored is None:
            return write, member
        item = write.item or {}
        found = kept(self._entity, stored, item)
        try:
            require_fits({PK: stored[PK], SK: stored[SK], **item, **found})
        except InputError as error:
            return error
        return write._replace(kept=found), member

    def _written(self, prepared: Sequence[Any]) -> list[Outcome]:
        """Do prepared writes; return the outcome of each. Raises nothing."""
        names: dict[ItemKey, KeyLike] = {write.key: member for write, member in prepared}
        rest = self._writer.write_all([write for write, _ in prepared])
        if rest.members and (rest.cause is None or isinstance(rest.cause, ThrottledError)):
            throttle = rest.cause or ThrottledError("DynamoDB left writes of a batch unprocessed", operation=_OPERATION)
            self._throttled(throttle, [write.key for write in rest.members])
        outcomes: dict[ItemKey, Outcome] = {}
        for write in rest.members:
            problem = "DynamoDB left this write of a batch unprocessed"
            outcomes[write.key] = self._left(names[write.key], problem, rest.cause)
        outcomes |= {write.key: error for write, error in rest.failed}
        outcomes |= {write.key: self._unknown(write, names[write.key]) for write in self._unproved(rest.unknown)}
        return [outcomes.get(write.key) for write, _ in prepared]

    def _left(self, member: KeyLike, problem: str, cause: BaseException | None) -> UnprocessedError:
        """The error of one item of a batch that was certainly not written."""
        keys = [self._key_named(member)]
        left = UnprocessedError(f"{problem}; send it again later", operation=_OPERATION, keys=keys)
        left.__cause__ = cause
        return left

    def _unproved(self, writes: Sequence[Write]) -> list[Write]:
        """The writes that nothing stored proves to have been executed. Cost: a consistent read of each put."""
        puts = [write.key for write in writes if write.revision]
        found: Mapping[ItemKey, dict[str, Any]] = {}
        if puts:
            with suppress(DynashardError), evidence():
                found = self._reader.read_all(puts, Reading(consistent=True))
        return [write for write in writes if not write.did(found.get(write.key))]

    def _together(self, left: Sequence[tuple[KeyLike, DynashardError]]) -> DynashardError:
        """One error for all writes of a batch that were not done, or whose outcome is unknown."""
        unknown = [self._key_named(key) for key, error in left if isinstance(error, OutcomeUnknownError)]
        undone = [(self._key_named(key), error) for key, error in left if not isinstance(error, OutcomeUnknownError)]
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
