"""The condition that a stored item is still as it was read."""

from typing import Any, Final

from dynashard.schema import MOVED_TO, PK, REV, SK
from dynashard.transport.interface import Wire

_UNMARKED: Final = f"attribute_exists({PK}) AND attribute_not_exists({MOVED_TO})"


def unchanged(table: str, item: Wire) -> dict[str, Any]:
    """A request about an item, on the condition that it stands there unmarked at the revision that was read.

    One without a revision was never written by this layer: it must not have got one.
    """
    request: dict[str, Any] = {
        "TableName": table,
        "Key": {PK: item[PK], SK: item[SK]},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    if REV not in item:
        return {**request, "ConditionExpression": f"{_UNMARKED} AND attribute_not_exists({REV})"}
    return {
        **request,
        "ConditionExpression": f"{_UNMARKED} AND {REV} = :rev",
        "ExpressionAttributeValues": {":rev": item[REV]},
    }
