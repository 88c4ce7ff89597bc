"""Reads back what was acknowledged, as any client of the layer would."""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from dynashard.service import Collection
from dynashard_lab.simulate.layer.entities import version_of
from dynashard_lab.simulate.layer.operations import Stored

_PAGE: Final = 1_000


class Found(NamedTuple):
    """How many acknowledged items are lost, are listed twice, and have another value than the last acknowledged one."""

    lost: int
    doubled: int
    stale: int


def read_back(collection: Collection[Any], acknowledged: Iterable[Stored]) -> Found:
    """List the logical partitions of acknowledged items, and compare them."""
    wanted: dict[str, dict[str, int]] = {}
    for tenant, id_, version in acknowledged:
        wanted.setdefault(tenant, {})[id_] = version
    lost = doubled = stale = 0
    for tenant, versions in wanted.items():
        found: dict[str, int] = {}
        for page in collection.pages({"tenant_id": tenant}, limit=_PAGE, fields=["id", "data"], consistent=True):
            for item in page.items:
                doubled += item["id"] in found
                found[item["id"]] = version_of(item["data"])
        lost += len(versions.keys() - found.keys())
        stale += sum(found.get(id_, version) != version for id_, version in versions.items())
    return Found(lost, doubled, stale)
