"""How far each task has come: items of their own in the topology table, so that a killed worker loses little.

Their keys begin with `@`, which no record's does, and they have no `number_of_shards`. They are hints: working on a
task twice, or again from an earlier position, does no harm.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any, Final

from dynashard.codec import decode_value
from dynashard.errors import ConditionFailedError, DynashardError
from dynashard.schema import TOPOLOGY_KEY
from dynashard.topology.table import read_items
from dynashard.transport.interface import Call, Resend, Transport, Wire


class Pass(StrEnum):
    """What is done with all items of a task."""

    CHECK = "check"
    """Before a resize begins: clear the new homes of items that stand there by mistake."""
    SURVEY = "survey"
    """Count the items that will move."""
    MOVE = "move"
    """Move items, or rewrite their index keys."""
    SETTLE = "settle"
    """The second pass: move items that late requests have put at their old homes."""
    BACKFILL = "backfill"
    """No resize: write what a change of a declaration asks for; see `dynashard.backfills`."""
    SWEEP = "sweep"
    """Delete the relocation markers, and move items that were put at their old homes later still."""


@dataclass(frozen=True, slots=True)
class Position:
    """How far a task has been read: the number of the source, and the last stored key read in it, if any."""

    source: int = 0
    key: Wire | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What work has done.

    Attributes:
        moved: items moved, or index keys rewritten.
        late: items moved that were stored at their old home after the mover had passed.
        swept: relocation markers deleted.
        left: items that stay at a place that is not their home, because their home is taken.
        write_units, read_units: capacity consumed.
    """

    moved: int = 0
    late: int = 0
    swept: int = 0
    left: int = 0
    write_units: float = 0.0
    read_units: float = 0.0


@dataclass(frozen=True, slots=True)
class Progress(Counters):
    """How far a task of a record's resize has come.

    Attributes:
        resize: the id of the resize.
        done: whether the pass is complete.
        counted: whether the items to move, `total`, were counted beforehand.
        after: when the budget allows the next write, in epoch seconds.
        begins: whether none of it is stored yet.
    """

    key: str
    task: int
    resize: str
    kind: Pass
    position: Position = Position()
    done: bool = False
    counted: bool = False
    total: int = 0
    after: float = 0.0
    begins: bool = False

    def at(self, following: Position | None) -> "Progress":
        """Return the progress with another position; None if the pass is complete."""
        return replace(self, done=True) if following is None else replace(self, position=following)


_ZERO: Final = Counters()
_SUMMED: Final = tuple(counter.name for counter in fields(Counters))
_COUNTERS: Final = ("total", *_SUMMED)


def sums(progress: Sequence[Progress]) -> dict[str, Any]:
    """Return the sum of each of `Counters`, by name."""
    return {name: sum((getattr(each, name) for each in progress), getattr(_ZERO, name)) for name in _SUMMED}


def open_tasks(progress: Sequence[Progress], kind: Pass, tasks: int) -> tuple[int, ...]:
    """Return the tasks that are not complete."""
    complete = {each.task for each in progress if each.kind is kind and each.done}
    return tuple(task for task in range(tasks) if task not in complete)


