"""What a request asks about capacity, and what its answer says was consumed."""

from collections.abc import Mapping
from typing import Any, Final

from dynashard.transport.interface import Consumed

READING: Final = frozenset({"GetItem", "Query", "Scan", "BatchGetItem", "TransactGetItems"})
WRITING: Final = frozenset({"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"})
METERED: Final = READING | WRITING
"""Operations that take `ReturnConsumedCapacity`."""


def consumed_of(operation: str, answer: Mapping[str, Any]) -> Consumed:
    """Capacity units that one answered request consumed, over all tables and indexes.

    Args:
        operation: DynamoDB's name of the operation.
        answer: its answer. Without `ConsumedCapacity` the units are zero.

    Returns:
        The units, for one request.
    """
    capacity = answer.get("ConsumedCapacity") or ()
    reading = operation in READING
    consumed = Consumed(requests=1)
    for entry in (capacity,) if isinstance(capacity, Mapping) else capacity:
        units = entry.get("CapacityUnits", 0.0)
        if reading:
            consumed.read_units += units
        else:
            # The condition checks of a transaction may be told apart from its writes.
            consumed.read_units += entry.get("ReadCapacityUnits", 0.0)
            consumed.write_units += entry.get("WriteCapacityUnits", units)
    return consumed
