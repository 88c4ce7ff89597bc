"""Creating an item at its new home while its shard count changes: one transaction leaves a marker at the old one."""

from dynashard.repository.batch import wire_key
from dynashard.repository.conditions import absent_or_marker
from dynashard.repository.relocation import marking
from dynashard.repository.writes import Write
from dynashard.routing import Places
from dynashard.schema import MOVED_TO
from dynashard.topology import Phase
from dynashard.transport.interface import Wire


def create_with_marker(table: str, write: Write, places: Places) -> list[Wire]:
    """The two actions of a transaction that creates the item of a write: first the marker, then the put."""
    return [_marker(table, write, places), put(table, write, places.new)]


def put(table: str, write: Write, place: str) -> Wire:
    """The action that puts the item of a write where nothing lives."""
    item = {**wire_key((place, write.key.sort)), **(write.item or {})}
    return {"Put": write.creating().on({"TableName": table, "Item": item})}


def none_alive(table: str, write: Write, places: Places) -> Wire:
    """The action that demands that no item lives at the old home."""
    key = wire_key((places.old, write.key.sort))
    return {"ConditionCheck": absent_or_marker(write.now).on({"TableName": table, "Key": key})}


def _marker(table: str, write: Write, places: Places) -> Wire:
    key, target = wire_key((places.old, write.key.sort)), places.view.new_count
    if places.view.phase is Phase.MOVE:
        return {"Put": write.creating().on({"TableName": table, "Item": {**key, MOVED_TO: {"N": str(target)}}})}
    return {"Update": absent_or_marker(write.now).on(marking({"TableName": table, "Key": key}, target))}
