"""Writes the items of a batch by BatchWriteItem, those that move by single writes."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Generic

from msgspec.structs import replace

from dynashard.codec import require_fits
from dynashard.entity import EntityDefinition, ItemKey
from dynashard.errors import (
    DynashardError,
    InputError,
    InvalidKeyError,
    ThrottledError,
    UndecodableItemError,
    UnprocessedError,
)
from dynashard.repository.batches import Outcome
from dynashard.repository.conditions import damaged_marker, is_damaged, later_version
from dynashard.repository.item_access import ItemAccess
from dynashard.repository.key_names import key_named, name_of
from dynashard.repository.projection import Reading
from dynashard.repository.replacement import kept
from dynashard.repository.store import E, KeyLike, Store
from dynashard.repository.write import Kind, Write
from dynashard.repository.write_builder import WriteBuilder
from dynashard.routing import IndexCounts
from dynashard.schema import PK, SK
from dynashard.transport.deadline import evidence
from dynashard.transport.interface import Wire

_OPERATION: Final = "BatchWriteItem"

_Prepared = tuple[Write, KeyLike] | DynashardError
"""A write and the item or key that it is for, or why it cannot be done."""


class BatchItemWriter(Generic[E]):
    """Writes the items of batches. What replaces a live item keeps what that has and the entity does not declare."""

    def __init__(self, store: Store, items: ItemAccess[E], builder: WriteBuilder[E]) -> None:
        self._store = store
        self._items = items
        self._builder = builder

    def do(self, put: Sequence[E], delete: Sequence[KeyLike], *, whole: bool, refuse: bool) -> list[Outcome]:
        """Do the writes; see `BatchWriter.do`."""
        prepared = self._prepared(put, delete)
        refused = next((each for each in prepared if isinstance(each, InputError)), None)
        if refuse and refused is not None:
            raise refused
        ready = prepared if whole else self._keeping(prepared)
        outcomes = iter(self._written([each for each in ready if not isinstance(each, DynashardError)]))
        return [each if isinstance(each, DynashardError) else next(outcomes) for each in ready]

    def _prepared(self, put: Sequence[E], delete: Sequence[KeyLike]) -> list[_Prepared]:
        """What `_written` takes for each item and key, or the `InputError` of those that cannot be written."""
        store, entity, builder = self._store, self._items.entity, self._builder
        now, stamp, revisions = store.now(), store.stamp(), store.new_revisions(len(put))
        counts, version = IndexCounts(store.router, entity), entity.versions.number
        seen: set[ItemKey] = set()

        def write_of(key: ItemKey, place: int) -> Write:
            if place >= len(put):
                return Write(Kind.ALTER, key, "DeleteItem", now)
            item, revision, created = put[place], revisions[place], builder.created_of(put[place])
            wire = builder.wire_of(item, key, created=created, stamp=stamp, revision=revision, counts=counts)
            builder.require_readable(wire, key, item)
            kind = Kind.UPSERT if entity.rule.fixed or item.revision is not None else Kind.CREATE
            return Write(kind, key, "PutItem", now, wire, revision=revision, version=version)

        prepared: list[_Prepared] = []
        for place, member in enumerate((*put, *delete)):
            try:
                write = write_of(key_once(entity, seen, member), place)
                store.router.require_writable(entity, write.key)
            except InputError as error:
                prepared.append(error)
            else:
                prepared.append((write, member))
        return prepared

    def _keeping(self, prepared: Sequence[_Prepared]) -> list[_Prepared]:
        """The prepared writes, the puts with what they keep of live items, or an error for each that cannot be done.

        Creates, which have random places, keep nothing.
        """
        puts = [each for each in prepared if not isinstance(each, DynashardError) and each[0].kind is Kind.UPSERT]
        names: dict[ItemKey, KeyLike] = {write.key: member for write, member in puts}
        found: Mapping[ItemKey, Wire] = {}
        unread: DynashardError | None = None
        try:
            found = self._items.reader.read_all(list(names), Reading(consistent=True)) if names else {}
        except UnprocessedError as error:
            unread = self._items.batch_error(error, names)
            unread.__cause__ = error.__cause__
        except DynashardError as error:
            unread = error

        def ready(each: _Prepared) -> _Prepared:
            if isinstance(each, DynashardError) or each[0].key not in names:
                return each
            write, member = each
            if isinstance(unread, UnprocessedError):
                return self._left(
                    member, "DynamoDB left the read of this item unprocessed, so it was not written", unread.__cause__
                )
            return unread or self._with_kept(write, member, found.get(write.key))

        return [ready(each) for each in prepared]

    def _with_kept(self, write: Write, member: KeyLike, stored: Wire | None) -> _Prepared:
        if stored is None:
            return write, member
        entity, item = self._items.entity, write.item or {}
        if is_damaged(stored):
            # With what is kept, the item would be a marker still, which no reader sees.
            return damaged_marker(stored)
        if (later := later_version(entity, stored)) is not None:
            return later
        with suppress(UndecodableItemError):
            stored = {**entity.versions.readable(entity, stored)}
        found = kept(entity, stored, item)
        try:
            require_fits({PK: stored[PK], SK: stored[SK], **item, **found})
        except InputError as error:
            return error
        return replace(write, kept=found), member

    def _written(self, prepared: Sequence[tuple[Write, KeyLike]]) -> list[Outcome]:
        """Do prepared writes; return the outcome of each. Raises nothing."""
        names: dict[ItemKey, KeyLike] = {write.key: member for write, member in prepared}
        rest = self._items.writer.write_all([write for write, _ in prepared])
        if rest.members and (rest.cause is None or isinstance(rest.cause, ThrottledError)):
            throttle = rest.cause or ThrottledError("DynamoDB left writes of a batch unprocessed", operation=_OPERATION)
            self._items.report_throttle(throttle, [write.key for write in rest.members])
        outcomes: dict[ItemKey, Outcome] = {}
        for write in rest.members:
            problem = "DynamoDB left this write of a batch unprocessed"
            outcomes[write.key] = self._left(names[write.key], problem, rest.cause)
        outcomes |= {write.key: error for write, error in rest.failed}
        outcomes |= {write.key: self._items.unknown(write, names[write.key]) for write in self._unproved(rest.unknown)}
        return [outcomes.get(write.key) for write, _ in prepared]

    def _left(self, member: KeyLike, problem: str, cause: BaseException | None) -> UnprocessedError:
        """The error of one item of a batch that was certainly not written."""
        keys = [key_named(self._items.entity, member)]
        left = UnprocessedError(f"{problem}; send it again later", operation=_OPERATION, keys=keys)
        left.__cause__ = cause
        return left

    def _unproved(self, writes: Sequence[Write]) -> list[Write]:
        """The writes that nothing stored proves to have been executed. Cost: a consistent read of each put."""
        puts = [write.key for write in writes if write.revision]
        found: Mapping[ItemKey, dict[str, Any]] = {}
        if puts:
            with suppress(DynashardError), evidence():
                found = self._items.reader.read_all(puts, Reading(consistent=True))
        return [write for write in writes if not write.did(found.get(write.key))]


def key_once(entity: EntityDefinition[Any], seen: set[ItemKey], key: KeyLike) -> ItemKey:
    """Return the key of an item of a batch, and add it to those that were `seen`; refuse one that was."""
    item_key = entity.key_of(key)
    if item_key in seen:
        raise InvalidKeyError(f"{name_of(entity, key)} appears twice in this batch; send it once.")
    seen.add(item_key)
    return item_key
