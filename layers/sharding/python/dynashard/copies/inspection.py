"""A look over all sources and all copies: what has drifted is found, and mended if wanted."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from dynashard.copies.drift import Drift, Progress
from dynashard.copies.keeper import LANES, Keeper
from dynashard.copies.scan import rows
from dynashard.entity import definition
from dynashard.repository.patience import at_once

_BATCH: Final = 100


def inspect(keeper: Keeper, partition: Mapping[str, Any] | None, *, mend: bool) -> Iterator[Progress]:
    """Compare sources and copies; see `Copies.repair`.

    Args:
        keeper: of the copies.
        partition: the sources' logical partition; all of them if None.
        mend: whether what differs is written.
    """
    come = Progress()
    look = keeper.carry if mend else keeper.drift
    for keys in _batches(_sources(keeper, partition)):
        drift = sum(at_once(look, keys, LANES), Drift())
        come = replace(come, sources=come.sources + len(keys), drift=come.drift + drift)
        yield come
    for copies in _batches(_copies(keeper, partition)):
        keys = list({tuple(key.values()): key for key in map(keeper.source_of, copies)}.values())
        drift = sum(at_once(look, keeper.absent(keys), LANES), Drift())
        come = replace(come, copies=come.copies + len(copies), drift=come.drift + drift)
        yield come
    yield come


def _sources(keeper: Keeper, partition: Mapping[str, Any] | None) -> Iterator[dict[str, Any]]:
    entity = definition(keeper.of)
    if partition is None:
        yield from rows(keeper.db.store, entity, entity.key_fields)
        return
    # Asked for fields, a scan brings mappings instead of entities.
    found: Iterator[Any] = keeper.db.collection(keeper.of).scan(partition, fields=entity.key_fields, consistent=True)
    yield from found


def _copies(keeper: Keeper, partition: Mapping[str, Any] | None) -> Iterator[dict[str, Any]]:
    source, copy = definition(keeper.of), definition(keeper.copy)
    wanted = None if partition is None else source.logical_partition(partition)
    for fields in rows(keeper.db.store, copy, copy.key_fields):
        if wanted is None or source.logical_partition(keeper.source_of(fields)) == wanted:
            yield fields


def _batches(members: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    left = iter(members)
    while batch := list(islice(left, _BATCH)):
        yield batch
