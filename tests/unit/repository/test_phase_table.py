"""The phase table: the place of writes in each phase, and the step after a failed condition."""

from itertools import product
from typing import Any, Final

import pytest

from dynashard.entity import Entity, ItemKey, Key, Registry, Shards, definition
from dynashard.repository.phase_table import Encountered, How, Next, Target, plan
from dynashard.routing import Places, home
from dynashard.schema import EXPIRES_AT, MOVED_TO, PK
from dynashard.topology import Phase, View

pytestmark = pytest.mark.unit


class User(
    Entity,
    name="user.v1.User",
    key=Key("{tenant_id}", "{id}"),
    shards=Shards(2),
    registry=Registry(),
):
    tenant_id: str
    id: str


NOW: Final = 1_000
OLD, NEW = 2, 4
USER: Final = definition(User)
KEYS: Final = [ItemKey("user.v1.User:abc", f"{number:03}") for number in range(100)]
MOVES: Final = next(key for key in KEYS if home(USER, key, OLD) != home(USER, key, NEW))
STAYS: Final = next(key for key in KEYS if home(USER, key, OLD) == home(USER, key, NEW))

LIVE: Final = {PK: {"S": "stored"}}
EXPIRED: Final = {PK: {"S": "stored"}, EXPIRES_AT: {"N": str(NOW)}}
MARKER: Final = {PK: {"S": "stored"}, MOVED_TO: {"N": str(NEW)}}
FORMER: Final = {PK: {"S": "stored"}, MOVED_TO: {"N": str(OLD)}}
"""A marker that an earlier change has left."""
STORED: Final[dict[str, Any]] = {
    "nothing": None,
    "live": LIVE,
    "expired": EXPIRED,
    "marker": MARKER,
    "former": FORMER,
}
EMPTY: Final = ("nothing", "expired")


def places(key: ItemKey, phase: Phase) -> Places:
    view = View(OLD) if phase is Phase.STABLE else View(OLD, phase, NEW)
    return Places(view, home(USER, key, OLD), home(USER, key, view.new_count), OLD)


def expected_target(phase: Phase, *, moves: bool, creates: bool) -> tuple[str, How]:
    if not moves or phase in (Phase.STABLE, Phase.PREPARE):
        return "old", How.DIRECT
    if creates:
        return "new", How.WITH_MARKER
    return ("old" if phase is Phase.MOVE else "new"), How.OVER_LIVE


@pytest.mark.parametrize(("phase", "moves", "creates"), [*product(Phase, (False, True), (False, True))])
def test_a_write_goes_where_its_phase_sends_it(phase: Phase, *, moves: bool, creates: bool) -> None:
    at = places(MOVES if moves else STAYS, phase)

    place, how = expected_target(phase, moves=moves, creates=creates)

    assert plan(at, creates=creates) == Target(at.old if place == "old" else at.new, how)


@pytest.mark.parametrize("creates", [False, True])
def test_a_write_follows_a_marker_to_the_new_home_and_demands_no_second_marker(*, creates: bool) -> None:
    at = places(MOVES, Phase.MOVE)

    assert plan(at, creates=creates, followed=True) == Target(at.new, How.DIRECT)


def expected_of_one(phase: Phase, place: str, met: str, *, moves: bool) -> Next:
    if met in ("marker", "former"):
        leads = moves and phase is Phase.MOVE and place == "old" and met == "marker"
        return Next.FOLLOW if leads else Next.REFRESH
    if moves and phase is Phase.SETTLE and met in EMPTY:
        return Next.HELP
    return Next.DECIDE


@pytest.mark.parametrize(("phase", "moves", "place", "met"), [*product(Phase, (False, True), ("old", "new"), STORED)])
def test_the_content_of_one_place_decides_the_next_step(phase: Phase, place: str, met: str, *, moves: bool) -> None:
    key = MOVES if moves else STAYS
    at = places(key, phase)
    found = Encountered(at, {at.old if place == "old" else at.new: STORED[met]})

    assert found.next(USER, key, now=NOW) is expected_of_one(phase, place, met, moves=moves)
    assert found.rival is STORED[met]


def expected_of_both(phase: Phase, old: str, new: str) -> Next:
    if old in ("marker", "former"):
        return Next.FOLLOW if phase is Phase.MOVE and old == "marker" else Next.REFRESH
    if phase is Phase.SETTLE and old == "live" and new != "live":
        return Next.HELP
    rival = old if phase is Phase.MOVE else new
    return Next.DECIDE if rival == "live" else Next.REFRESH


@pytest.mark.parametrize(("phase", "old", "new"), [*product((Phase.MOVE, Phase.SETTLE), STORED, STORED)])
def test_the_content_of_both_places_decides_the_next_step_of_a_create(phase: Phase, old: str, new: str) -> None:
    at = places(MOVES, phase)
    found = Encountered(at, {at.old: STORED[old], at.new: STORED[new]})

    assert found.next(USER, MOVES, now=NOW) is expected_of_both(phase, old, new)
    assert found.rival is STORED[old if phase is Phase.MOVE else new]


@pytest.mark.parametrize("met", EMPTY)
def test_help_is_requested_once(met: str) -> None:
    at = places(MOVES, Phase.SETTLE)

    assert Encountered(at, {at.new: STORED[met]}).next(USER, MOVES, now=NOW, helped=True) is Next.DECIDE
    both = Encountered(at, {at.old: LIVE, at.new: STORED[met]})
    assert both.next(USER, MOVES, now=NOW, helped=True) is Next.REFRESH
