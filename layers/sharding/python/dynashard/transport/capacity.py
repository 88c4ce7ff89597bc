"""Consumed capacity: which operations report it, and what an answer says."""

from collections.abc import Mapping
from typing import Any, Final

from dynashard.transport.interface import Consumed

READING: Final = frozenset({"GetItem", "Query", "Scan", "BatchGetItem", "TransactGetItems"})
WRITING: Final = frozenset({"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"})
METERED: Final = READING | WRITING
"""Operations that take `ReturnConsumedCapacity`."""


def consumed_of(operation: str, answer: Mapping[str, Any]) -> Consumed:
    """Return the capacity units that an answered request consumed, over all tables and indexes.

    They are 0 if the answer has no `ConsumedCapacity`.
    """
    capacity = answer.get("ConsumedCapacity") or ()
    reading = operation in READING
    consumed = Consumed(requests=1)
    for entry in (capacity,) if isinstance(capacity, Mapping) else capacity:
        units = entry.get("CapacityUnits", 0.0)
        if reading:
            consumed.read_units += units
        else:
            # A transaction may list its condition checks as read units.
            consumed.read_units += entry.get("ReadCapacityUnits", 0.0)
            consumed.write_units += entry.get("WriteCapacityUnits", units)
    return consumed
