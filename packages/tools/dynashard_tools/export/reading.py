"""Reads the chosen items from the table: first finds the logical partitions, then lists each of them.

Shard counts may change meanwhile: an item that exists all the time is returned exactly once.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Final

from dynashard import Entity
from dynashard.errors import InvalidKeyError, UndecodableItemError
from dynashard.reads.filters import filter_expression
from dynashard.repository import RetryPolicy
from dynashard.schema import MOVED_TO, PK, SK, TYPE
from dynashard.transport import Call, Wire
from dynashard.transport.paging import pages
from dynashard_tools.connection import Backend
from dynashard_tools.entities import family, own_rows
from dynashard_tools.export.choice import Choice
from dynashard_tools.left_out import LeftOut

BATCH: Final = 500
"""Items that are returned together."""


def chosen(backend: Backend, choice: Choice, *, workers: int, left_out: LeftOut) -> Generator[Sequence[Entity]]:
    """Return the chosen items in no order, reading `workers` shards at a time. Items that do not fit are `left_out`.

    Cost: the whole table once, to find the entity's partitions, and these again: 0.5 read units for 4 KB. Memory for
    the partitions' keys, and two answers a worker.
    """
    items = backend.entities.collection(choice.model)
    for partition in list(partitions(backend, choice).values()):
        found = items.scan(partition, workers=workers, filters=choice.filters_within(partition))
        try:
            while batch := list(islice(found, BATCH)):
                yield batch
        finally:
            left_out.add(found.undecodable)


def partitions(backend: Backend, choice: Choice) -> dict[str, Mapping[str, Any]]:
    """Return the fields of the logical partitions that hold chosen items, by key. Cost: a Scan of the table."""
    entity = choice.entity
    found: dict[str, Mapping[str, Any]] = {}
    for item in _scanned(backend, choice):
        # An item that has no partition of its own is found, and named, where it stands beside others.
        with suppress(UndecodableItemError, InvalidKeyError):
            fields = entity.decode_fields(item, entity.partition_fields)
            found.setdefault(entity.logical_partition(fields), fields)
    return found


def _scanned(backend: Backend, choice: Choice) -> Iterator[Wire]:
    entity = choice.entity
    wanted = filter_expression(entity, choice.filters)
    fields = {f"#part{at}": name for at, name in enumerate(entity.attributes_of(entity.partition_fields))}
    own = f"{own_rows(entity)} AND attribute_not_exists({MOVED_TO})"
    request: dict[str, Any] = {
        "TableName": backend.table,
        "FilterExpression": f"{own} AND {wanted.text}" if wanted.text else own,
        "ProjectionExpression": ", ".join((PK, SK, "#type", *fields)),
        "ExpressionAttributeNames": {"#type": TYPE, **fields, **wanted.names},
        "ExpressionAttributeValues": {":type": {"S": entity.name}, **wanted.values},
    }
    known = family(entity)
    for answer in pages(backend.transport, Call("Scan", request), pauses=RetryPolicy().pauses):
        yield from (item for item in answer["Items"] if known.owner(item) is entity)
