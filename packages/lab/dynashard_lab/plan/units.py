"""Read and write units of single operations, rounded as DynamoDB bills them."""

from enum import StrEnum

from dynashard_lab.plan.limits import READ_UNIT_BYTES, TRANSACTION_FACTOR, WRITE_UNIT_BYTES


class Consistency(StrEnum):
    """How a read is made."""

    EVENTUAL = "eventual"
    STRONG = "strong"
    TRANSACTIONAL = "transactional"


_READ_FACTORS = {
    Consistency.EVENTUAL: 0.5,
    Consistency.STRONG: 1.0,
    Consistency.TRANSACTIONAL: float(TRANSACTION_FACTOR),
}


def read_units(item_bytes: int, consistency: Consistency = Consistency.EVENTUAL) -> float:
    """Return the units of reading one item, in halves. A missing item costs as much as one of up to 4 KB."""
    return _blocks(item_bytes, READ_UNIT_BYTES) * _READ_FACTORS[consistency]


def query_units(total_bytes: int, consistency: Consistency = Consistency.EVENTUAL) -> float:
    """Return the units of a Query that reads items of `total_bytes` together: the sum is rounded, not each item.

    Raises:
        ValueError: the consistency is transactional, which a Query cannot be.
    """
    if consistency is Consistency.TRANSACTIONAL:
        raise ValueError("a Query cannot be transactional")
    return read_units(total_bytes, consistency)


def batch_read_units(sizes: list[int], consistency: Consistency = Consistency.EVENTUAL) -> float:
    """Return the units of a BatchGetItem: each item is rounded by itself."""
    return sum(read_units(size, consistency) for size in sizes)


def write_units(item_bytes: int, *, before: int = 0, transactional: bool = False) -> int:
    """Return the units of writing or deleting one item: by the larger of its sizes `before` and after.

    A write that fails its condition costs as much.
    """
    units = max(_blocks(size, WRITE_UNIT_BYTES) for size in (item_bytes, before))
    return units * TRANSACTION_FACTOR if transactional else units


def index_write_units(entry_bytes: int, *, before: int | None, key_changes: bool = False, changes: bool = True) -> int:
    """Return the units that a table write costs in one index. Source: Developer Guide, GSI, "Write capacity units".

    Args:
        entry_bytes: what the index stores of the item afterwards; 0 if the item is not in the index.
        before: what it stored before; 0 or None if the item was not in the index.
        key_changes: whether the entry's key changes: the old entry is deleted, and a new one is written.
        changes: whether an attribute that the index stores changes. An unchanged entry costs nothing.
    """
    old = before or 0
    if not entry_bytes and not old:
        return 0
    if entry_bytes and old and key_changes:
        return write_units(old) + write_units(entry_bytes)
    if entry_bytes and old and not changes:
        return 0
    return write_units(entry_bytes, before=old)


def _blocks(size: int, block: int) -> int:
    if size < 0:
        raise ValueError(f"a size is {size} bytes; it must not be negative")
    return max(1, -(-size // block))
