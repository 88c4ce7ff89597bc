"""Capacity units that DynamoDB bills for sizes in bytes."""


def read_units(size: int, *, consistent: bool = False, transactional: bool = False) -> float:
    """Return the units of a get of one item, or of a Query or Scan that read `size` bytes. 0 bytes cost one block."""
    blocks = max(1, -(-size // 4096))
    return blocks * (2.0 if transactional else 1.0 if consistent else 0.5)


def write_units(size: int, *, transactional: bool = False) -> float:
    """Return the units of a write of one item. A change costs as much as the larger of the old and the new item."""
    blocks = max(1, -(-size // 1024))
    return blocks * (2.0 if transactional else 1.0)
