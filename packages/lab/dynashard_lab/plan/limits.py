"""Facts about DynamoDB on which the planner's arithmetic rests, each with its source and the date of its reading.

Sources are pages of the DynamoDB Developer Guide unless they are named in full.
"""

from typing import Final

READ_UNIT_BYTES: Final = 4096
"""One read unit reads up to 4 KB strongly consistently. Source: read-write-operations, read 2026-11-22."""
WRITE_UNIT_BYTES: Final = 1024
"""One write unit writes up to 1 KB. Source: read-write-operations, read 2026-11-22."""
TRANSACTION_FACTOR: Final = 2
"""A transaction doubles the units of each item. Source: read-write-operations, read 2026-11-22."""

PARTITION_READ_UNITS: Final = 3000
"""Read units a second that one partition serves. Source: bp-partition-key-design, read 2026-11-22."""
PARTITION_WRITE_UNITS: Final = 1000
"""Write units a second that one partition serves. Source: bp-partition-key-design, read 2026-11-22."""
PARTITION_BYTES: Final = 10 * 1024**3
"""A partition splits near 10 GB. Source: AWS Database Blog, "Scaling DynamoDB" part 3, read 2026-11-22."""

NEW_TABLE_READ_UNITS: Final = 12_000
"""Reads a second that a new on-demand table serves. Source: on-demand-capacity-mode, read 2026-11-22."""
NEW_TABLE_WRITE_UNITS: Final = 4_000
"""Writes a second that a new on-demand table serves. Source: on-demand-capacity-mode, read 2026-11-22."""
PEAK_FACTOR: Final = 2
"""An on-demand table serves twice its previous peak at once. Source: on-demand-capacity-mode, read 2026-11-22."""
DOUBLING_SECONDS: Final = 1800
"""Beyond twice the peak within 30 minutes requests may be throttled. Source: as `PEAK_FACTOR`."""
TABLE_QUOTA_UNITS: Final = 40_000
"""Default quota of a table, for reads and for writes. Source: on-demand-capacity-mode, read 2026-11-22."""

ITEM_OVERHEAD_BYTES: Final = 100
"""Bytes of storage billed for each item besides its own. Source: CapacityUnitCalculations, from its text of 2024; not
read again in 2026."""
MONTH_HOURS: Final = 730
"""Hours of a month in AWS's price calculator."""
GIGABYTE: Final = 1024**3
