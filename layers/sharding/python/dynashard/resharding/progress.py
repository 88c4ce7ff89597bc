"""How far each task has come: items of their own in the topology table, so that a killed worker loses little.

Their keys begin with `@`, which no record's does, and they have no `number_of_shards`. They are hints: a task that
is worked on twice, or again from an earlier place, does no harm.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from dynashard.codec import decode_item
from dynashard.errors import ConditionFailedError, DynashardError, EngineUnavailableError
from dynashard.schema import TOPOLOGY_KEY
from dynashard.transport.interface import Call, Resend, Transport, Wire

_ROUNDS: Final = 5


class Pass(StrEnum):
    """What is done with all items of a task."""

    CHECK = "check"
    """Before a change begins: clear the new homes of what stands there by mistake."""
    SURVEY = "survey"
    """Count those that will move."""
    MOVE = "move"
    """Move them, or rewrite their index keys."""
    SETTLE = "settle"
    """Move what requests have put at its old home that the database executed late: the second pass."""
    SWEEP = "sweep"
    """Delete the marks they have left, and move what was put there later still."""


@dataclass(frozen=True, slots=True)
class Position:
    """How far a task has been read.

    Attributes:
        source: the number of the source within the task.
        key: the last stored key read in it; None for its beginning.
    """

    source: int = 0
    key: Wire | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a task has come.

    Attributes:
        key: of the record.
        task: its number.
        change: the id of the change.
        kind: what is being done.
        position: how far it has been read.
        done: whether it is complete.
        counted: whether its items were counted beforehand.
        total, moved, swept: items to move, items moved, marks deleted.
        late: items moved that were stored at their old home after the mover had passed.
        left: items that stay at a place that is not their home, because their home is taken.
        write_units, read_units: what it has taken.
        after: when the budget allows the next write, in epoch seconds.
        begins: whether nothing of it is written down yet.
    """

    key: str
    task: int
    change: str
    kind: Pass
    position: Position = Position()
    done: bool = False
    counted: bool = False
    total: int = 0
    moved: int = 0
    late: int = 0
    swept: int = 0
    left: int = 0
    write_units: float = 0.0
    read_units: float = 0.0
    after: float = 0.0
    begins: bool = False


class ProgressTable:
    """Progress by record and task. Safe to share between threads.

    Args:
        transport: the wire.
        table: the topology table's name.
    """

    def __init__(self, transport: Transport, table: str) -> None:
        self._transport = transport
        self._table = table

    def of(self, key: str, change: str, tasks: int) -> list[Progress]:
        """What is known of the tasks of a change; those that have not begun are left out.

        Cost: 1 round trip, 1 read unit a task.
        """
        waiting = [self._key(key, task) for task in range(tasks)]
        found: list[Progress] = []
        for _ in range(_ROUNDS):
            if not waiting:
                return [each for each in found if each.change == change]
            request = {"RequestItems": {self._table: {"Keys": waiting, "ConsistentRead": True}}}
            answer = self._transport.call("BatchGetItem", request)
            found += [_decode(key, item) for item in answer.get("Responses", {}).get(self._table, ())]
            waiting = answer.get("UnprocessedKeys", {}).get(self._table, {}).get("Keys", [])
        raise EngineUnavailableError("DynamoDB leaves the progress unread. Try again.", operation="BatchGetItem")

    def begin(self, key: str, task: int, change: str, kind: Pass) -> Progress:
        """Where a task stands, at its beginning if it has not begun. Writes nothing.

        Cost: 1 round trip, 1 read unit.
        """
        request = {"TableName": self._table, "Key": self._key(key, task), "ConsistentRead": True}
        item = self._transport.call("GetItem", request).get("Item")
        known = _decode(key, item) if item else None
        if known is None or known.change != change:
            return Progress(key, task, change, kind, begins=True)
        if known.kind is kind:
            return known
        return replace(known, kind=kind, position=Position(), done=False, after=0.0, begins=True)

    def save(self, was: Progress, now: Progress) -> Progress:
        """Write down how far a task has come, adding what was done since to what others may have done.

        Returns:
            What stands there now: that, or what another worker has written meanwhile.

        Cost: 1 round trip, 1 write unit.
        """
        if was.begins:
            return self._put(replace(now, begins=False))
        request: Wire = {
            "TableName": self._table,
            "Key": self._key(now.key, now.task),
            "ConditionExpression": "#change = :change AND #kind = :kind AND #done = :open",
            **_since(was, now),
        }
        # Sent twice, it counts twice, and executed late, it takes the position back: counts are shown and not relied
        # upon, and what is passed over once more is left as it is.
        return self._written("UpdateItem", request, now)

    def clear(self, key: str, change: str, tasks: int) -> None:
        """Delete what is known of the tasks of a change. What cannot be deleted now is overwritten by the next one.

        Cost: 1 write unit a task.
        """
        calls = [
            Call(
                "DeleteItem",
                {
                    "TableName": self._table,
                    "Key": self._key(key, task),
                    "ConditionExpression": "#change = :change",
                    "ExpressionAttributeNames": {"#change": "change"},
                    "ExpressionAttributeValues": {":change": {"S": change}},
                },
            )
            for task in range(tasks)
        ]
        try:
            self._transport.call_all(calls)
        except DynashardError:
            return

    def _put(self, progress: Progress) -> Progress:
        """Put the first progress of a pass, unless another worker of the same has."""
        request: Wire = {
            "TableName": self._table,
            "Item": {**self._key(progress.key, progress.task), **_encode(progress)},
            "ConditionExpression": "attribute_not_exists(#key) OR #change <> :change OR #kind <> :kind",
            "ExpressionAttributeNames": {"#key": TOPOLOGY_KEY, "#change": "change", "#kind": "kind"},
            "ExpressionAttributeValues": {":change": {"S": progress.change}, ":kind": {"S": progress.kind.value}},
        }
        # Executed late, it makes a pass begin anew, which then finds nothing to do.
        return self._written("PutItem", request, progress)

    def _written(self, operation: str, request: Wire, progress: Progress) -> Progress:
        """Send a conditional write; what stands there afterwards."""
        request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        try:
            self._transport.call(operation, request, resend=Resend.ALWAYS)
        except ConditionFailedError as failed:
            return progress if failed.item is None else _decode(progress.key, failed.item)
        return progress

    @staticmethod
    def _key(key: str, task: int) -> Wire:
        return {TOPOLOGY_KEY: {"S": f"@{task}@{key}"}}


