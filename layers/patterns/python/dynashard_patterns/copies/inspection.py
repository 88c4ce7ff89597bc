"""Compare all sources and all copies; find what has drifted, and repair it if wanted."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final, TypeAlias

from dynashard.entity import EntityDefinition, Undecodable, definition, judged
from dynashard.errors import InputError, TransactionRefusedError, UndecodableItemError
from dynashard.repository.conditions import is_live
from dynashard.repository.retry_policy import map_concurrently
from dynashard.repository.store import Store
from dynashard.schema import EXPIRES_AT, MOVED_TO, PK, REV, SK, TYPE
from dynashard.transport.paging import pages, segments
from dynashard_patterns.copies.drift import Drift, Progress
from dynashard_patterns.copies.materializer import CONCURRENCY, Materializer

_BATCH: Final = 100
_SEGMENTS: Final = 4
"""Parts of the table that are read at a time; one answer of each is held in memory."""
_Row: TypeAlias = dict[str, Any] | Undecodable
"""The key fields of a stored item, or the verdict that it does not fit."""
_UNFIT: Final = (
    InputError,
    TransactionRefusedError,
    UndecodableItemError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
)
"""Errors of a source, or of what makes copies of it, rather than of the table."""


def inspect(materializer: Materializer, partition: Mapping[str, Any] | None, *, mend: bool) -> Iterator[Progress]:
    """Compare sources and copies; see `MaterializedCopies.repair`."""
    progress = Progress()
    look = partial(_look, materializer.carry if mend else materializer.drift)
    for found in _batches(_sources(materializer, partition)):
        keys, undecodable = _divided(found)
        progress = progress.over(_looks(look, keys), undecodable, sources=len(found))
        yield progress
    for found in _batches(_copies(materializer, partition)):
        copies, undecodable = _divided(found)
        keys = list({tuple(key.values()): key for key in map(materializer.source_of, copies)}.values())
        progress = progress.over(_looks(look, materializer.absent(keys)), undecodable, copies=len(found))
        yield progress
    yield progress.over({}, ())


def _divided(found: Sequence[_Row]) -> tuple[list[dict[str, Any]], list[Undecodable]]:
    """The key fields of rows, and the rows that are undecodable."""
    undecodable = [each for each in found if isinstance(each, Undecodable)]
    return [each for each in found if not isinstance(each, Undecodable)], undecodable


def _looks(
    look: Callable[[Mapping[str, Any]], Drift | str], keys: Sequence[Mapping[str, Any]]
) -> dict[str, Drift | str]:
    """Look at some sources at a time; return the results by their keys as text."""
    texts = [", ".join(f"{name}={value}" for name, value in key.items()) for key in keys]
    return dict(zip(texts, map_concurrently(look, keys, CONCURRENCY), strict=True))


def _look(look: Callable[[Mapping[str, Any]], Drift], key: Mapping[str, Any]) -> Drift | str:
    """What differs for one source; or why it cannot have copies, which must not stop the others."""
    try:
        return look(key)
    except _UNFIT as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]


def _sources(materializer: Materializer, partition: Mapping[str, Any] | None) -> Iterator[_Row]:
    entity = definition(materializer.of)
    if partition is None:
        yield from _rows(materializer.db.store, entity, entity.key_fields)
        return
    found = materializer.db.collection(materializer.of).scan(partition, fields=entity.key_fields, consistent=True)
    yield from found
    yield from found.undecodable


def _copies(materializer: Materializer, partition: Mapping[str, Any] | None) -> Iterator[_Row]:
    source, copy = definition(materializer.of), definition(materializer.copy)
    wanted = None if partition is None else source.logical_partition(partition)
    for fields in _rows(materializer.db.store, copy, copy.key_fields):
        if isinstance(fields, Undecodable):
            # Its fields do not say whose copy it is, so it is named whatever partition is compared.
            yield fields
        elif wanted is None or source.logical_partition(materializer.source_of(fields)) == wanted:
            yield fields


def _batches(members: Iterable[_Row]) -> Iterator[list[_Row]]:
    left = iter(members)
    while batch := list(islice(left, _BATCH)):
        yield batch


def _rows(store: Store, entity: EntityDefinition[Any], fields: Sequence[str]) -> Iterator[_Row]:
    """Some fields of every live item of an entity, by a Scan of the whole table.

    A row without a type is the entity's if its partition key begins with the entity's prefix.
    """
    part, beginning = partial(entity.part, fields=fields), f"{entity.prefix}{entity.separator}"
    attributes = dict.fromkeys([PK, SK, TYPE, REV, EXPIRES_AT, *entity.attributes_of(fields)])
    names = {f"#{at}": name for at, name in enumerate(attributes)}
    kind = next(alias for alias, name in names.items() if name == TYPE)
    request = {
        "TableName": store.table,
        "ConsistentRead": True,
        "FilterExpression": f"({kind} = :type OR attribute_not_exists({kind})) AND attribute_not_exists({MOVED_TO})",
        "ProjectionExpression": ", ".join(names),
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": {":type": {"S": entity.name}},
    }
    for answer in pages(store.transport, *segments(request, _SEGMENTS), pauses=store.retry_policy.pauses):
        for item in answer["Items"]:
            if is_live(item, store.now()) and (TYPE in item or (entity.prefix and item[PK]["S"].startswith(beginning))):
                yield judged(part, item)
