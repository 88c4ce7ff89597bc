"""Malformed markers, and rows without what the layer stores, neither stop a resize nor are harmed by it."""

from typing import Any

import pytest

from dynashard.schema import EXPIRES_AT, MOVED_FROM, MOVED_TO, PK, REV, SK, TYPE
from dynashard.transport.interface import Wire
from tests.engine.resharding.mover_world import at, movers, stored
from tests.engine.resharding.resharding_world import ABC, Moving, Thing

pytestmark = pytest.mark.engine

DAMAGED: list[Wire] = [{"S": "8"}, {"N": "-1"}, {"N": "1.5"}, {"N": "5000"}, {"BOOL": True}, {"NULL": True}]


def marker(sort: str, moved_to: Wire) -> Wire:
    return {PK: {"S": at(sort)}, SK: {"S": sort}, MOVED_TO: moved_to}


def odd_items(sorts: list[str]) -> list[Wire]:
    """Items that move and lack what the layer stores, or have it in another type."""
    whole = [stored(sort, Rev={"S": "r"}, text={"S": sort}, theirs={"L": [{"N": "1"}]}) for sort in sorts]
    lacking: list[tuple[str, ...]] = [(REV,), (TYPE,), (REV, TYPE), (REV, TYPE, "tenant", "id", "text", "theirs")]
    made = [
        {name: value for name, value in item.items() if name not in names}
        for item, names in zip(whole, lacking, strict=False)
    ]
    wrong: list[dict[str, Any]] = [
        {REV: {"N": "1"}},
        {TYPE: {"N": "1"}},
        {EXPIRES_AT: {"S": "soon"}},
        {"tenant": {"S": "another"}},
        {"text": {"M": {}}},
    ]
    return made + [{**item, **odd} for item, odd in zip(whole[len(lacking) :], wrong, strict=True)]


def test_damaged_markers_and_odd_items_survive_a_resize_and_do_not_stop_it(world: Moving) -> None:
    sorts = movers(9 + len(DAMAGED))
    items = odd_items(sorts[:9])
    markers = [marker(sort, each) for sort, each in zip(sorts[9:], DAMAGED, strict=True)]
    world.fill(Thing, 20)
    for row in (*items, *markers):
        world.put(row)

    ended = world.resize(ABC, 8, survey=False)

    rows = {row[SK]["S"]: row for row in world.raw()}
    assert ended.stage == "stable"
    assert len(world.raw()) == len(rows) == 20 + len(items) + len(markers)
    assert [rows[row[SK]["S"]] for row in markers] == markers
    moved = [{**row, PK: {"S": at(row[SK]["S"], 8)}, MOVED_FROM: {"N": "4"}} for row in items]
    assert [rows[row[SK]["S"]] for row in items] == moved
    found = world.of(Thing).count({"tenant": "abc"})
    assert (found, len(found.undecodable)) == (20 + 3, len(items) - 3)


def test_a_sweep_leaves_damaged_markers_and_brings_odd_items_home(world: Moving) -> None:
    """They are stored at the old homes after the second pass."""
    sorts = movers(9 + len(DAMAGED))
    items = odd_items(sorts[:9])
    markers = [marker(sort, each) for sort, each in zip(sorts[9:], DAMAGED, strict=True)]
    world.fill(Thing, 20)
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, "sweep")
    for row in (*items, *markers):
        world.put(row)

    ended = world.finish(ABC)

    rows = {row[SK]["S"]: row for row in world.raw()}
    assert ended.stage == "stable"
    assert len(world.raw()) == len(rows) == 20 + len(items) + len(markers)
    assert [rows[row[SK]["S"]] for row in markers] == markers
    for row in items:
        now = rows[row[SK]["S"]]
        assert {**now, PK: row[PK]} == {**row, MOVED_FROM: {"N": "4"}}
        assert now[PK] == {"S": at(row[SK]["S"], 8)}
