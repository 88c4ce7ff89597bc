"""What it costs to read the whole table, before it is read."""

from math import ceil
from typing import Final

from dynashard.errors import DynashardError
from dynashard.resharding.estimate import READ_DOLLARS
from dynashard.transport.interface import Transport
from dynashard_tools.counting import plural

_BLOCK: Final = 4096
_GB: Final = 1e9


def described_reading(transport: Transport, table: str, *, readings: int) -> str:
    """Return what so many consistent readings of a table are expected to consume, as a line.

    DynamoDB brings the size of a table up to date about every six hours. Cost: 1 DescribeTable.
    """
    try:
        about = transport.call("DescribeTable", {"TableName": table})["Table"]
    except DynashardError as error:
        return f"this reads the whole table; what that takes is unknown ({error})"
    items, size = int(about.get("ItemCount", 0)), int(about.get("TableSizeBytes", 0))
    times = "once" if readings == 1 else "at least twice"
    if not size:
        return f"this reads the whole table {times}, whose size DynamoDB has not measured yet"
    units = ceil(readings * size / _BLOCK)
    return (
        f"this reads the whole table {times}: about {plural(items, 'stored item')} of all accounts, "
        f"{size / _GB:,.3f} GB. It consumes about {plural(units, 'read unit')} (${units * READ_DOLLARS:,.2f} on demand)"
    )
