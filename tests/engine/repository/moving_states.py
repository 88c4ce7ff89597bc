"""States of a key between its two homes, and the state after a write."""

from typing import Any

from dynashard.topology import Phase
from tests.engine.repository.moving_things import Spot
from tests.engine.stored_things import NOON

PAST: dict[str, Any] = {"ExpiresAt": {"N": str(int(NOON.timestamp()) - 5)}}

# The items at the old and the new place.
STATES: dict[Phase, list[tuple[str, str]]] = {
    Phase.STABLE: [("nothing", "nothing"), ("live", "nothing"), ("expired", "nothing")],
    Phase.PREPARE: [("nothing", "nothing"), ("live", "nothing"), ("expired", "nothing"), ("live", "expired")],
    Phase.MOVE: [
        ("nothing", "nothing"),
        ("live", "nothing"),
        ("live", "expired"),
        ("expired", "nothing"),
        ("mark", "live"),
        ("mark", "nothing"),
        ("mark", "expired"),
        ("bare mark", "live"),
        ("bare mark", "nothing"),
    ],
    Phase.SETTLE: [
        ("nothing", "nothing"),
        ("expired", "nothing"),
        ("expired", "live"),
        ("mark", "live"),
        ("mark", "nothing"),
        ("mark", "expired"),
        ("bare mark", "live"),
        ("bare mark", "nothing"),
        ("live", "nothing"),
        ("live", "expired"),
    ],
}
MARKS = ("mark", "bare mark")


def build(spot: Spot, state: tuple[str, str]) -> None:
    """Bring a key into a state. A live item has the revision r0."""
    for place, what in zip((spot.old, spot.new), state, strict=True):
        moved: dict[str, Any] = {"MovedFrom": {"N": str(spot.count)}} if place == spot.new else {}
        if what == "live":
            spot.put_live(place, **moved)
        elif what == "expired":
            spot.put_live(place, rev="gone", **PAST)
        elif what == "mark":
            spot.put_live(place, MovedTo={"N": str(spot.target)})
        elif what == "bare mark":
            spot.put_mark()
        else:
            spot.clear(place)


def states(spot: Spot) -> tuple[str, str]:
    """Return the items at both places. A written note is named by its text."""
    return _state(spot.at(spot.old)), _state(spot.at(spot.new))


def _state(item: dict[str, Any] | None) -> str:
    if item is None:
        return "nothing"
    if "MovedTo" in item:
        # An expiring marker would free the key for clients that use its old home.
        assert "ExpiresAt" not in item
        return "mark" if "text" in item else "bare mark"
    if "ExpiresAt" in item:
        return "expired"
    assert item["text"]["S"] == "was" or "MovedFrom" not in item, "a real write drops MovedFrom"
    return "live" if item["text"]["S"] == "was" else str(item["text"]["S"])


def helped(phase: Phase, state: tuple[str, str]) -> tuple[str, str]:
    """Return the state an operation works on: in SETTLE late items are moved home first."""
    return ("mark", "live") if phase is Phase.SETTLE and state[0] == "live" else state


def home_of(phase: Phase, state: tuple[str, str]) -> int:
    """Return the place of the key's item: 0 for the old, 1 for the new."""
    if phase is Phase.MOVE:
        return int(state[0] in MARKS)
    return int(phase is Phase.SETTLE)


def after(phase: Phase, state: tuple[str, str], wrote: str) -> tuple[str, str]:
    """Return the state after an accepted write: `wrote` is the item at the key's home."""
    where = home_of(phase, state)
    old, new = state
    if wrote != "nothing" and state[where] != "live":
        if phase is Phase.MOVE and where == 0:
            return "bare mark", wrote
        if phase is Phase.SETTLE:
            return {"nothing": "bare mark", "expired": "mark"}.get(old, old), wrote
    return (wrote, new) if where == 0 else (old, wrote)
