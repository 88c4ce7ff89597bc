"""One write, independent of the stored partition key that it is sent to."""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from dynashard.entity import ItemKey, revision_in
from dynashard.entity.versions import FIRST, version_in
from dynashard.errors import ConditionFailedError
from dynashard.repository.conditions import Condition, absent, is_live, live, live_or_none, of_type, of_version
from dynashard.repository.evidence import wrote
from dynashard.repository.store import Store
from dynashard.schema import PK, SK, TYPE
from dynashard.transport.interface import Resend, Wire

CHECK: Final = "ConditionCheck"
"""The operation of a step of a transaction that writes nothing."""
_VERSIONED: Final = frozenset({"PutItem", "UpdateItem"})
"""The operations that write in the form of a version, so they do not replace an item of a later one."""
_ACTIONS: Final = {"PutItem": "Put", "UpdateItem": "Update", "DeleteItem": "Delete", CHECK: CHECK}


class Kind(Enum):
    """What a write does, depending on what is stored."""

    CREATE = "create"
    """Stores an item if its key has no live one."""
    UPSERT = "upsert"
    """Replaces a live item, or stores one if there is none."""
    ALTER = "alter"
    """Replaces, updates or deletes a live item."""


class Owned(NamedTuple):
    """The entity whose items a write changes; `untyped` if it has adopted items, which name none."""

    name: str
    untyped: bool

    def has(self, stored: Mapping[str, Any]) -> bool:
        """Whether a stored item is one of them."""
        return stored[TYPE] == {"S": self.name} if TYPE in stored else self.untyped


