"""What clients do in the rows of single items, batches and listings."""

from dataclasses import dataclass
from typing import Final

from dynashard_lab.bench.stored import BATCH, PAGE


@dataclass(frozen=True, slots=True)
class Work:
    """An operation of `Client`: how many items it answers, how often a sample does it, and the limit of the layer."""

    name: str
    operation: str
    items: int
    repeat: int
    limit: float | None = None


SINGLE: Final = (
    Work("get an item", "get", 1, 50, 0.09),
    Work("get an item that has an attachment", "attached", 1, 50),
    Work("put an item, on a condition, old values returned", "put", 1, 50, 0.12),
    Work("update an item, on a condition, new values returned", "update", 1, 50, 0.16),
    Work(f"put a batch of {BATCH}", "batch_write", BATCH, 10, 0.17),
    Work(f"get a batch of {PAGE}", "batch_get", PAGE, 5, 0.13),
)
PAGES: Final = (
    Work(f"list {PAGE} items", "page", PAGE, 4, 0.12),
    Work(f"list {PAGE} items, three fields of each", "three_fields", PAGE, 4, 0.18),
    Work(f"list {PAGE} items of an index", "index", PAGE, 4, 0.14),
)
