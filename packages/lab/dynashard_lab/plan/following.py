"""What a write causes afterwards: roll-ups and copies, the stream that carries it to them, and the queue before it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from dynashard_lab.plan.cost import on_demand_dollars
from dynashard_lab.plan.limits import MONTH_HOURS
from dynashard_lab.plan.prices import Prices

_MILLION: Final = 1_000_000
_MONTH_SECONDS: Final = MONTH_HOURS * 3600
_TRANSACTION: Final = 2
"""Units of 1 KB in a transaction, in which copies and roll-ups are written."""
_COUNTED: Final = 2.0
"""Write units of the item that records that something was counted. Source: docs/rollups.md, Cost."""
_LEVEL_SHARED: Final = 0.05
"""Write units of a level, for each item, if all items of a batch are counted in one row. Source: docs/rollups.md: 2.2
units in all for four levels."""
_LEVEL_ALONE: Final = 1.5
"""The same if each item of a batch is counted in rows of its own, but months are shared: 8.0 units in all."""
_COPIES_CHECK: Final = 2.0
"""Write units of the check of the source in the transaction that writes its copies. Source: docs/copies.md, Cost."""
_RECORDS_A_BATCH: Final = 100
"""Records that the stream's consumer takes at once, if they come fast enough. Source: `dynashard_cdk.changes`."""
_RECORD_SECONDS: Final = 0.0005
"""An assumption: a batch of 100 records takes 50 ms, the time of some transactions, in a function of 1 GB."""
_QUEUE_REQUESTS: Final = (0.006, 3.0)
"""Requests of SQS for a write: 50 in a message and 10 messages in a call (docs/firehose.md), or each by itself: sent,
received and deleted (docs/asynchronous.md)."""
_QUEUE_MILLION: Final = 0.40
"""Dollars of a million requests to a standard queue, us-east-1. Source: copies of AWS's price page, read 2026-11-23."""
_INVOCATIONS_MILLION: Final = 0.20
_GB_SECOND: Final = 0.0000133334
"""Dollars of a function on arm64, us-east-1. Source: as above. Lambda's reads of a table's stream are free."""

Range = tuple[float, float]
"""The least and the most."""


@dataclass(frozen=True, slots=True)
class Derived:
    """What is written besides an item, each time that it is written.

    Attributes:
        name: of the copies or roll-ups.
        write_units: for one write of the item.
        read_units: for one write.
    """

    name: str
    write_units: Range
    read_units: float = 0.0


@dataclass(frozen=True, slots=True)
class Part:
    """One part of what follows writes, in US dollars a month, on demand."""

    name: str
    dollars: Range
    write_units: Range = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Following:
    """All that follows writes. `together` includes the table itself, on demand, without storage."""

    parts: tuple[Part, ...]
    together: Range


def rolled_up(name: str, levels: int) -> Derived:
    """Return what counting an item in so many levels costs."""
    return Derived(name, (_COUNTED + _LEVEL_SHARED * levels, _COUNTED + _LEVEL_ALONE * levels))


def copied(name: str, copies: float, *, units: float, indexes: float) -> Derived:
    """Return what so many copies of an item cost: nothing if a write changes none of them, or all are written.

    `units` are those of one copy, and `indexes` those of its index entries.
    """
    most = _COPIES_CHECK + copies * (_TRANSACTION * units + indexes) if copies else 0.0
    return Derived(name, (0.0, most), read_units=2.0 + copies * units / 4)


def following(
    derived: Sequence[Derived], *, writes: float, queued: bool, table: float, prices: Prices
) -> Following | None:
    """Return what follows a mean of so many writes a second; None if nothing does.

    `table` are the dollars of the table itself. What roll-ups and copies write is counted on demand.
    """
    if not derived and not queued:
        return None
    parts = [_written(each, writes, prices) for each in derived]
    if derived:
        parts.append(Part("stream", _range(_consumed(writes * (1 + items)) for items in _items(derived))))
    if queued:
        requests = (writes * _MONTH_SECONDS * each / _MILLION for each in _QUEUE_REQUESTS)
        parts.append(Part("queue", _range(each * _QUEUE_MILLION for each in requests)))
    return Following(tuple(parts), _range(table + sum(part.dollars[at] for part in parts) for at in (0, 1)))


def _written(derived: Derived, writes: float, prices: Prices) -> Part:
    dollars = (on_demand_dollars(writes * units, writes * derived.read_units, prices) for units in derived.write_units)
    return Part(derived.name, _range(dollars), derived.write_units)


def _items(derived: Sequence[Derived]) -> Range:
    """How many items are written for one write, each of which is a record of the stream too."""
    return _range(sum(each.write_units[at] for each in derived) / _TRANSACTION for at in (0, 1))


def _consumed(records: float) -> float:
    """Dollars a month of the function that consumes so many records a second."""
    invocations = records * _MONTH_SECONDS / _RECORDS_A_BATCH / _MILLION * _INVOCATIONS_MILLION
    return invocations + records * _MONTH_SECONDS * _RECORD_SECONDS * _GB_SECOND


def _range(values: Iterable[float]) -> Range:
    low, high = values
    return low, high
