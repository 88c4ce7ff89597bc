"""Edges and parts of roll-ups that do not fit their declaration are named, and nothing is mended because of them."""

from datetime import timedelta
from typing import Any, Final

import pytest

from domain.samples.follows import FOLLOWS, Follow, FollowCount
from domain.samples.pings import Ping
from domain.samples.plays import PLAYS, EpisodePlays
from dynashard_patterns import EdgeStore
from dynashard_patterns.rollups import ItemCounter
from tests.depth import examples
from tests.engine.tools.reshard_world import ReshardWorld
from tests.engine.tools.test_tools_undecodable import SIZE, names
from tests.engine.tools.verify_world import TENANT, YESTERDAY, delete, report, stored
from tests.engine.unfit_rows import UnfitRows

pytestmark = pytest.mark.engine

ACTOR: Final = "Actor.5"
FOLLOWERS: Final = examples(SIZE, default=60)


@pytest.fixture
def unfit(world: ReshardWorld) -> UnfitRows:
    return UnfitRows(world.wire, world.table)


def followed(world: ReshardWorld, number: int) -> EdgeStore[Follow]:
    """Give an actor some followers."""
    edges = EdgeStore.on(world.layer(), FOLLOWS)
    for each in range(number):
        edges.add(TENANT, f"User.u{each:03}", ACTOR)
    return edges


def named(found: dict[str, Any]) -> list[str]:
    """The sort keys of the rows that a verification cannot read."""
    return sorted(each["where"].partition(" / ")[2] for each in found["findings"] if each["kind"] == "unreadable")


def test_5_edges_of_many_are_named_and_neither_counted_off_nor_written_again(
    world: ReshardWorld, unfit: UnfitRows
) -> None:
    edges = followed(world, FOLLOWERS)
    halves = sorted(edges.scan(TENANT, ACTOR, "backward"), key=lambda edge: edge.other)
    odd = unfit.spoil(halves, "since")
    # Of another edge, both are missing: a half, and its number at the actor.
    lost = stored(world, lambda each: each["SK"]["S"] == "FANNED_BY.User.u001")
    delete(world, lost)

    listed = world.run("list", "follows", f"tenant_id={TENANT}", f"of={ACTOR}", "way=backward", "--limit", "1000")
    checked, mended, again = report(world, "follows"), report(world, "follows", "--mend"), report(world, "follows")

    assert (listed.status, len(listed.summary["items"]), names(listed, odd)) == (3, FOLLOWERS - 5 - 1, True)
    assert checked[1]["found"] == {"unreadable": 5, "edge": 1}
    assert (mended[0], mended[1]["mended"]) == (3, {"edge": 1})
    assert (again[0], again[1]["found"]) == (3, {"unreadable": 5})
    assert [named(found) for _, found in (checked, mended, again)] == [sorted(odd)] * 3
    assert unfit.unharmed
    # The half that was written has counted itself once more, which is corrected when all can be read.
    assert edges.count(TENANT, ACTOR, "backward") == FOLLOWERS + 1


def test_a_counter_of_edges_with_a_slot_that_does_not_fit_is_named_and_not_corrected(
    world: ReshardWorld, unfit: UnfitRows
) -> None:
    edges = followed(world, 3)
    counts = world.layer().collection(FollowCount)
    slots = [{"tenant_id": TENANT, "node": ACTOR, "way": "FANNED_BY", "slot": slot} for slot in range(16)]
    there = [item for item in counts.batch_get(slots) if item is not None]
    odd = unfit.spoil_one(there[0], "count")
    before = [item and item.revision for item in counts.batch_get(slots)]

    mended = report(world, "follows", "--mend")

    assert (mended[0], mended[1]["found"], mended[1]["mended"]) == (3, {"unreadable": 1}, {})
    assert named(mended[1]) == [odd]
    assert [item and item.revision for item in counts.batch_get(slots)] == before
    assert len(list(edges.scan(TENANT, ACTOR, "backward"))) == 3


def test_5_parts_of_300_rows_of_a_roll_up_are_named_and_the_other_rows_are_mended(
    world: ReshardWorld, unfit: UnfitRows
) -> None:
    db, day, of = world.layer(), YESTERDAY, {"tenant_id": TENANT, "series": "s", "episode": "e"}
    pings = [
        Ping(**of, at=day + timedelta(minutes=minute), id=f"p{minute:03}", session_id="x") for minute in range(SIZE + 1)
    ]
    db.collection(Ping).batch_write(put=pings)
    ItemCounter(db, PLAYS).count([*pings[:1], *pings[2:]])
    minutes = list(db.collection(EpisodePlays).items(of, prefix="minute#", order="ordered"))
    odd = unfit.spoil(minutes, "pings")

    checked, mended, again = (
        report(world, "pings", TENANT, "--day", f"{day:%Y-%m-%d}", *options) for options in ([], ["--mend"], [])
    )

    # A minute, an hour and a day lack a ping.
    assert (len(minutes), checked[1]["found"]) == (SIZE, {"roll_up": 3, "unreadable": 5})
    # The month does, too.
    assert (mended[0], mended[1]["mended"]) == (3, {"roll_up": 4})
    assert (again[0], again[1]["found"]) == (3, {"unreadable": 5})
    assert [named(found) for _, found in (checked, mended, again)] == [sorted(odd)] * 3
    assert unfit.unharmed
