"""Taking an item from one stored partition key to another: a relocation marker at the old one, a copy at the new one.

Both are written in one transaction, on condition that the item is still the one that was read. So the transaction may
be sent again, or be executed late, without harm: it happens once or not at all.
"""

from typing import Any, Final

from dynashard.codec import item_size
from dynashard.schema import EXPIRES_AT, INDEX_SLOTS, MOVED_FROM, MOVED_TO, PK, REV, SK, index_pk, index_sk
from dynashard.transport.interface import Wire

_UNMARKED: Final = f"attribute_exists({PK}) AND attribute_not_exists({MOVED_TO})"
_MOST_BYTES: Final = 400 * 1024
_KEPT: Final = (PK, SK, *(name(slot) for slot in INDEX_SLOTS for name in (index_pk, index_sk)))


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


def marking(request: Wire, target: int) -> Wire:
    """Return the update that turns an item into a marker for a shard count, on the condition of a request."""
    return {
        **request,
        "UpdateExpression": f"SET {MOVED_TO} = :target REMOVE {EXPIRES_AT}",
        "ExpressionAttributeValues": {**request.get("ExpressionAttributeValues", {}), ":target": {"N": str(target)}},
    }


def relocation(table: str, item: Wire, place: str, *, origin: int, target: int, now: float) -> list[Wire]:
    """The two actions of a transaction that relocates an item: first the marker, then the copy.

    Args:
        table: the table's name.
        item: the item as it was read.
        place: the stored partition key that it goes to.
        origin: the shard count under which it was where it stands, for the copy.
        target: the shard count under which it belongs to the place, for the marker.
        now: in epoch seconds; an item that has expired by then does not keep the place from being taken.
    """
    return [_marker(table, item, target), {"Put": _copy(table, item, place, origin, now)}]


def _marker(table: str, item: Wire, target: int) -> Wire:
    request = unchanged(table, item)
    kept = {name: value for name, value in item.items() if name != EXPIRES_AT}
    marker = {MOVED_TO: {"N": str(target)}}
    if item_size({**kept, **marker}) > _MOST_BYTES:
        # An adopted item may leave no room for a marker: its keys are enough to follow it.
        bare = {name: item[name] for name in _KEPT if name in item}
        put = {name: value for name, value in request.items() if name != "Key"}
        return {"Put": {**put, "Item": {**bare, **marker}}}
    return {"Update": marking(request, target)}


def _copy(table: str, item: Wire, place: str, origin: int, now: float) -> Wire:
    copy = {**item, PK: {"S": place}, MOVED_FROM: {"N": str(origin)}}
    if item_size(copy) > _MOST_BYTES:
        del copy[MOVED_FROM]
    return {
        "TableName": table,
        "Item": copy,
        "ConditionExpression": f"attribute_not_exists({PK}) OR "
        f"(attribute_not_exists({MOVED_TO}) AND {EXPIRES_AT} <= :now)",
        "ExpressionAttributeValues": {":now": {"N": str(int(now))}},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
