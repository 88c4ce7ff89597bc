"""The simulated database: each request to the engine takes a turn, and faults are injected.

- A transaction becomes visible action by action. The first action is applied together with checks of all others, and
  the others follow turn by turn. In between, other writes and transactions on its keys get a conflict, and plain reads
  see some of its writes.
- Requests are throttled, not sent, lost before or after they were applied, or applied after their sender has given up.
  Their sender sends them again (`transport.py`).
- A request of a killed actor is not sent. A transaction that has begun completes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any, Final

from dynashard.entity.uniqueness import RESERVATION
from dynashard.errors import DynashardError, EngineUnavailableError, TransactionCanceledError
from dynashard.schema import TOPOLOGY_KEY
from dynashard.topology.records import Record, decode
from dynashard.transactions.transaction import SETTLED
from dynashard.transport.classification import unanswered
from dynashard.transport.interface import Wire
from dynashard_checks.schedules.history import Check, History
from dynashard_checks.schedules.requests import (
    KEYS,
    StoredKey,
    batch_key_of,
    check_of,
    key_of,
    refused,
    summary,
    unconditional,
)
from dynashard_checks.schedules.scheduler import Actor, Killed, Scheduler
from dynashard_checks.schedules.wire import TABLE, TOPOLOGY, LeanWire

PLAIN: Final = frozenset({"PutItem", "UpdateItem", "DeleteItem"})
WRITES: Final = PLAIN | {"TransactWriteItems", "BatchWriteItem"}
_ACTIONS: Final = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem"}
_THROTTLES: Final = (
    ("TableWriteKeyRangeThroughputExceeded", TABLE),
    ("TableReadKeyRangeThroughputExceeded", TABLE),
    ("TableWriteMaxOnDemandThroughputExceeded", TABLE),
    ("IndexWriteKeyRangeThroughputExceeded", f"{TABLE}/index/GSI1"),
)


def _holds_item(key: StoredKey) -> bool:
    """Whether an item of the entity may be stored at a key, rather than a record or the layer's own row."""
    return key[0] == TABLE and key[1] != SETTLED and key[2] != RESERVATION


@dataclass
class Faults:
    """Draws the faults of requests.

    Attributes:
        random: draws them.
        rate: the share of requests that meet a fault.
        left: how many faults may still be injected.
    """

    random: Random
    rate: float = 0.0
    left: int = 8

    def draw(self, operation: str) -> str:
        """Return the fault of a request; mostly none, which is empty."""
        if not self.rate or not self.left or self.random.random() >= self.rate:
            return ""
        self.left -= 1
        kinds = ["throttled", "unreachable", "lost_request"]
        if operation in WRITES:
            kinds += ["conflict", "lost_answer", "lost_answer", "late"]
        if operation.startswith("Batch"):
            kinds += ["unprocessed"]
        return self.random.choice(kinds)


