"""Finds the stored records of shard counts that an earlier release does not understand."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from dynashard.schema import TOPOLOGY_EPOCHS, TOPOLOGY_FORMER_COUNTS, TOPOLOGY_KEY, TOPOLOGY_UNDERSTOOD
from dynashard.transport.interface import Call, Transport, Wire
from dynashard.transport.paging import pages

_EFFECTS: Final = {
    TOPOLOGY_EPOCHS: "has grown by epochs: that release answers 500 to all requests for it, and resizes nothing of it",
    TOPOLOGY_FORMER_COUNTS: "has grown for new entries alone: that release may miss an entry, or list it twice, if it "
    "changes while it is listed",
}


@dataclass(frozen=True, slots=True)
class UnknownRecord:
    """A record of the topology with an attribute that a release does not understand."""

    key: str
    attribute: str

    def __str__(self) -> str:
        return f"{self.key} {_EFFECTS[self.attribute]}"


def unknown_records(transport: Transport, table: str, understood: Collection[str]) -> list[UnknownRecord]:
    """Return the records of a topology table that a release does not understand, in the order of their keys.

    Args:
        transport: to the table.
        table: its name.
        understood: the attributes that the release understands.

    Cost: 1 read unit for every 4 KB of the table; none if the release understands them all.
    """
    wanted = [name for name in TOPOLOGY_UNDERSTOOD if name not in understood]
    if not wanted:
        return []
    names = {f"#a{at}": name for at, name in enumerate(wanted)}
    request: Wire = {
        "TableName": table,
        "ConsistentRead": True,
        "FilterExpression": " OR ".join(f"attribute_exists({name})" for name in names),
        "ExpressionAttributeNames": names,
    }
    items = [item for answer in pages(transport, Call("Scan", request)) for item in answer["Items"]]
    found = [UnknownRecord(item[TOPOLOGY_KEY]["S"], name) for item in items for name in wanted if name in item]
    return sorted(found, key=lambda each: (each.key, each.attribute))
