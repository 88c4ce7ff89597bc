"""What a write wants, whatever stored partition key it ends up at."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from dynashard.entity import ItemKey
from dynashard.errors import ConditionFailedError
from dynashard.repository.conditions import Condition, absent, live, unmarked
from dynashard.repository.evidence import Proof, judge
from dynashard.repository.store import Store
from dynashard.schema import PK, SK
from dynashard.transport.interface import Resend, Wire


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
        guarded: the item was read first, to delete it whatever it is: if it is gone, that is done.
    """

    kind: Kind
    key: ItemKey
    operation: str
    now: int
    item: Wire | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    if_match: str | None = None
    revision: str = ""
    guarded: bool = False

    @property
    def exact(self) -> bool:
        """Whether it is conditional on the exact revision that it replaces or deletes, and may always be sent again.

        Once it is done, or anything else was done to the item, that revision is gone for ever.
        """
        return self.if_match is not None

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
        return live(self.now, if_match=self.if_match)

    def creating(self) -> Condition:
        """The condition for writing where nothing lives."""
        return absent(self.now)

    def did(self, stored: Mapping[str, Any] | None) -> bool:
        """Whether a stored item, marked or not, proves that this very write was done."""
        return judge(self, stored, ambiguous=True) is Proof.DONE


@dataclass(frozen=True, slots=True)
class Done:
    """What a write came to.

    Attributes:
        attributes: the attributes that the answer brought, if they were asked for.
        proved: no answer said so, but what is stored proves it; `attributes` is what was found.
    """

    attributes: Mapping[str, Any] | None = None
    proved: bool = False


def send(store: Store, write: Write, place: str, condition: Condition) -> Done:
    """Send a write to a stored partition key.

    Raises:
        ConditionFailedError: and it was not an earlier attempt of this write that made it fail. If it is `ambiguous`,
            an earlier attempt may still be executed.
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
