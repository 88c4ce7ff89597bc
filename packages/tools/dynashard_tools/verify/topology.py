"""Checks that the records of the topology table can be true: nothing is compared by a shard count that is not."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from dynashard.errors import UndecodableItemError
from dynashard.placement import UNSHARDED, is_power_of_two
from dynashard.schema import MAX_SHARDS, TOPOLOGY_COUNT, TOPOLOGY_KEY
from dynashard.topology import Record
from dynashard.topology.records import decode
from dynashard.transport.interface import Call, Transport, Wire
from dynashard.transport.paging import pages
from dynashard_tools.verify.findings import Finding, Kind
from dynashard_tools.verify.parts import Check, Part


@dataclass(frozen=True, slots=True)
class Damage:
    """What is wrong with the records of a topology table.

    Attributes:
        records: how many were read.
        problems: by the key of a record.
        families: those of which a record is damaged. Nothing of them can be compared.
    """

    records: int
    problems: Mapping[str, str]
    families: frozenset[str]

    def findings(self, family: str | None = None) -> Iterator[Finding]:
        """Return a finding for each damaged record, of a family or of all."""
        for key, problem in sorted(self.problems.items()):
            if family is None or belongs(key, family):
                yield Finding(Kind.TOPOLOGY, key, problem)


@dataclass(frozen=True, slots=True)
class TopologyCheck(Check):
    """Reports the damaged records of a family, or of all. They are not repaired: only the items show what is true."""

    part: ClassVar[Part] = Part.TOPOLOGY

    damage: Callable[[], Damage]
    family: str | None

    def finish(self, advance: Callable[[int], None]) -> Iterator[Finding]:
        """Find the damaged records."""
        found = self.damage()
        advance(found.records)
        return found.findings(self.family)


def belongs(key: str, family: str) -> bool:
    """Whether a record is that of a family, of one of its logical partitions, or of one of its indexes."""
    return key == family or key.startswith((f"{family}:", f"{family}|"))


def damage_of(
    transport: Transport, table: str, families: Mapping[str, bool], pauses: Callable[[], Iterator[float]]
) -> Damage:
    """Return what is wrong with the records of a topology table.

    Args:
        transport: the way to DynamoDB.
        table: the topology table.
        families: the declared ones, and whether the counts of their partitions are powers of two.
        pauses: starts the backoff for a page that is throttled.

    Cost: a Scan of the topology table: 1 read unit for every 4 KB of it.
    """
    number, problems, damaged = 0, {}, set()
    for answer in pages(transport, Call("Scan", {"TableName": table, "ConsistentRead": True}), pauses=pauses):
        for wire in answer["Items"]:
            key = wire[TOPOLOGY_KEY]["S"]
            family = next((each for each in families if belongs(key, each)), None)
            if family is None and TOPOLOGY_COUNT not in wire:
                # The table also holds the progress of movers and of backfills.
                continue
            number += 1
            # Those of indexes always are. Nothing says it of partitions whose entity is not declared any more.
            powers = _is_of_index(key) or (family is not None and families[family])
            if found := "; ".join(_problems(wire, powers=powers)):
                problems[key] = found
                damaged.add(family or key)
    return Damage(number, problems, frozenset(damaged))


def _is_of_index(key: str) -> bool:
    return "|" in key.partition(":")[0]


def _problems(wire: Wire, *, powers: bool) -> Iterator[str]:
    try:
        record = decode(wire)
    except UndecodableItemError as error:
        yield str(error)
        return
    for what, value in (("resize", record.resize), ("backfills", record.backfilled)):
        if not isinstance(value, Mapping):
            yield f"what it says of {what} is {value!r}, which is not a mapping"
    yield from _wrong_counts(record, powers=powers)
    yield from _wrong_history(record, powers=powers)


def _wrong_counts(record: Record, *, powers: bool) -> Iterator[str]:
    for count in sorted({*record.counts, *(each.count for each in record.epochs)}):
        if not _is_count(count, powers=powers):
            form = "a power of two" if powers else "a number"
            yield f"{count} is not a shard count, which is {form} up to {MAX_SHARDS}"


def _wrong_history(record: Record, *, powers: bool) -> Iterator[str]:
    entries = [entry.partition(":")[::2] for entry in record.history]
    if wrong := [entry for entry in sorted(record.history) if not _is_entry(entry, powers=powers)]:
        yield f"its history has {', '.join(wrong)}, which is not a time with a count"
        return
    dated = sorted((int(since), int(count)) for since, count in entries)
    for since, times in Counter(since for since, _ in dated).items():
        if times > 1:
            yield f"its history has {times} counts since {since}"
    # The count of epochs is that of the newest keys, for which no items have moved.
    if dated and not record.epochs and dated[-1][1] != record.count:
        yield f"its count is {record.count}, and the newest one of its history {dated[-1][1]}"


def _is_entry(entry: str, *, powers: bool) -> bool:
    since, _, count = entry.partition(":")
    return _is_number(since) and _is_number(count) and _is_count(int(count), powers=powers)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _is_count(count: int, *, powers: bool) -> bool:
    if count == UNSHARDED:
        return True
    return is_power_of_two(count) and count <= MAX_SHARDS if powers else 0 < count <= MAX_SHARDS
