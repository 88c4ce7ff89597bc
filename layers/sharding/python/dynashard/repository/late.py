"""Late writes: items that the database stored at their old home after the mover had passed.

In SETTLE a key without an item at its new home may still have a live item at its old one. A read or write of the key
moves such an item home before it answers (rule H of the protocol), until the second pass has moved all of them.

The answer of a successful write may arrive after its view has ended. Then the write is acknowledged only when the item
is where readers look for it now; if necessary it is moved there (rule A). A refused write starts again in this case.
"""

from contextlib import suppress
from enum import Enum, auto
from typing import Any, Final, NamedTuple, cast

from dynashard.entity import EntityDefinition, ItemKey
from dynashard.errors import (
    ConditionFailedError,
    EngineError,
    OutcomeUnknownError,
    TransactionCanceledError,
    TransactionConflictError,
)
from dynashard.repository.conditions import is_live, is_marker, unchanged
from dynashard.repository.markers import marking, relocation, unmarking
from dynashard.repository.phase_table import Encountered, Next
from dynashard.repository.reservations import held, not_held
from dynashard.repository.store import Store, view_ended
from dynashard.repository.write import Kind, Write
from dynashard.routing import Places, home, stored_key, wire_key
from dynashard.schema import MOVED_FROM, MOVED_TO, PK, REV
from dynashard.topology import Phase
from dynashard.transport.deadline import evidence
from dynashard.transport.interface import Resend, Wire

_TRIES: Final = 4
"""How often an item that others change meanwhile is looked for."""


def stored_at(store: Store, place: str, sort: str) -> Wire | None:
    """Return the item or marker at a stored key, None if it is empty. Cost: 1 read unit for 4 KB, 1 round trip."""
    request = {"TableName": store.table, "Key": wire_key((place, sort)), "ConsistentRead": True}
    return cast("Wire | None", store.transport.call("GetItem", request).get("Item"))


def bring_home(store: Store, entity: EntityDefinition[Any], item: Wire, places: Places) -> Wire | None:
    """Relocate an item from its old home to its new one, and return it as it is stored there.

    None means that it was changed or moved meanwhile, so the caller must read again. That includes an item of which a
    unique value was reserved for another item since, by a client that no longer looks at old homes: nobody has read it,
    its write was not acknowledged, and a marker replaces it. Raises what a write raises.

    Cost: 4 write units for 1 KB, and 2 for each unique value, 1 round trip.
    """
    relocated = _relocate(store, entity, item, places, _Home(places.new, places.view.new_count))
    if relocated is _Relocated.NOT_HELD:
        _remove(store, item, places)
    if relocated is not _Relocated.DONE:
        return None
    return {**item, PK: {"S": places.new}, MOVED_FROM: {"N": str(places.view.count)}}


def _remove(store: Store, item: Wire, places: Places) -> None:
    """Replace an item that cannot come home by a bare marker. One with its revision would prove that it was moved."""
    marker = {**wire_key(stored_key(item)), MOVED_TO: {"N": str(places.view.new_count)}}
    with suppress(ConditionFailedError, TransactionConflictError):
        store.transport.call("PutItem", unchanged(item).on({"TableName": store.table, "Item": marker}))


class _Home(NamedTuple):
    """A stored partition key, and the shard count by which it is the home of an item."""

    place: str
    shards: int


class _Relocated(Enum):
    """The result of a relocation."""

    DONE = auto()
    CHANGED = auto()
    """The item was changed or moved meanwhile, or its home is taken, or the outcome is unknown."""
    NOT_HELD = auto()
    """Only a unique value of the item prevents it, because it is reserved for another one."""


def _relocate(store: Store, entity: EntityDefinition[Any], item: Wire, places: Places, to: _Home) -> _Relocated:
    actions = relocation(
        store.table, item, to.place, origin=places.view.count, target=to.shards, now=store.runtime.clock()
    )
    actions += held(store.table, entity, item)
    try:
        # On condition of the exact revision: it happens once, however often it is sent and however late it is executed.
        store.transport.call("TransactWriteItems", {"TransactItems": actions}, resend=Resend.ALWAYS)
    except TransactionCanceledError as cancelled:
        return _Relocated.NOT_HELD if not_held(cancelled) else _Relocated.CHANGED
    except (TransactionConflictError, OutcomeUnknownError):
        return _Relocated.CHANGED
    return _Relocated.DONE


def move_stray_home(store: Store, entity: EntityDefinition[Any], sort: str, places: Places) -> bool:
    """Move a live item from the old home to the new one; return whether there was one: then the caller starts again."""
    item = stored_at(store, places.old, sort)
    if item is None or not is_live(item, store.now()):
        return False
    bring_home(store, entity, item, places)
    return True


def next_after(store: Store, entity: EntityDefinition[Any], write: Write, encountered: Encountered) -> Next:
    """Return what follows a refused write: `FOLLOW`, `RESTART` or `DECIDE`. `HELP` and `REFRESH` have been carried out.

    Cost: none; in SETTLE that of `move_stray_home` if no item is live at the new home.
    """
    if view_ended(store, encountered.places):
        # The item may be at another home by now.
        return Next.RESTART
    found = encountered.next(entity, write.key, now=write.now)
    if found is Next.HELP:
        if move_stray_home(store, entity, write.key.sort, encountered.places):
            return Next.RESTART
        found = encountered.next(entity, write.key, now=write.now, helped=True)
    if found is Next.REFRESH:
        store.router.topology.refresh(entity, write.key.partition)
        return Next.RESTART
    return found


