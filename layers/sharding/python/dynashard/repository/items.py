"""What single items, batches and transactions of one entity share: its reader and writer, writes, and their errors."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Generic

from dynashard.codec import fits, require_fits
from dynashard.entity import EntityDefinition, ItemKey, definition, revision_in
from dynashard.errors import (
    ConditionFailedError,
    DynashardError,
    EngineError,
    InvalidKeyError,
    InvalidValueError,
    NotFoundError,
    OutcomeUnknownError,
    ThrottledError,
    UndecodableItemError,
    UnprocessedError,
)
from dynashard.keys import key_text
from dynashard.repository.batch import Reading
from dynashard.repository.conditions import is_marker, mismatch, refusal
from dynashard.repository.evidence import Proof, gone, judge, lineage
from dynashard.repository.home_reader import HomeReader
from dynashard.repository.home_writer import HomeWriter
from dynashard.repository.replacement import replacing, revision_read
from dynashard.repository.scattered import Scattered
from dynashard.repository.store import E, KeyLike, Store
from dynashard.repository.updates import FieldUpdates, fields_after, touched_indexes, update_expression
from dynashard.repository.write import Done, Kind, Write
from dynashard.routing import IndexCounts, Router
from dynashard.schema import PK, PREV, REV, SK, TYPE, index_pk, index_sk
from dynashard.topology import DeclaredTopology
from dynashard.transport.deadline import evidence
from dynashard.transport.interface import Wire


def reader_of(store: Store, entity: EntityDefinition[Any]) -> HomeReader | Scattered:
    """Return what reads the items of an entity, by its placement."""
    return HomeReader(store, entity) if entity.rule.fixed else Scattered(store, entity)


class Items(Generic[E]):
    """The items of one entity in a store: reads them, and prepares and sends writes."""

    def __init__(self, store: Store, model: type[E]) -> None:
        self._store = store
        self._entity: EntityDefinition[E] = definition(model)
        self._reader = reader_of(store, self._entity)
        self._writer = self._reader if isinstance(self._reader, Scattered) else HomeWriter(store, self._entity)

    @property
    def entity(self) -> EntityDefinition[E]:
        """The compiled declaration."""
        return self._entity

    def _read(self, key: KeyLike, reading: Reading) -> Wire | None:
        """The live item with this key, as it is stored."""
        item_key = self._entity.key_of(key)
        try:
            return self._reader.read(item_key, reading)
        except (ThrottledError, UnprocessedError) as error:
            raise self._item_error(error, item_key, key)  # noqa: B904 - it has its cause

    def _write(self, write: Write, key: KeyLike) -> Done:
        """Do a write of the item with this key."""
        try:
            return self._writer.write(write)
        except (ThrottledError, UnprocessedError) as error:
            raise self._item_error(error, write.key, key)  # noqa: B904 - it has its cause
        except OutcomeUnknownError as unknown:
            return self._settled(write, key, unknown, None)
        except ConditionFailedError as failed:
            if not failed.ambiguous:
                raise
            return self._settled(write, key, failed, failed.item)

    def _do(self, write: Write, key: KeyLike) -> Done:
        """Do a write of the item with this key; raise a caller's error if its condition fails."""
        try:
            return self._write(write, key)
        except ConditionFailedError as failed:
            raise self._refusal(failed, key, write) from None

    def _refusal(self, failed: ConditionFailedError, key: KeyLike, write: Write) -> DynashardError:
        return refusal(failed.item, name=self._name(key), now=write.now, if_match=write.if_match)

    def _read_live(self, key: KeyLike, if_match: str | None = None) -> Wire:
        """The live item with this key, read consistently for a write that alters it."""
        current = self._read(key, Reading(consistent=True))
        if current is None:
            raise self._not_found(key)
        self._require(if_match, current, key)
        return current

    def _require(self, if_match: str | None, current: Wire | None, key: KeyLike) -> None:
        """Refuse an item, None if there is none, that is not at the revision that a caller names."""
        revision = revision_in(current) if current else None
        if if_match is not None and revision != if_match:
            raise mismatch(self._name(key), revision)

    def _not_found(self, key: KeyLike) -> NotFoundError:
        return NotFoundError(f"{self._name(key)} does not exist")

    def _settled(self, write: Write, key: KeyLike, error: EngineError, found: Mapping[str, Any] | None) -> Done:
        """Determine the outcome of a write after an ambiguous attempt, by what is stored.

        Cost: 1 consistent read, unless an item made the condition fail or nothing can prove anything.
        """
        with suppress(DynashardError), evidence():
            if (found is None or is_marker(found)) and (write.revision or write.exact):
                found = self._reader.read(write.key, Reading(consistent=True))
            if write.guarded and gone(write, found):
                return Done(proved=True)
        verdict = judge(write, found)
        if verdict is Proof.DONE:
            return Done(found, proved=True)
        if verdict is Proof.REFUSED:
            raise ConditionFailedError(str(error), operation=write.operation, item=found) from error
        raise self._unknown(write, key) from error

    def _unknown(self, write: Write, key: KeyLike) -> OutcomeUnknownError:
        """The error for a write with an unknown outcome."""
        return OutcomeUnknownError(
            f"{self._name(key)}: no answer came; the write may have been applied, or may still be. {_advice(write)}",
            operation=write.operation,
            key=self._key_named(key),
            revision=write.revision or None,
        )

    def _item_error(self, error: ThrottledError | UnprocessedError, item_key: ItemKey, key: KeyLike) -> EngineError:
        """A caller's error for one item that could not be read or written in time."""
        if isinstance(error, ThrottledError):
            self._throttled(error, [item_key])
            return error
        reported, cause = self._batch_error(error, {item_key: key}), error.__cause__
        # For one item, the cause is more useful than the list of keys that are left.
        return cause if isinstance(cause, EngineError) else reported

    def _batch_error(self, error: UnprocessedError, names: Mapping[ItemKey, KeyLike]) -> UnprocessedError:
        """A caller's error for keys that are left, named as the caller names them."""
        left = [ItemKey(str(key[PK]), str(key[SK])) for key in error.keys]
        cause = error.__cause__
        if cause is None:
            cause = ThrottledError(str(error), operation=error.operation, aws_code=error.aws_code)
        if isinstance(cause, ThrottledError):
            self._throttled(cause, left)
        keys = [self._key_named(names[key]) for key in left]
        return UnprocessedError(str(error), operation=error.operation, keys=keys)

    def _throttled(self, error: ThrottledError, keys: Iterable[ItemKey]) -> None:
        for partition in dict.fromkeys(key.partition for key in keys):
            self._store.throttled(self._entity, partition, error)

    def _key_named(self, key: KeyLike) -> dict[str, str | int]:
        """The fields of a key, as errors name them."""
        fields = self._key_fields(key)
        named = {name: fields[name] for name in self._entity.key_fields}
        return {name: each if type(each) in (str, int) else key_text(name, each) for name, each in named.items()}

    def _key_fields(self, key: KeyLike) -> Mapping[str, Any]:
        return key if isinstance(key, Mapping) else key.__dict__

    def _name(self, key: KeyLike) -> str:
        fields = self._key_fields(key)
        return f"{self._entity.name} " + ", ".join(f"{n}={fields[n]!r}" for n in self._entity.key_fields if n in fields)

    def check(self, item: E) -> None:
        """Raise the `InputError` that storing this item would raise before anything is sent. Costs nothing."""
        # Declared counts suffice, and need no topology table.
        counts = IndexCounts(Router(DeclaredTopology()), self._entity)
        key = self._entity.key_of(item)
        self._store.router.require_writable(self._entity, key)
        self._prepare(item, key, created=None, counts=counts)

    def _prepare(
        self,
        item: E,
        key: ItemKey,
        *,
        created: datetime | None,
        replaces: str | None = None,
        stamp: datetime | None = None,
        counts: IndexCounts | None = None,
    ) -> Wire:
        """The item as it will be stored, without its stored key: stamped, and with a new revision."""
        entity, now, revision = self._entity, stamp or self._store.stamp(), self._store.new_revision()
        counts = IndexCounts(self._store.router, entity) if counts is None else counts
        formed = entity.writer(item.__dict__, key, now, created or now, revision, counts)
        wire: Wire = {TYPE: {"S": entity.name}, REV: {"S": revision}} if formed is None else formed
        if formed is None:
            stamps = dict.fromkeys(entity.updated_fields, now) | dict.fromkeys(entity.created_fields, created or now)
            values = {**item.__dict__, **stamps}
            for index in entity.indexes.values():
                wire.update(counts.router.index_attributes(entity, index, key, values))
            wire.update(entity.encode(values))
        past = lineage(replaces)
        if formed is not None and not past:
            return wire
        # The key of another home may be a little longer: the room that is left for markers holds that too.
        stored = {**counts.router.stored_key(entity, key), **wire}
        require_fits(stored)
        if past and not fits({**stored, **past}):
            # One predecessor fits into the room that is left for markers.
            past = {PREV: {"S": replaces or "-"}}
        wire.update(past)
        return wire

    def _put_write(
        self, kind: Kind, item: E, *, created: datetime | None, if_match: str | None = None, over: E | None = None
    ) -> Write:
        key = self._entity.key_of(item)
        wire = self._prepare(item, key, created=created, replaces=if_match)
        return self._storing(kind, key, wire, if_match, returns=kind is Kind.UPSERT, over=over)

    def _storing(
        self, kind: Kind, key: ItemKey, wire: Wire, if_match: str | None, *, returns: bool, over: E | None = None
    ) -> Write:
        """The write that stores a whole item; it may return the item that it replaces, or update what was read."""
        options = {"ReturnValues": "ALL_OLD"} if returns else {}
        write = Write(kind, key, "PutItem", self._store.now(), wire, options, if_match, wire[REV]["S"])
        return replacing(self._entity, write, over)

    def _stored(self, write: Write) -> E:
        """The item that a put has stored."""
        return self._entity.decode(write.item or {})

    def _put_unread(self, item: E, if_match: str | None) -> Write:
        """The put of an item over one that was not read."""
        kind = Kind.UPSERT if if_match is None else Kind.ALTER
        return self._put_write(kind, item, created=self._created(item), if_match=if_match)

    def _put_changed(self, item: E, over: E) -> Write:
        """The put of an item over one that was read, of which it writes only what differs."""
        revision = revision_read(over, None)
        if self._entity.key_of(over) != self._entity.key_of(item):
            raise InvalidKeyError(f"{self._name(item)} cannot replace {self._name(over)}: they have different keys")
        return self._put_write(Kind.ALTER, item, created=self._created(over), if_match=revision, over=over)

    def _put_over(self, item: E, current: Wire | None) -> Write:
        """The put of an item over the one that was read, whose creation stamp it keeps; None if there was none."""
        if current is None:
            return self._put_write(Kind.CREATE, item, created=None)
        created, revision = self._stored_stamp(current), revision_in(current)
        over = self._nested(current)
        return self._put_write(Kind.ALTER, item, created=created, if_match=revision, over=over)

    def _nested(self, current: Wire) -> E | None:
        """The stored item that was read, if it has objects whose members a put may have to keep."""
        if self._entity.nested:
            with suppress(UndecodableItemError):
                return self._entity.decode(current)
        return None

    def _stored_stamp(self, wire: Wire) -> datetime | None:
        """The creation stamp of a stored item; adopted ones may have none."""
        stamps = self._entity.decode_fields(wire, [name for name in self._entity.created_fields if name in wire])
        return next(iter(stamps.values()), None)

    def _created(self, item: E) -> datetime | None:
        """The creation stamp of an item that was read from the store."""
        names = () if item.revision is None else self._entity.created_fields
        return next((item.__dict__[name] for name in names), None)

    def _update_write(
        self,
        item_key: ItemKey,
        updates: FieldUpdates,
        after: Mapping[str, Any],
        if_match: str | None,
        attributes: Mapping[str, Wire | None] | None = None,
        *,
        stamp: datetime | None = None,
        first: Wire | None = None,
        before: Wire | None = None,
    ) -> Write:
        """The write of an update, which also sets `attributes` (None removes one), and those of `first` if absent.

        `before` are the objects of the item that was read at the revision `if_match`: see `objects_read`.
        """
        entity, store = self._entity, self._store
        revision = store.new_revision()
        system = {name: value for name, value in (attributes or {}).items() if value is not None}
        gone = [name for name in attributes or () if name not in system]
        system |= {REV: {"S": revision}, **lineage(if_match)}
        stamp = stamp or store.stamp()
        after = {**after, **dict.fromkeys(entity.updated_fields, stamp)}
        for index in touched_indexes(entity, updates):
            entry = store.router.index_attributes(entity, index, item_key, after)
            system.update(entry)
            gone += () if entry else (index_pk(index.slot), index_sk(index.slot))
        update = update_expression(
            entity, updates, system=system, first=first or {}, gone=gone, now=stamp, before=before or {}
        )
        options = {"ReturnValues": "ALL_NEW", **update}
        return Write(
            Kind.ALTER, item_key, "UpdateItem", store.now(), options=options, if_match=if_match, revision=revision
        )

    def _known(self, key: KeyLike, updates: FieldUpdates) -> dict[str, Any]:
        """The fields of an item that an update itself names."""
        fields = self._key_fields(key)
        return {name: fields[name] for name in self._entity.key_fields} | dict(updates.set)

    def _reads_first(self, updates: FieldUpdates, known: Mapping[str, Any]) -> bool:
        """Whether an update depends on the stored item: to check the whole or a sum, or for the key of an index."""
        entity = self._entity
        if entity.assignment.checks_whole or any(entity.assignment.bounded(name) for name in updates.add):
            return True
        given = known.keys() | entity.updated_fields
        touched = touched_indexes(entity, updates)
        return not all(index.fields <= given and not index.fields & updates.add.keys() for index in touched)

    def _sum_refused(self, refused: InvalidValueError, key: KeyLike, updates: FieldUpdates) -> InvalidValueError:
        """DynamoDB's refusal of a sum, with the field at fault if the stored item shows it. Cost: a consistent read."""
        stored = self._read(key, Reading(consistent=True))
        current = None if stored is None else self._entity.decode(stored)
        try:
            if current is not None:
                fields_after(self._entity, current, updates)
        except InvalidValueError as named:
            return named
        return refused


def _advice(write: Write) -> str:
    """What a caller can do about a write with an unknown outcome."""
    if not write.revision:
        return "Read the item: if it is still there, delete it again; if it is gone, you or somebody else deleted it."
    applied = f"Read the item consistently: if its revision is {write.revision}, it was applied."
    if write.exact:
        return f"{applied} If its revision is still the one that you named, send the same again."
    return f"{applied} If not, decide by what you read: sending the same again may undo what others wrote since."
