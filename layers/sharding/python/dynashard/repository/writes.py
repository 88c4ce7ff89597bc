"""What a write wants, whatever stored partition key it ends up at."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from dynashard.entity import ItemKey
from dynashard.errors import ConditionFailedError
from dynashard.repository.conditions import Condition, absent, live, unmarked, written_by
from dynashard.repository.store import Store
from dynashard.schema import PK, SK
from dynashard.transport.interface import Wire


class Kind(Enum):
    """What a write does, depending on what there is."""

    CREATE = "create"
    """Makes an item where there is no live one."""
    UPSERT = "upsert"
    """Takes the place of whatever there is."""
    CHANGE = "change"
    """Replaces, updates or deletes a live item."""


@dataclass(frozen=True, slots=True)
class Write:
    """One write, to be sent to wherever its item lives, as often as it takes.

    Attributes:
        kind: what it does.
        key: whose item.
        operation: `PutItem`, `UpdateItem` or `DeleteItem`.
        now: the time by which items expire, in epoch seconds.
        item: the item to put, without its stored key.
        options: all other parameters but table, stored key and condition.
        if_match: the revision a `CHANGE` asks for.
        revision: the id by which the write recognises its own work; empty for deletes.
    """

    kind: Kind
    key: ItemKey
    operation: str
    now: int
    item: Wire | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    if_match: str | None = None
    revision: str = ""

    def request(self, table: str, place: str) -> Wire:
        """The request, but for its condition, that writes at a stored partition key."""
        stored = {PK: {"S": place}, SK: {"S": self.key.sort}}
        if self.item is None:
            return {"TableName": table, "Key": stored, **self.options}
        return {"TableName": table, "Item": {**stored, **self.item}, **self.options}

    def alone(self) -> Condition:
        """The condition where one request does it all."""
        if self.kind is Kind.CREATE:
            return self.creating()
        return unmarked() if self.kind is Kind.UPSERT else self.changing()

    def changing(self) -> Condition:
        """The condition for writing over a live item."""
        # A put that is repeated changes nothing; an update would add twice.
        not_by = self.revision if self.operation == "UpdateItem" else None
        return live(self.now, if_match=self.if_match, not_by=not_by)

    def creating(self) -> Condition:
        """The condition for writing where nothing lives."""
        return absent(self.now)

    def did(self, stored: Mapping[str, Any] | None) -> bool:
        """Whether a stored item, marked or not, is the work of an earlier attempt of this very write."""
        return bool(self.revision) and written_by(stored, self.revision)


@dataclass(frozen=True, slots=True)
class Done:
    """What a write came to.

    Attributes:
        attributes: the attributes that the answer brought, if they were asked for.
        again: an earlier attempt had done it; `attributes` is what was found stored.
    """

    attributes: Mapping[str, Any] | None = None
    again: bool = False


def send(store: Store, write: Write, place: str, condition: Condition) -> Done:
    """Send a write to a stored partition key.

    Raises:
        ConditionFailedError: and it was not an earlier attempt of this write that made it fail.

    Cost: one request.
    """
    request = condition.on(write.request(store.table, place))
    try:
        answer = store.transport.call(write.operation, request)
    except ConditionFailedError as failed:
        if write.did(failed.item):
            return Done(failed.item, again=True)
        raise
    return Done(answer.get("Attributes"))
