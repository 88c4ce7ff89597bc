"""A look over all sources and all copies: what has drifted is found, and mended if wanted."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, Final

from dynashard.entity import definition
from dynashard.errors import InputError, UndecodableItemError
from dynashard.repository.retry_policy import at_once
from dynashard_patterns.copies.drift import Drift, Progress
from dynashard_patterns.copies.keeper import LANES, Keeper
from dynashard_patterns.copies.scan import rows

_BATCH: Final = 100
_UNFIT: Final = (InputError, UndecodableItemError, ValueError, TypeError, LookupError, AttributeError)
"""What says that a source is at fault, or what makes copies of it, and not the table or the way to it."""


def inspect(keeper: Keeper, partition: Mapping[str, Any] | None, *, mend: bool) -> Iterator[Progress]:
    """Compare sources and copies; see `Copies.repair`.

    Args:
        keeper: of the copies.
        partition: the sources' logical partition; all of them if None.
        mend: whether what differs is written.
    """
    come = Progress()
    look = partial(_look, keeper.carry if mend else keeper.drift)
    for keys in _batches(_sources(keeper, partition)):
        come = come.over(at_once(look, keys, LANES), sources=len(keys))
        yield come
    for copies in _batches(_copies(keeper, partition)):
        keys = list({tuple(key.values()): key for key in map(keeper.source_of, copies)}.values())
        come = come.over(at_once(look, keeper.absent(keys), LANES), copies=len(copies))
        yield come
    yield come


def _look(look: Callable[[Mapping[str, Any]], Drift], key: Mapping[str, Any]) -> Drift | str:
    """What differs for one source; or why there can be no copies of it, which must not keep the others waiting."""
    try:
        return look(key)
    except _UNFIT as error:
        return f"{ {name: str(value) for name, value in key.items()} }: {type(error).__name__}: {error}".splitlines()[0]


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
