"""Late writes: items that the database stored at their old home after the mover had passed.

In SETTLE a key without an item at its new home may still have a live item at its old one. A read or write of the key
moves such an item home before it answers (rule H of the protocol), until the second pass has moved all of them.

The answer of a successful write may arrive after its view has ended. Then the write is acknowledged only when the item
is where readers look for it now; if necessary it is moved there (rule A).
A refused write starts again in this case: what it did not find there may be at another home by now.
"""

from enum import Enum, auto
from typing import Any, Final

from dynashard.entity import EntityDefinition, ItemKey
from dynashard.errors import (
    ConditionFailedError,
    EngineError,
    OutcomeUnknownError,
    TransactionCanceledError,
    TransactionConflictError,
)
from dynashard.repository.batch import stored_key, wire_key
from dynashard.repository.conditions import is_live, is_marker
from dynashard.repository.phase_table import Met, Next
from dynashard.repository.relocation import marking, relocation, unchanged
from dynashard.repository.store import Store
from dynashard.repository.writes import Kind, Write
from dynashard.routing import Places
from dynashard.routing import home as home_under
from dynashard.schema import MOVED_FROM, MOVED_TO, PK, REV
from dynashard.topology import Phase
from dynashard.transport.deadline import evidence
from dynashard.transport.interface import Resend, Wire


def stored_at(store: Store, place: str, sort: str) -> Wire | None:
    """Return the item or marker at a stored key, None if it is empty. Cost: 1 read unit for 4 KB, 1 round trip."""
    request = {"TableName": store.table, "Key": wire_key((place, sort)), "ConsistentRead": True}
    item: Wire | None = store.transport.call("GetItem", request).get("Item")
    return item


def bring_home(store: Store, item: Wire, places: Places) -> Wire | None:
    """Relocate an item from its old home to its new one.

    Returns:
        The item as it is stored there; None if it was changed or moved meanwhile, so the caller must read again.

    Raises:
        ThrottledError: as a write does.

    Cost: 4 write units for 1 KB, 1 round trip.
    """
    view = places.view
    if not _relocated(store, item, places.new, view.count, view.new_count):
        return None
    return {**item, PK: {"S": places.new}, MOVED_FROM: {"N": str(view.count)}}


def _relocated(store: Store, item: Wire, place: str, origin: int, target: int) -> bool:
    actions = relocation(store.table, item, place, origin=origin, target=target, now=store.runtime.clock())
    request = {"TransactItems": actions}
    try:
        # On condition of the exact revision: it happens once, however often it is sent and however late it is executed.
        store.transport.call("TransactWriteItems", request, resend=Resend.ALWAYS)
    except (TransactionCanceledError, TransactionConflictError, OutcomeUnknownError):
        return False
    return True


def move_stray_home(store: Store, sort: str, places: Places) -> bool:
    """Move a live item from the old home to the new one. Return whether there was one, so that the caller starts again.

    Cost: `stored_at`, and `bring_home` if there is something.
    """
    item = stored_at(store, places.old, sort)
    if item is None or not is_live(item, store.now()):
        return False
    bring_home(store, item, places)
    return True


def next_after(store: Store, entity: EntityDefinition[Any], write: Write, met: Met) -> Next:
    """Return what follows a refused write: `FOLLOW`, `RESTART` or `DECIDE`. What else there is to do has been done.

    Cost: none; in SETTLE that of `move_stray_home` where nothing lives at the new home.
    """
    late = view_ended(store, met.places)
    found = met.next(entity, write.key, now=write.now, ended=late)
    if found is Next.HELP:
        if move_stray_home(store, write.key.sort, met.places):
            return Next.RESTART
        found = met.next(entity, write.key, now=write.now, ended=late, helped=True)
    if found is Next.REFRESH:
        store.router.topology.refresh(entity, write.key.partition)
        return Next.RESTART
    return found


class Late(Enum):
    """The result of checking a write whose answer arrived after its view had ended."""

    STANDS = auto()
    """It took effect, and readers find what it wrote."""
    UNDONE = auto()
    """It was undone, because another item was at its home. No reader has seen it, and it may be done again."""
    UNKNOWN = auto()
    """Nothing proves whether it took effect where readers look."""


_TRIES: Final = 4


def view_ended(store: Store, places: Places) -> bool:
    """Whether the view under which a request was sent has ended, now that it is answered. Costs nothing."""
    return store.runtime.clock() > places.view.expires


def answered_late(operation: str) -> OutcomeUnknownError:
    """Return the error for a success that arrived too late to be reported as one."""
    return OutcomeUnknownError(
        f"{operation}: the answer came after the lease of the shard count had ended, and nothing stored proves whether "
        "the write took effect. Read the item before you decide.",
        operation=operation,
    )


