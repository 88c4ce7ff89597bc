"""Reads back what was acknowledged, as any client of the layer would."""

from collections.abc import Sequence
from typing import Any, Final

from dynashard.service import Collection

_PAGE: Final = 1_000


def read_back(collection: Collection[Any], acknowledged: Sequence[tuple[str, str]]) -> tuple[int, int]:
    """List the logical partitions of acknowledged items, given by tenant and id.

    Returns:
        how many of them the listings lack, and how many items the listings have twice.
    """
    wanted: dict[str, set[str]] = {}
    for tenant, id_ in acknowledged:
        wanted.setdefault(tenant, set()).add(id_)
    lost = doubled = 0
    for tenant, ids in wanted.items():
        listed = [
            item["id"]
            for page in collection.pages({"tenant_id": tenant}, limit=_PAGE, fields=["id"], consistent=True)
            for item in page.items
        ]
        found = set(listed)
        doubled += len(listed) - len(found)
        lost += len(ids - found)
    return lost, doubled
