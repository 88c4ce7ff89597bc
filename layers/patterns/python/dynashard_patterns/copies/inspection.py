"""A look over all sources and all copies: what has drifted is found, and mended if wanted."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, Final

from dynashard.entity import definition
from dynashard.errors import InputError, UndecodableItemError
from dynashard.repository.retry_policy import map_concurrently
from dynashard_patterns.copies.drift import Drift, Progress
from dynashard_patterns.copies.materializer import CONCURRENCY, Materializer
from dynashard_patterns.copies.scan import rows

_BATCH: Final = 100
_UNFIT: Final = (InputError, UndecodableItemError, ValueError, TypeError, LookupError, AttributeError)
"""What says that a source is at fault, or what makes copies of it, and not the table or the way to it."""


def inspect(materializer: Materializer, partition: Mapping[str, Any] | None, *, mend: bool) -> Iterator[Progress]:
    """Compare sources and copies; see `MaterializedCopies.repair`."""
    come = Progress()
    look = partial(_look, materializer.carry if mend else materializer.drift)
    for keys in _batches(_sources(materializer, partition)):
        come = come.over(map_concurrently(look, keys, CONCURRENCY), sources=len(keys))
        yield come
    for copies in _batches(_copies(materializer, partition)):
        keys = list({tuple(key.values()): key for key in map(materializer.source_of, copies)}.values())
        come = come.over(map_concurrently(look, materializer.absent(keys), CONCURRENCY), copies=len(copies))
        yield come
    yield come


def _look(look: Callable[[Mapping[str, Any]], Drift], key: Mapping[str, Any]) -> Drift | str:
    """What differs for one source; or why there can be no copies of it, which must not keep the others waiting."""
    try:
        return look(key)
    except _UNFIT as error:
        return f"{ {name: str(value) for name, value in key.items()} }: {type(error).__name__}: {error}".splitlines()[0]


def _sources(materializer: Materializer, partition: Mapping[str, Any] | None) -> Iterator[dict[str, Any]]:
    entity = definition(materializer.of)
    if partition is None:
        yield from rows(materializer.db.store, entity, entity.key_fields)
        return
    # Asked for fields, a scan brings mappings instead of entities.
    found: Iterator[Any] = materializer.db.collection(materializer.of).scan(
        partition, fields=entity.key_fields, consistent=True
    )
    yield from found


def _copies(materializer: Materializer, partition: Mapping[str, Any] | None) -> Iterator[dict[str, Any]]:
    source, copy = definition(materializer.of), definition(materializer.copy)
    wanted = None if partition is None else source.logical_partition(partition)
    for fields in rows(materializer.db.store, copy, copy.key_fields):
        if wanted is None or source.logical_partition(materializer.source_of(fields)) == wanted:
            yield fields


def _batches(members: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    left = iter(members)
    while batch := list(islice(left, _BATCH)):
        yield batch