class Late(Enum):
    """The result of checking a write whose answer arrived after its view had ended."""

    VISIBLE = auto()
    """It took effect, and readers find what it wrote."""
    UNDONE = auto()
    """It was undone, because another item was at its home. No reader has seen it, and it may be done again."""
    UNKNOWN = auto()
    """Nothing proves whether it took effect where readers look."""


def answered_late(operation: str) -> OutcomeUnknownError:
    """Return the error for a success that is not `Late.VISIBLE`."""
    return OutcomeUnknownError(
        f"{operation}: the answer came after the lease of the shard count had ended, and nothing stored proves whether "
        "the write took effect. Read the item before you decide.",
        operation=operation,
    )


def confirm(
    store: Store, entity: EntityDefinition[Any], write: Write, place: str, places: Places, *, undo: bool
) -> Late:
    """Check a write that was done at `place`, under the view of `places`, and move what it stored if it is not at home.

    One transaction puts the item at its home and marks the place. To remove it first would break what others saw. With
    `undo` the write may be undone if its home is taken, because it is the whole operation.

    Cost: none while the view lasts, or if the place still is the home; else 2 to 6 read units, 2 or 3 round trips,
    and what `bring_home` costs.
    """
    return _locate(store, entity, write, place, undo=undo) if view_ended(store, places) else Late.VISIBLE


def ensure_home(store: Store, entity: EntityDefinition[Any], key: ItemKey, revision: str, shards: int) -> bool:
    """Whether an item that was certainly created is where readers look now, or was there since.

    If it is still unmarked at its old home, it is moved. The answer is False if that fails or is not certain.
    `revision` is that of its creation, and `shards` the count by which it was placed.

    Cost: none if its place is the home; else 1 read unit, 1 round trip, and what `bring_home` costs.
    """
    write = Write(Kind.CREATE, key, "PutItem", store.now(), revision=revision)
    return _locate(store, entity, write, home(entity, key, shards), certain=True) is Late.VISIBLE


def _locate(
    store: Store, entity: EntityDefinition[Any], write: Write, place: str, *, undo: bool = False, certain: bool = False
) -> Late:
    """Find what a write has stored at a place, and move it to its home under the view in force.

    If it is `certain` that it was stored there, a missing item was moved, swept, or removed by a client that saw it.
    """
    with evidence():
        for _ in range(_TRIES):
            # The write itself was executed: an error of this check, such as a throttle, is not its refusal.
            with suppress(EngineError):
                found = _check_once(store, entity, write, place, undo=undo, certain=certain)
                if found is not None:
                    return found
    return Late.UNKNOWN


def _check_once(
    store: Store, entity: EntityDefinition[Any], write: Write, place: str, *, undo: bool, certain: bool
) -> Late | None:
    """Look for the item once; None if it was changed or moved meanwhile."""
    places = store.router.places(entity, write.key)
    # In PREPARE readers still look at the old home only.
    moving = places.moving and places.view.phase in (Phase.MOVE, Phase.SETTLE)
    # From MOVE on the mover may have passed the old home already, so the item belongs at the new one.
    present, shards = (places.new, places.view.new_count) if moving else (places.old, places.shards)
    if place == present:
        return Late.VISIBLE
    if not write.revision:
        # Until the second pass is complete, an item without a marker was the only one of its key.
        return Late.VISIBLE if moving and place == places.old else Late.UNKNOWN
    here = stored_at(store, place, write.key.sort)
    if here is None or not write.did(here):
        # It may have come home since, and its marker may be swept. Then only its home proves it.
        there = certain or write.did(stored_at(store, present, write.key.sort))
        return Late.VISIBLE if there else Late.UNKNOWN
    # A marker with the revision proves that the item was moved as this write had left it.
    to = _Home(present, shards)
    moved = not is_marker(here) and _relocate(store, entity, here, places, to) is _Relocated.DONE
    if moved and not moving:
        # No sweep will follow.
        with suppress(ConditionFailedError):
            store.transport.call("DeleteItem", unmarking(store.table, stored_key(here), shards))
    if is_marker(here) and not moving:
        # Under a stable count readers look only at the home: what moved the item there must be visible as a whole.
        gets = [{"Get": {"TableName": store.table, "Key": wire_key((at, write.key.sort))}} for at in (place, present)]
        store.transport.call("TransactGetItems", {"TransactItems": gets})
    if moved or is_marker(here):
        return Late.VISIBLE
    # If its home holds another live item, it cannot move there. As long as it is exactly as it was written it may go,
    # because the write is not acknowledged yet. What others have written since is theirs too.
    mine = undo and here.get(REV) == {"S": write.revision}
    taken = mine and is_live(stored_at(store, present, write.key.sort), store.now())
    return Late.UNDONE if taken and _undo(store, here, places, moving=moving) else None


def _undo(store: Store, item: Wire, places: Places, *, moving: bool) -> bool:
    """Remove an item from a wrong place; return whether that succeeded. While its key moves, a marker replaces it."""
    deletion = {"TableName": store.table, "Key": wire_key(stored_key(item))}
    request = marking(store.table, stored_key(item), places.view.new_count) if moving else deletion
    try:
        store.transport.call("UpdateItem" if moving else "DeleteItem", unchanged(item).on(request))
    except (ConditionFailedError, TransactionConflictError):
        return False
    return True