class Write(Struct, frozen=True):
    """One write, which may be sent several times and to several places.

    Attributes:
        operation: `PutItem`, `UpdateItem`, `DeleteItem` or `CHECK`.
        now: the time by which items expire, in epoch seconds.
        item: the whole item that it stores, without its stored key; None if it does not know the whole.
        options: all other parameters but table, stored key and condition. An update that stores an item has the
            expression that writes it over a live one.
        if_match: the revision that an `ALTER` demands.
        kept: what a put keeps of a live item in a batch, whose requests replace whole items.
        condition: replaces the condition of a request that alone decides.
        objects: what the live item must meet for the objects that the write replaces; see `replacement.only_declared`.
        bounds: what sums of the live item must meet; see `transactions.bounds`.
        revision: the new revision, by which the write is recognised; empty for deletes.
        version: the version of the declaration in whose form it writes. A live item of a later one refuses it.
        partial: it leaves other fields as they are, so the live item must be of exactly this version.
        unread: of an update that has read nothing, whose items it may change without; it reads all others first.
        made: the item that a put stores, as it will be read.
        guarded: a delete of whatever was read first: it has succeeded once that item is gone.
    """

    kind: Kind
    key: ItemKey
    operation: str
    now: int
    item: Wire | None = None
    options: Mapping[str, Any] = MappingProxyType({})
    if_match: str | None = None
    revision: str = ""
    guarded: bool = False
    kept: Mapping[str, Any] = MappingProxyType({})
    condition: Condition | None = None
    objects: Condition | None = None
    bounds: Condition | None = None
    version: int = FIRST
    partial: bool = False
    unread: Owned | None = None
    made: Any = None

    @property
    def exact(self) -> bool:
        """Whether it demands an exact revision. Such a write may always be sent again: revisions never return."""
        return self.if_match is not None

    def request(self, table: str, place: str) -> Wire:
        """Return the request that writes at a stored partition key, without its condition."""
        if self.operation == "PutItem":
            return {"TableName": table, "Item": self.stored(place), **self.options}
        return {"TableName": table, "Key": {PK: {"S": place}, SK: {"S": self.key.sort}}, **self.options}

    def stored(self, place: str) -> Wire:
        """Return the item that a put stores at a stored partition key."""
        # To copy a dictionary and add to it takes a third of the time of a display that names it.
        stored = dict(self.item or ())
        if self.kept:
            stored.update(self.kept)
        stored[PK], stored[SK] = {"S": place}, {"S": self.key.sort}
        return stored

    def creation(self) -> "Write":
        """Return the put of its item where none is live: as a whole, whatever an expired one has."""
        returned = {name: value for name, value in self.options.items() if name == "ReturnValues"}
        return replace(self, operation="PutItem", options=returned)

    def action(self, table: str, place: str, condition: Condition) -> Wire:
        """Return the action of a transaction that writes at a stored partition key."""
        request = self.request(table, place)
        request.pop("ReturnValues", None)
        return {_ACTIONS[self.operation]: condition.on(request)}

    def direct_condition(self) -> Condition:
        """Return the condition if one request decides."""
        if self.condition is not None:
            return self.condition
        if self.kind is Kind.CREATE:
            return self.absent_condition()
        return self._on_stored(live_or_none(self.now)) if self.kind is Kind.UPSERT else self.live_condition()

    def live_condition(self) -> Condition:
        """Return the condition for replacing a live item."""
        return self._on_stored(live(self.now, if_match=self.if_match))

    def on_version(self, condition: Condition) -> Condition:
        """Return the condition, which also demands a type and a version that this write may replace."""
        condition &= of_version(self.version, exactly=self.partial)
        if self.unread is None:
            return condition
        name, untyped = self.unread
        return condition & of_type(name, untyped=untyped, or_none=self.kind is Kind.UPSERT)

    def _on_stored(self, condition: Condition) -> Condition:
        if self.operation in _VERSIONED:
            condition = self.on_version(condition)
        if self.objects is not None:
            condition &= self.objects
        return condition if self.bounds is None else condition & self.bounds

    def refused_unread(self, found: Mapping[str, Any] | None) -> bool:
        """Whether a stored item has made the condition fail by its type, version or objects alone, so it is read."""
        if self.kind is Kind.CREATE:
            return False
        replaces = self.operation not in _VERSIONED or self._replaces(version_in(found or {}))
        if replaces and self.objects is None and (self.unread is None or self.unread.has(found or {})):
            return False
        return self._meets_revision(found)

    def refused_for_bounds(self, found: Mapping[str, Any] | None) -> bool:
        """Whether a stored item has made the condition fail by its sums alone."""
        return self.bounds is not None and self._meets_revision(found)

    def _meets_revision(self, found: Mapping[str, Any] | None) -> bool:
        if found is None or not is_live(found, self.now):
            return False
        return self.if_match is None or revision_in(found) == self.if_match

    def _replaces(self, version: int | None) -> bool:
        """Whether it may replace a stored item of a version."""
        return version == self.version or (version is not None and version < self.version and not self.partial)

    def absent_condition(self) -> Condition:
        """Return the condition for storing an item if none is live."""
        return absent(self.now)

    def did(self, stored: Mapping[str, Any] | None) -> bool:
        """Whether a stored item or marker proves that this write was executed."""
        return wrote(self.revision, stored)


class Done(NamedTuple):
    """The result of a write that was executed: the attributes of the answer, if they were asked for.

    If there was no answer, it is `proved` by a stored item, and has its attributes.
    """

    attributes: Mapping[str, Any] | None = None
    proved: bool = False


def send(store: Store, write: Write, place: str, condition: Condition) -> Done:
    """Send a write to a stored partition key.

    Raises:
        ConditionFailedError: the condition failed, and not because of an earlier attempt of this write. If it is
            `ambiguous`, an earlier attempt may still be executed.
        OutcomeUnknownError: no usable answer came.

    Cost: one request.
    """
    request = condition.on(write.request(store.table, place))
    resend = Resend.ALWAYS if write.exact else Resend.IF_NOT_EXECUTED
    try:
        answer = store.transport.call(write.operation, request, resend=resend)
    except ConditionFailedError as failed:
        if failed.ambiguous and write.did(failed.item):
            return Done(failed.item, proved=True)
        raise
    return Done(answer.get("Attributes"))
