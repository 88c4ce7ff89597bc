"""Query over items in memory, for cases that an engine cannot reproduce.

An answer may end after any item, as DynamoDB ends it at 1 MB. Index entries with equal sort keys are in any order. A
last key may be returned although no item is left. The shard count may change between two pages.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import md5
from random import Random
from typing import Any

from dynashard.placement import CALCULATED
from dynashard.reads.bounds import Bounds
from dynashard.reads.filters import FilterExpression
from dynashard.reads.layout import Layout
from dynashard.reads.sources import Reading, Source
from dynashard.schema import PK, SK, index_pk, index_sk
from dynashard.testing.one_by_one import OneByOne
from dynashard.transport.interface import Call, Resend, Wire

SLOT = "GSI1"
KEPT = FilterExpression("kept = :kept", {}, {":kept": {"BOOL": True}})
NO_FILTER = FilterExpression("", {}, {})
_CONDITION = re.compile(r"^\w+ = :partition(?: AND \w+ (?P<operator>BETWEEN|[<>]=?) .*)?$")


def table_row(partition: str, sort: str, *, kept: bool = True, hidden: bool = False) -> Wire:
    return {PK: {"S": partition}, SK: {"S": sort}, "kept": {"BOOL": kept}, "hidden": {"BOOL": hidden}}


def index_row(partition: str, sort: str, item: str, *, kept: bool = True, hidden: bool = False) -> Wire:
    row = table_row("items", item, kept=kept, hidden=hidden)
    return {**row, index_pk(SLOT): {"S": partition}, index_sk(SLOT): {"S": sort}}


def reading(slot: str | None, *, forward: bool, filtered: bool = False, bounds: Bounds | None = None) -> Reading:
    """Return a reading of the rows above that skips hidden rows."""
    return Reading(
        table="memory",
        slot=slot,
        bounds=bounds or Bounds(),
        forward=forward,
        visible=lambda row: not row["hidden"]["BOOL"],
        filters=KEPT if filtered else NO_FILTER,
    )


def hash_of(row: Wire) -> int:
    """Return the hash that places one of the rows above."""
    return CALCULATED.hash(row[SK]["S"])


def layout(how: Reading, sources: Sequence[Source]) -> Layout:
    """Return a layout of these sources without a resize."""
    identity = None if how.slot is None else (lambda _, sort: sort)
    return Layout(tuple(sources), how, len(sources), hash_of, identity=identity)


@dataclass
class MemoryTransport(OneByOne):
    """Answers Queries from rows in memory.

    Attributes:
        slot: the index slot; None for the table.
        random: decides where answers end.
        cut: the largest number of items in an answer; None for no limit.
        size: the bytes of each item, by which an answer ends at 1 MB and consumes units; 0 if neither.
        read: how many rows were read so far.
        waves: how many requests were sent at a time.
        asked: the stored partition key of each request.
        before: called before each request.
    """

    slot: str | None
    random: Random
    cut: int | None = None
    size: int = 0
    read: int = 0
    waves: list[int] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    before: Callable[[], object] = lambda: None
    _rows: dict[str, list[Wire]] = field(default_factory=dict)

    def store(self, rows: Iterable[Wire]) -> None:
        """Replace all rows."""
        self._rows = {}
        for row in rows:
            self._rows.setdefault(row[self._names[0]]["S"], []).append(row)
        for shard in self._rows.values():
            shard.sort(key=self._place)

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        del resend
        self.waves.append(1)
        return self._answer(operation, request)

    def call_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire]:
        del concurrency
        self.waves.append(len(calls))
        return [self._answer(call.operation, call.request) for call in calls]

    @property
    def _names(self) -> tuple[str, str]:
        return (PK, SK) if self.slot is None else (index_pk(self.slot), index_sk(self.slot))

    def _place(self, row: Mapping[str, Any]) -> tuple[str, str]:
        """Return the place of a row in its shard. DynamoDB does not define the order of equal index sort keys."""
        tie = "" if self.slot is None else md5((row[PK]["S"] + row[SK]["S"]).encode()).hexdigest()  # noqa: S324
        return row[self._names[1]]["S"], tie

    def _answer(self, operation: str, request: Mapping[str, Any]) -> Wire:
        assert operation == "Query"
        self.before()
        forward = request.get("ScanIndexForward", True)
        values = request["ExpressionAttributeValues"]
        self.asked.append(values[":partition"]["S"])
        in_range = self._range(request)
        rows = [r for r in self._rows.get(values[":partition"]["S"], ()) if in_range(r)]
        if not forward:
            rows.reverse()
        start = request.get("ExclusiveStartKey")
        if start is not None:
            # DynamoDB refuses a start outside of the condition.
            assert in_range(start), (request, start)
            place = self._place(start)
            rows = [r for r in rows if (self._place(r) > place if forward else self._place(r) < place)]
        most = min(request["Limit"], self.random.randint(1, self.cut) if self.cut else request["Limit"])
        if self.size:
            most = min(most, 1024 * 1024 // self.size)
        read, left = rows[:most], rows[most:]
        self.read += len(read)
        passed = [r for r in read if r["kept"]["BOOL"]] if "FilterExpression" in request else read
        answer: Wire = {"Items": passed, "ConsumedCapacity": {"CapacityUnits": max(0.5, len(read) * self.size / 8192)}}
        if left or (len(read) == most and self.random.random() < 0.5):
            keys = {PK, SK, *self._names}
            answer["LastEvaluatedKey"] = {name: read[-1][name] for name in keys}
        return answer

    def _range(self, request: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], bool]:
        match = _CONDITION.fullmatch(request["KeyConditionExpression"])
        assert match, request
        values, attribute = request["ExpressionAttributeValues"], self._names[1]
        low, high = (values.get(name, {}).get("S") for name in (":low", ":high"))
        checks: dict[str | None, Callable[[str], bool]] = {
            None: lambda _: True,
            "BETWEEN": lambda key: low <= key <= high,
            ">": lambda key: key > low,
            ">=": lambda key: key >= low,
            "<": lambda key: key < high,
            "<=": lambda key: key <= high,
        }
        check = checks[match["operator"]]
        return lambda row: check(row[attribute]["S"])