@dataclass(frozen=True, slots=True)
class ProgressTable:
    """Progress by record and task, in a topology table. Safe to share between threads."""

    transport: Transport
    table: str

    def of(self, key: str, resize: str, tasks: int) -> list[Progress]:
        """Return the progress of the tasks of a resize that have begun. Cost: 1 round trip, 1 read unit a task."""
        items = read_items(self.transport, self.table, [_stored_key(key, task) for task in range(tasks)])
        known = (_decode(key, item) for item in items)
        return [each for each in known if each is not None and each.resize == resize]

    def begin(self, key: str, task: int, resize: str, kind: Pass) -> Progress:
        """Return the progress of a task, or its start if it has not begun. Cost: 1 round trip, 1 read unit."""
        items = read_items(self.transport, self.table, [_stored_key(key, task)])
        known = _decode(key, items[0]) if items else None
        if known is None or known.resize != resize:
            return Progress(key, task, resize, kind, begins=True)
        if known.kind is kind:
            return known
        # Counters go on through all passes of a resize.
        return replace(known, kind=kind, position=Position(), done=False, after=0.0, begins=True)

    def save(self, was: Progress, now: Progress) -> Progress:
        """Store how far a task has come since `was`, and return what is stored now, perhaps by another worker.

        The counters of other workers are added to. Cost: 1 round trip, 1 write unit.
        """
        now = replace(now, begins=False)
        request = {
            "TableName": self.table,
            "Key": {TOPOLOGY_KEY: {"S": _stored_key(now.key, now.task)}},
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            **_update(was, now),
        }
        try:
            # Executed twice, it counts twice; executed late, it resets the position or starts the pass again. Counters
            # are only shown, and items that are passed over once more stay as they are.
            self.transport.call("UpdateItem", request, resend=Resend.ALWAYS)
        except ConditionFailedError as failed:
            return (failed.item and _decode(now.key, failed.item)) or now
        return now

    def clear(self, key: str, resize: str, tasks: int) -> None:
        """Delete the progress of a resize. If that fails, the next resize overwrites it. Cost: 1 write unit a task."""
        condition = {
            "TableName": self.table,
            "ConditionExpression": "#change = :change",
            "ExpressionAttributeNames": {"#change": "change"},
            "ExpressionAttributeValues": {":change": {"S": resize}},
        }
        keys = ({TOPOLOGY_KEY: {"S": _stored_key(key, task)}} for task in range(tasks))
        with suppress(DynashardError):
            self.transport.call_all([Call("DeleteItem", {**condition, "Key": each}) for each in keys])


def _stored_key(key: str, task: int) -> str:
    return f"@{task}@{key}"


def _number(value: float) -> Wire:
    return {"N": str(value) if isinstance(value, int) else repr(round(value, 6))}


def _update(was: Progress, now: Progress) -> Wire:
    """The update from one progress to another: the first of a pass sets its counters, every other adds to them."""
    of: Wire = {"change": {"S": now.resize}, "kind": {"S": now.kind.value}}
    state: Wire = {
        "source": _number(now.position.source),
        "done": {"BOOL": now.done},
        "counted": {"BOOL": now.counted},
        "after": _number(now.after),
    }
    if now.position.key is not None:
        state["cursor"] = {"M": now.position.key}
    steps: Wire = {}
    names = {}
    if was.begins:
        condition = "attribute_not_exists(#key) OR #change <> :change OR #kind <> :kind"
        names["#key"] = TOPOLOGY_KEY
        state |= {**of, "task": _number(now.task), **{name: _number(getattr(now, name)) for name in _COUNTERS}}
    else:
        condition = "#change = :change AND #kind = :kind AND #done = :open"
        steps = {name: _number(getattr(now, name) - getattr(was, name)) for name in _COUNTERS}
        of["open"] = {"BOOL": False}
    expression = "SET " + ", ".join(f"#{name} = :{name}" for name in state)
    expression += "" if "cursor" in state else " REMOVE #cursor"
    expression += " ADD " + ", ".join(f"#{name} :{name}" for name in steps) if steps else ""
    return {
        "UpdateExpression": expression,
        "ConditionExpression": condition,
        "ExpressionAttributeNames": {f"#{name}": name for name in ("change", "kind", "cursor", *state, *steps)} | names,
        "ExpressionAttributeValues": {f":{name}": value for name, value in {**of, **state, **steps}.items()},
    }


def _decode(key: str, wire: Mapping[str, Any]) -> Progress | None:
    """Return stored progress; None if it is of a pass that only another release knows. Members may be missing."""
    plain = decode_value({"M": {name: value for name, value in wire.items() if name != "cursor"}})
    if plain.get("kind") not in tuple(Pass):
        return None
    return Progress(
        key=key,
        task=plain["task"],
        resize=plain["change"],
        kind=Pass(plain["kind"]),
        position=Position(plain.get("source", 0), wire["cursor"]["M"] if "cursor" in wire else None),
        done=plain.get("done", False),
        counted=plain.get("counted", False),
        after=float(plain.get("after", 0)),
        total=int(plain.get("total", 0)),
        **{name: type(getattr(_ZERO, name))(plain.get(name, 0)) for name in _SUMMED},
    )
