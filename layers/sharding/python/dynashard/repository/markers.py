"""The requests that leave a relocation marker, a tombstone with a forwarding address, at an item's old home.

An item is relocated by one transaction: a marker at the old stored partition key, a copy at the new one, on condition
that the item is still the one that was read. However often it is sent, and however late, it is executed at most once.
"""

from typing import Final

from dynashard.codec import item_size
from dynashard.repository.conditions import Condition, absent_or_marker, unchanged
from dynashard.repository.write import Write
from dynashard.routing import Places, StoredKey, stored_key, wire_key
from dynashard.schema import EXPIRES_AT, INDEX_SLOTS, MOVED_FROM, MOVED_TO, PK, SK, index_pk, index_sk
from dynashard.topology import Phase
from dynashard.transport.interface import Wire

_MOST_BYTES: Final = 400 * 1024
_KEPT: Final = (PK, SK, *(name(slot) for slot in INDEX_SLOTS for name in (index_pk, index_sk)))


def marking(table: str, key: StoredKey, target: int) -> Wire:
    """Return the update that turns an item into a marker for a shard count, without its condition."""
    return {
        "TableName": table,
        "Key": wire_key(key),
        "UpdateExpression": f"SET {MOVED_TO} = :target REMOVE {EXPIRES_AT}",
        "ExpressionAttributeValues": {":target": {"N": str(target)}},
    }


def unmarking(table: str, key: StoredKey, target: int) -> Wire:
    """Return the deletion of a marker, on condition that it is one for this shard count."""
    marked = Condition(f"{MOVED_TO} = :target", {":target": {"N": str(target)}})
    return marked.on({"TableName": table, "Key": wire_key(key)})


def relocation(table: str, item: Wire, place: str, *, origin: int, target: int, now: float) -> list[Wire]:
    """Return the two actions of a transaction that relocates an item: first the marker, then the copy.

    The item, as it was read, goes from its home under the shard count `origin` to `place`, the one under `target`. An
    item there that has expired by `now`, in epoch seconds, is replaced.
    """
    return [_marker(table, item, target), {"Put": _copy(table, item, place, origin, now)}]


def _marker(table: str, item: Wire, target: int) -> Wire:
    kept = {name: value for name, value in item.items() if name != EXPIRES_AT}
    marker = {MOVED_TO: {"N": str(target)}}
    if item_size({**kept, **marker}) > _MOST_BYTES:
        # An adopted item may leave no room for a marker: its keys are enough to follow it.
        bare = {name: item[name] for name in _KEPT if name in item}
        return {"Put": unchanged(item).on({"TableName": table, "Item": {**bare, **marker}})}
    return {"Update": unchanged(item).on(marking(table, stored_key(item), target))}


def _copy(table: str, item: Wire, place: str, origin: int, now: float) -> Wire:
    copy = {**item, PK: {"S": place}, MOVED_FROM: {"N": str(origin)}}
    if item_size(copy) > _MOST_BYTES:
        del copy[MOVED_FROM]
    vacant = f"attribute_not_exists({PK}) OR (attribute_not_exists({MOVED_TO}) AND {EXPIRES_AT} <= :now)"
    return Condition(vacant, {":now": {"N": str(int(now))}}).on({"TableName": table, "Item": copy})


def create_with_marker(table: str, write: Write, places: Places) -> list[Wire]:
    """Return the two actions of a transaction that creates an item at its new home: first the marker, then the put."""
    condition = write.absent_condition()
    put = write.action(table, places.new, condition)
    key, target = (places.old, write.key.sort), places.view.new_count
    # Clients that are a phase behind decide at the old home, so in SETTLE, too, the marker shows them this create.
    if places.view.phase is Phase.MOVE:
        # A marker there refuses it: its key has a new home already, where the create is decided alone.
        marker = {**wire_key(key), MOVED_TO: {"N": str(target)}}
        return [{"Put": condition.on({"TableName": table, "Item": marker})}, put]
    # A marker may stand there already. An update keeps its index attributes, by which listings follow it meanwhile.
    return [{"Update": absent_or_marker(write.now).on(marking(table, key, target))}, put]


def none_alive(table: str, write: Write, places: Places) -> Wire:
    """Return the action that demands that the old home has no live item."""
    key = wire_key((places.old, write.key.sort))
    return {"ConditionCheck": absent_or_marker(write.now).on({"TableName": table, "Key": key})}