def confirm(
    store: Store, entity: EntityDefinition[Any], write: Write, place: str, places: Places, *, undo: bool
) -> Late:
    """Check a write that was answered with success, and bring home what it stored if that is elsewhere by now.

    One transaction puts it at its home and marks the place. To remove it there first would break what others saw.

    Args:
        store: the table.
        entity: whose item it is.
        write: what was done.
        place: the stored partition key where it was done.
        places: where its item might stand under the view that it was sent under.
        undo: whether it may be taken back where its home is taken: it is the whole of its operation.

    Cost: none while the view lasts, or if the place still is the home; else 2 read units, 2 round trips, and what
    `bring_home` costs.
    """
    if not view_ended(store, places):
        return Late.STANDS
    return _located(store, entity, write, place, undo=undo)


def ensure_home(store: Store, entity: EntityDefinition[Any], key: ItemKey, revision: str, shards: int) -> bool:
    """Whether what was certainly created by a shard count is where readers look now, or went from there since.

    What still stands unmarked at its old home is brought to the new one. False if that cannot be done, or told.

    Args:
        store: the table.
        entity: whose item it is.
        key: of the item.
        revision: of its creation.
        shards: the shard count by which it was placed.

    Cost: none if its place is the home; else 1 read unit, 1 round trip, and what `bring_home` costs.
    """
    write = Write(Kind.CREATE, key, "PutItem", store.now(), revision=revision)
    return _located(store, entity, write, home_under(entity, key, shards), certain=True) is Late.STANDS


def _located(
    store: Store, entity: EntityDefinition[Any], write: Write, place: str, *, undo: bool = False, certain: bool = False
) -> Late:
    """Find what a write has stored at a place, under the view in force now, and bring it home if it is not there.

    If it is `certain` that it was stored there, it may have gone from there: nobody takes away what stands at an old
    home but movers and sweepers, and those who saw it.
    """
    try:
        with evidence():
            for _ in range(_TRIES):
                found = _look(store, entity, write, place, undo=undo, certain=certain)
                if found is not None:
                    return found
    except EngineError:
        # The write itself was executed. An error of this check, such as a throttle, is not its refusal.
        return Late.UNKNOWN
    return Late.UNKNOWN


def _look(
    store: Store, entity: EntityDefinition[Any], write: Write, place: str, *, undo: bool, certain: bool
) -> Late | None:
    """Look for it once; None if it was changed or moved meanwhile."""
    places = store.router.places(entity, write.key)
    moving = places.moving and places.view.phase in (Phase.MOVE, Phase.SETTLE)
    home = places.new if moving else places.old
    if place == home:
        return Late.STANDS
    if not write.revision:
        # What bore no mark was the one item of its key, as long as the second pass is not complete.
        return Late.STANDS if moving and place == places.old else Late.UNKNOWN
    here = stored_at(store, place, write.key.sort)
    if here is None or not write.did(here):
        there = certain or write.did(stored_at(store, home, write.key.sort))
        return Late.STANDS if there else Late.UNKNOWN
    # A marker with the revision proves that the item was moved as this write had left it.
    if is_marker(here) or _brought(store, here, places, home, moving=moving):
        return Late.STANDS
    mine = undo and here.get(REV) == {"S": write.revision}
    taken = mine and is_live(stored_at(store, home, write.key.sort), store.now())
    return Late.UNDONE if taken and _taken_back(store, here, places, moving=moving) else None


def _brought(store: Store, item: Wire, places: Places, home: str, *, moving: bool) -> bool:
    """Move an item home, and return whether that was done. Its marker is deleted at once if no sweep will follow."""
    count = places.view.new_count if moving else places.view.count
    if not _relocated(store, item, home, places.view.count, count):
        return False
    if not moving:
        marker = {"TableName": store.table, "Key": wire_key(stored_key(item))}
        values = {":target": {"N": str(count)}}
        condition = {"ConditionExpression": f"{MOVED_TO} = :target", "ExpressionAttributeValues": values}
        try:
            store.transport.call("DeleteItem", {**marker, **condition})
        except ConditionFailedError:
            return True
    return True


def _taken_back(store: Store, item: Wire, places: Places, *, moving: bool) -> bool:
    """Remove an item from a wrong place; return whether that was done. While its key moves, a marker replaces it."""
    request = unchanged(store.table, item)
    try:
        if moving:
            store.transport.call("UpdateItem", marking(request, places.view.new_count))
        else:
            store.transport.call("DeleteItem", request)
    except (ConditionFailedError, TransactionConflictError):
        return False
    return True