_COUNTS: Final = ("total", "moved", "late", "swept", "left")
_UNITS: Final = ("write_units", "read_units")
COUNTERS: Final = (*_COUNTS, *_UNITS)


def add(progress: Iterable[Progress], counter: str) -> Any:
    """The sum of a counter."""
    return sum(getattr(each, counter) for each in progress)


def open_tasks(done: Sequence[Progress], kind: Pass, tasks: int) -> tuple[int, ...]:
    """The tasks that are not complete."""
    complete = {each.task for each in done if each.kind is kind and each.done}
    return tuple(task for task in range(tasks) if task not in complete)


def _number(value: float) -> Wire:
    return {"N": str(value) if isinstance(value, int) else repr(round(value, 6))}


def _since(was: Progress, now: Progress) -> Wire:
    """The parts of an UpdateItem request that bring one progress to another."""
    state, steps = _state(now), {name: getattr(now, name) - getattr(was, name) for name in COUNTERS}
    expression = "SET " + ", ".join(f"#{name} = :{name}" for name in state)
    expression += "" if "cursor" in state else " REMOVE #cursor"
    expression += " ADD " + ", ".join(f"#{name} :{name}" for name in steps)
    return {
        "UpdateExpression": expression,
        "ExpressionAttributeNames": {f"#{name}": name for name in ("change", "kind", "cursor", *state, *steps)},
        "ExpressionAttributeValues": {
            ":change": {"S": now.change},
            ":kind": {"S": now.kind.value},
            ":open": {"BOOL": False},
            **{f":{name}": value for name, value in state.items()},
            **{f":{name}": _number(step) for name, step in steps.items()},
        },
    }


def _state(progress: Progress) -> Wire:
    """What of a progress is replaced, where its counters are added to."""
    wire: Wire = {
        "source": {"N": str(progress.position.source)},
        "done": {"BOOL": progress.done},
        "counted": {"BOOL": progress.counted},
        "after": {"N": repr(progress.after)},
    }
    return wire if progress.position.key is None else {**wire, "cursor": {"M": progress.position.key}}


def _encode(progress: Progress) -> Wire:
    return {
        "task": {"N": str(progress.task)},
        "change": {"S": progress.change},
        "kind": {"S": progress.kind.value},
        **_state(progress),
        **{name: _number(getattr(progress, name)) for name in COUNTERS},
    }


def _decode(key: str, wire: Mapping[str, Any]) -> Progress:
    plain = decode_item({name: value for name, value in wire.items() if name != "cursor"})
    cursor = wire.get("cursor")
    counters: dict[str, Any] = {name: int(plain.get(name, 0)) for name in _COUNTS}
    counters |= {name: float(plain.get(name, 0)) for name in _UNITS}
    return Progress(
        key=key,
        task=plain["task"],
        change=plain["change"],
        kind=Pass(plain["kind"]),
        position=Position(plain["source"], cursor["M"] if cursor else None),
        done=plain["done"],
        counted=plain["counted"],
        after=float(plain["after"]),
        **counters,
    )
