"""The hot-key experiment: the simulator's prediction against what DynamoDB admits, at 1 shard and at 4."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from dynashard.entity import ItemKey
from dynashard.entity.declaration import DEFAULT_SEPARATOR
from dynashard.placement import CALCULATED
from dynashard.routing import hash_of, shard_keys
from dynashard_checks.verify_aws.check import Check, Outcome, differs, dollars_of, holds, unclear
from dynashard_checks.verify_aws.checks.throttles import put_large
from dynashard_checks.verify_aws.context import Context
from dynashard_checks.verify_aws.load import ITEM_BYTES, ITEM_UNITS, send
from dynashard_lab.simulate.run import run
from dynashard_lab.simulate.scenario import Scenario

PARTITION: Final = "verify.v1.Item:hot"
SECONDS: Final = 60
RATES: Final = {1: 200.0, 4: 500.0}
"""Requests a second by shard count: above what the shards admit, and no more than it takes to see that."""
_SEEDS: Final = range(1, 9)
"""Which shards share a partition is chance, so the prediction is a range."""
_TOLERANCE: Final = 0.15
_ENOUGH: Final = 1.1
"""How far the offered rate must be above the predicted one to show a limit."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Requests a second: sent, and admitted at the end; and the range that the simulator predicts for those sent."""

    sent: float
    admitted: float
    lowest: float
    highest: float


def predicted(shards: int, rate: float) -> tuple[float, float]:
    """Return the lowest and the highest rate at which the simulator admits writes of a hot key at a shard count."""
    admitted = [run(_scenario(shards, rate, seed)).settled_rate for seed in _SEEDS]
    return min(admitted), max(admitted)


def _scenario(shards: int, rate: float, seed: int) -> Scenario:
    document: dict[str, Any] = {
        "title": "Hot key",
        "question": "How much does one key write on a new on-demand table?",
        "seconds": SECONDS,
        "settings": {"seed": seed},
        "demands": {"hot": {"partition": PARTITION, "shards": shards, "rate": rate, "item_bytes": ITEM_BYTES}},
    }
    return Scenario.model_validate(document)


def stored_partition(number: int, shards: int) -> str:
    """Return the stored partition key of the item of a number, by the layer's own placement."""
    shard = CALCULATED.shard(hash_of(CALCULATED, ItemKey(PARTITION, f"{number:08d}")), shards)
    return shard_keys(CALCULATED, PARTITION, DEFAULT_SEPARATOR, shards)[shard]


def hot_key(context: Context, shards: int) -> Outcome:
    """Write to one logical partition for a minute, and compare what is admitted with the prediction."""
    table = context.scratch.table(f"hot-key-{shards}")
    put = put_large(context, table, partial(stored_partition, shards=shards))
    traffic = send(put, rate=RATES[shards], seconds=SECONDS, clock=context.clock)
    if traffic.errors:
        return unclear(f"other errors came: {dict(traffic.errors)}")
    lowest, highest = predicted(shards, traffic.sent_rate)
    return judge_rates(Measured(traffic.sent_rate, traffic.settled_rate, lowest, highest))


def judge_rates(measured: Measured) -> Outcome:
    """Judge what was admitted by the simulator's prediction for what was sent."""
    units = [round(rate * ITEM_UNITS) for rate in (measured.sent, measured.admitted, measured.lowest, measured.highest)]
    seen = "{:,} units a second sent, {:,} admitted, {:,} to {:,} predicted".format(*units)
    if measured.sent < measured.lowest * _ENOUGH:
        return unclear(f"this machine does not send enough to show a limit: {seen}")
    if measured.lowest * (1 - _TOLERANCE) <= measured.admitted <= measured.highest * (1 + _TOLERANCE):
        return holds(seen)
    return differs(seen)


def _check(shards: int) -> Check:
    words = "one shard" if shards == 1 else f"{shards} shards"
    return Check(
        f"hot-key-{shards}",
        f"a hot key in {words} on a new table writes what the simulator predicts, within {_TOLERANCE:.0%}",
        partial(hot_key, shards=shards),
        dollars=dollars_of(write_units=RATES[shards] * SECONDS * ITEM_UNITS),
        seconds=SECONDS + 30,
    )


CHECKS: Final[Sequence[Check]] = tuple(_check(shards) for shards in RATES)
