"""Which shard counts may be halved by themselves: those that were quiet for long, and whose shards can become empty."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from dynashard.entity import EntityDefinition
from dynashard.placement import PARTS
from dynashard.resharding.scope import Scope
from dynashard.topology import Record, family_of


def may_shrink(scope: Scope, record: Record, entities: Iterable[EntityDefinition[Any]]) -> bool:
    """Whether a count may be halved by itself, however quiet it is.

    With random placement no item moves: the shards that writers leave must become empty. So every entity of the family
    must let its items expire; else the resize would wait for ever, and writers would have fewer shards meanwhile. The
    parts of a value only become more.
    """
    shards = scope.shards
    if shards is None or shards.rule is PARTS or not shards.rule.powers_of_two or record.count // 2 < shards.count:
        return False
    if record.busy or record.resize.get("cause") == "operator" or scope.time is not None:
        return False
    family = [each for each in entities if family_of(each) == scope.family]
    return scope.moves or all(each.expires is not None for each in family)


def quiet(record: Record, seconds: float, now: float, *, grew: float | None) -> bool:
    """Whether a count was unchanged for so many seconds; after it was halved and grew again, twice as many, and so on.

    `now`, and `grew`, when this process has last looked at it because of a throttle, are in epoch seconds.
    """
    if grew is not None and now < grew + seconds:
        return False
    needed: float = seconds * 2 ** _regrown(record)
    return now - float(record.updated) >= needed


def _regrown(record: Record) -> int:
    """How often a record's count grew again after it was halved."""
    entries = sorted((int(epoch), int(count)) for epoch, _, count in (each.partition(":") for each in record.history))
    counts = [count for _, count in entries]
    grown = sum(1 for old, new in pairwise(counts) if new == record.count and old < new)
    return max(0, grown - 1)
