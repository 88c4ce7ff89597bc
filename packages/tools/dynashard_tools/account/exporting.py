"""Writes all items of an account into a file."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any, Final

from dynashard import Collection, Entity
from dynashard_serving.documents import representation, written
from dynashard_tools.account.tenant_data import Partition
from dynashard_tools.connection import Backend
from dynashard_tools.files import replacing
from dynashard_tools.left_out import LeftOut

ENTITY: Final = "entity"
ITEM: Final = "item"
"""Names of a line: the entity's name, and its item."""
_AT_A_TIME: Final = 4
"""Items whose attachments are read at once; each may have many MB."""


def export(
    backend: Backend,
    partitions: list[Partition],
    path: Path,
    *,
    workers: int,
    advance: Callable[[int], None],
    left_out: LeftOut,
) -> Counter[str]:
    """Write the items of logical partitions as JSON Lines: `{"entity": ..., "item": {...}}`, with their attachments.

    An item that exists all the time is written exactly once, also while shard counts change. Only its owner may read
    the file. `advance` is called with the number of items just written. Items that do not fit are `left_out`. Returns
    how many were written, by entity.

    Raises:
        CommandError: the file cannot be written.

    Cost: 0.5 read units for every 4 KB of the items, and 1 request more for each that has attachments.
    """
    done: Counter[str] = Counter()
    with replacing(path, mode=0o600) as file:
        for partition in partitions:
            items = backend.entities.collection(partition.entity.model)
            scan = items.scan(partition.fields, workers=workers)
            for item in _with_attachments(items, scan):
                line = {ENTITY: partition.entity.name, ITEM: representation(item, item.revision)}
                file.write(f"{written(line)}\n".encode())
                done[partition.entity.name] += 1
                advance(1)
            left_out.add(scan.undecodable)
    return done


def _with_attachments(items: Collection[Any], found: Iterator[Entity]) -> Iterator[Entity]:
    """Read items again with their attachments; leave out what was deleted meanwhile."""
    entity = items.entity
    if not entity.attachments:
        yield from found
        return

    def whole(item: Entity) -> Entity | None:
        key = {name: getattr(item, name) for name in entity.key_fields}
        complete: Entity | None = items.find(key, include=tuple(entity.attachments))
        return complete

    with ThreadPoolExecutor(_AT_A_TIME, thread_name_prefix="dynashard-account") as pool:
        while some := list(islice(found, _AT_A_TIME)):
            yield from (item for item in pool.map(whole, some) if item is not None)