@dataclass
class Database:
    """The simulated database, which all actors of a schedule share."""

    wire: LeanWire
    scheduler: Scheduler
    history: History
    faults: Faults
    written: set[StoredKey] = field(default_factory=set)
    _locked: set[StoredKey] = field(default_factory=set)
    _tokens: dict[str, tuple[Sequence[Wire], Wire]] = field(default_factory=dict)
    _running_tokens: set[str] = field(default_factory=set)
    _token_numbers: Iterator[int] = field(default_factory=count)
    _records: dict[str, Wire | None] = field(default_factory=dict)
    _late: int = 0

    def call(self, actor: Actor, operation: str, request: Mapping[str, Any], check: Check | None) -> Wire:
        """Send a request in the actor's next turn."""
        self.scheduler.pause(actor)
        fault = self._draw_fault(operation, request, check)
        self.scheduler.note(actor, lambda: f"{fault + ' ' if fault else ''}{operation} {summary(request)}")
        if fault:
            return self._inject(fault, actor, operation, request, check)
        return self._send(actor, operation, request, check)

    def _draw_fault(self, operation: str, request: Mapping[str, Any], check: Check | None) -> str:
        """Draw the fault of a request. `check` is given if a client's operation sends it."""
        del request, check
        return self.faults.draw(operation)

    def _inject(
        self, fault: str, actor: Actor, operation: str, request: Mapping[str, Any], check: Check | None
    ) -> Wire:
        if fault == "throttled":
            reason, resource = self.faults.random.choice(_THROTTLES)
            reasons = [{"reason": reason, "resource": f"arn:aws:dynamodb:eu-west-1:123456789012:table/{resource}"}]
            code = self.faults.random.choice(("ThrottlingException", "ProvisionedThroughputExceededException"))
            raise refused(operation, code, throttlingReasons=reasons)
        if fault == "conflict":
            raise self._conflict(operation, request)
        if fault == "unprocessed":
            return self._unprocessed(actor, operation, request, check)
        if fault == "late":
            self._deliver_late(actor, operation, request, check)
        if fault == "lost_answer":
            self._send(actor, operation, request, check)
        if fault == "unreachable":
            raise EngineUnavailableError("No connection.", operation=operation, aws_code="EndpointConnectionError")
        raise unanswered(operation, "ReadTimeoutError", f"The request was hit: {fault}")

    def _deliver_late(self, sender: Actor, operation: str, request: Mapping[str, Any], check: Check | None) -> None:
        """Send the request after its sender has given up, but within the time of an operation."""

        def arrive(ghost: Actor) -> None:
            self.scheduler.pause_inside(ghost)
            self.scheduler.note(ghost, lambda: f"arrives: {operation} {summary(request)}")
            try:
                self._send(ghost, operation, request, check)
            except DynashardError as error:
                self.scheduler.note(ghost, f"-> {type(error).__name__}")

        self._late += 1
        # Set it now rather than in its first turn, so that the clock does not pass the sender's time.
        self.scheduler.spawn(f"late{self._late}", arrive).topology_read_at = sender.topology_read_at

    def _send(self, actor: Actor, operation: str, request: Mapping[str, Any], check: Check | None) -> Wire:
        try:
            if operation == "TransactWriteItems":
                return self._transact(actor, request, check)
            if operation == "BatchWriteItem":
                return self._batch_write(request, check)
            if operation in PLAIN:
                return self._plain(operation, request, check)
            if operation == "TransactGetItems":
                self._refuse_locked(operation, [key_of(action["Get"]) for action in request["TransactItems"]])
            answer = self._read(operation, request)
            self.scheduler.note(None, lambda: f"-> {summary(answer)}")
        except DynashardError as error:
            self.scheduler.note(None, f"-> {type(error).__name__} {getattr(error, 'reasons', '')}")
            raise
        return answer

    def _read(self, operation: str, request: Mapping[str, Any]) -> Wire:
        """Send a read. Records of the topology are read again only after they were written."""
        if TOPOLOGY not in request.get("RequestItems", ()):
            return self.wire.call(operation, request)
        asked = request["RequestItems"][TOPOLOGY]
        if missing := [key for key in asked["Keys"] if key[TOPOLOGY_KEY]["S"] not in self._records]:
            self._records.update((key[TOPOLOGY_KEY]["S"], None) for key in missing)
            answer = self.wire.call(operation, {"RequestItems": {TOPOLOGY: {**asked, "Keys": missing}}})
            self._records.update((item[TOPOLOGY_KEY]["S"], item) for item in answer["Responses"][TOPOLOGY])
        found = [self._records[key[TOPOLOGY_KEY]["S"]] for key in asked["Keys"]]
        return {"Responses": {TOPOLOGY: [item for item in found if item is not None]}, "UnprocessedKeys": {}}

    def record(self, key: str) -> Record | None:
        """Return a record of the topology without a turn."""
        keys = {"Keys": [{TOPOLOGY_KEY: {"S": key}}], "ConsistentRead": True}
        found = self._read("BatchGetItem", {"RequestItems": {TOPOLOGY: keys}})["Responses"][TOPOLOGY]
        return decode(found[0]) if found else None

    def _plain(self, operation: str, request: Mapping[str, Any], check: Check | None) -> Wire:
        key = key_of(request)
        if key in self._locked:
            raise refused(operation, "TransactionConflictException")
        return self._write(operation, request, check)

    def _write(self, operation: str, request: Mapping[str, Any], check: Check | None) -> Wire:
        """Apply a single write, and report it to the history."""
        asked = request
        if operation == "UpdateItem" and request.get("ReturnValues", "NONE") == "NONE":
            asked = {**request, "ReturnValues": "ALL_NEW"}
        answer = self.wire.call(operation, asked)
        item: Wire | None = None
        if operation == "PutItem":
            item = request["Item"]
        elif operation == "UpdateItem":
            item = answer["Attributes"] if asked["ReturnValues"] == "ALL_NEW" else self._stored(key_of(request))
        self._record(key_of(request), item, check)
        return answer

    def _record(self, key: StoredKey, item: Wire | None, check: Check | None) -> None:
        self.written.add(key)
        table, *rest = key
        if table == TOPOLOGY:
            self._records.pop(rest[0], None)
        if _holds_item(key):
            self.history.applied(rest[0], rest[1], item, check)

    def _stored(self, key: StoredKey) -> Wire | None:
        table, *rest = key
        wire = dict(zip(KEYS[table], ({"S": value} for value in rest), strict=True))
        answer = self.wire.call("GetItem", {"TableName": table, "Key": wire, "ConsistentRead": True})
        item: Wire | None = answer.get("Item")
        return item

    def _batch_write(self, request: Mapping[str, Any], check: Check | None) -> Wire:
        [(table, actions)] = request["RequestItems"].items()
        free = [action for action in actions if batch_key_of(table, action) not in self._locked]
        left = [action for action in actions if batch_key_of(table, action) in self._locked]
        answer: Wire = {"UnprocessedItems": {}}
        if free:
            answer = self.wire.call("BatchWriteItem", {**request, "RequestItems": {table: free}})
        for action in free:
            self._record(batch_key_of(table, action), action.get("PutRequest", {}).get("Item"), check)
        return {**answer, "UnprocessedItems": {table: left}} if left else answer

    def _unprocessed(self, actor: Actor, operation: str, request: Mapping[str, Any], check: Check | None) -> Wire:
        """Send all members of a batch but one, and return that one as unprocessed."""
        [(table, asked)] = request["RequestItems"].items()
        members = asked if operation == "BatchWriteItem" else asked["Keys"]
        done, left = members[1:], members[:1]
        answer: Wire = {"Responses": {}}
        if operation == "BatchWriteItem":
            if done:
                answer = self._send(actor, operation, {**request, "RequestItems": {table: done}}, check)
            left += answer.get("UnprocessedItems", {}).get(table, [])
            return {**answer, "UnprocessedItems": {table: left}}
        if done:
            answer = self._send(actor, operation, {"RequestItems": {table: {**asked, "Keys": done}}}, check)
        return {**answer, "UnprocessedKeys": {table: {**asked, "Keys": left}}}

    def _transact(self, actor: Actor, request: Mapping[str, Any], check: Check | None) -> Wire:
        actions = request["TransactItems"]
        # The SDK adds a token to a transaction without one.
        token = request.get("ClientRequestToken") or f"made by the SDK: {next(self._token_numbers)}"
        if (known := self._known(token, actions)) is not None:
            return known
        keys = [key_of(next(iter(action.values()))) for action in actions]
        self._refuse_locked("TransactWriteItems", keys)
        writing = [at for at, action in enumerate(actions) if "ConditionCheck" not in action]
        if not writing:
            return self.wire.call("TransactWriteItems", {"TransactItems": actions})
        self.faults.random.shuffle(writing)
        answer = self._first(actions, writing[0])
        self._locked.update(keys)
        self._running_tokens.add(token)
        mine = [keys[at][-1] for at in writing if _holds_item(keys[at])]
        try:
            if mine:
                self.history.begin(self._items_after(actions), by_client=check is not None)
            self._apply(actions[writing[0]], keys[writing[0]], check)
            for at in writing[1:]:
                for _ in range(self.faults.random.choice((1, 3, 10, 40))):
                    self.scheduler.pause_inside(actor)
                self.scheduler.note(actor, "... its transaction continues")
                kind, action = next(iter(actions[at].items()))
                self._write(_ACTIONS[kind], unconditional(action), check)
        finally:
            self._locked.difference_update(keys)
            self._running_tokens.discard(token)
        if mine:
            self.history.end(dict.fromkeys(mine), check)
        self._tokens[token] = actions, answer
        if actor.doomed:
            raise Killed
        return answer

    def _known(self, token: str, actions: Sequence[Wire]) -> Wire | None:
        """Return the answer to a transaction that was done before; None for a new one.

        Raises:
            EngineError: it is running, or another transaction was done with its token.
        """
        if token in self._running_tokens:
            raise refused("TransactWriteItems", "TransactionInProgressException")
        done, answer = self._tokens.get(token, (actions, None))
        if done != actions:
            raise refused("TransactWriteItems", "IdempotentParameterMismatchException")
        return answer

    def _first(self, actions: Sequence[Wire], first: int) -> Wire:
        """Apply one action of a transaction if the conditions of all actions hold."""
        sent, places = [], []
        for at, action in enumerate(actions):
            [(kind, body)] = action.items()
            if at != first and kind != "ConditionCheck":
                if "ConditionExpression" not in body:
                    continue
                action = {"ConditionCheck": check_of(body)}  # noqa: PLW2901 - the check replaces it
            sent.append(action)
            places.append(at)
        try:
            return self.wire.call("TransactWriteItems", {"TransactItems": sent})
        except TransactionCanceledError as error:
            none = type(error.reasons[0])("None")
            reasons = dict(zip(places, error.reasons, strict=True))
            error.reasons = tuple(reasons.get(at, none) for at in range(len(actions)))
            raise

    def _apply(self, action: Wire, key: StoredKey, check: Check | None) -> None:
        """Report the effect of the first action to the history."""
        [(kind, body)] = action.items()
        item = body["Item"] if kind == "Put" else None if kind == "Delete" else self._stored(key)
        self._record(key, item, check)

    def _items_after(self, actions: Sequence[Wire]) -> dict[str, Wire | None]:
        """Return the item of each key in the item table after a transaction. For an update it is the item before."""
        coming: dict[str, Wire | None] = {}
        for action in actions:
            [(kind, body)] = action.items()
            if kind == "ConditionCheck" or not _holds_item(key_of(body)):
                continue
            key = key_of(body)[-1]
            coming.setdefault(key, None)
            if kind == "Put" and "MovedTo" not in body["Item"]:
                coming[key] = body["Item"]
            if kind == "Update" and "MovedTo" not in body["UpdateExpression"]:
                coming[key] = self._stored(key_of(body))
        return coming

    def _refuse_locked(self, operation: str, keys: Sequence[StoredKey]) -> None:
        if not self._locked.isdisjoint(keys):
            codes = [{"Code": "TransactionConflict" if key in self._locked else "None"} for key in keys]
            raise refused(operation, "TransactionCanceledException", CancellationReasons=codes)

    def _conflict(self, operation: str, request: Mapping[str, Any]) -> DynashardError:
        if operation == "TransactWriteItems":
            codes = [{"Code": "None"} for _ in request["TransactItems"]]
            self.faults.random.choice(codes)["Code"] = "TransactionConflict"
            return refused(operation, "TransactionCanceledException", CancellationReasons=codes)
        return refused(operation, "TransactionConflictException")
