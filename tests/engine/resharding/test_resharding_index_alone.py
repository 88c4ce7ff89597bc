"""An index whose count grows for new entries alone: readers first, then writers, and nothing is rewritten."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

import pytest

from dynashard import Collection, definition
from dynashard.entity import ItemKey
from dynashard.errors import InvalidValueError, ReshardRefusedError
from dynashard.growth.requests import shrink_quiet
from dynashard.growth.settings import GrowthSettings
from dynashard.growth.terms import GrowthEvent
from dynashard.resharding import Scope
from dynashard.routing import index_home
from dynashard.schema import SK
from tests.depth import examples
from tests.engine.resharding.resharding_world import TIMING, Moving, Thing, index, partition

pytestmark = pytest.mark.engine

RED = {"tenant": "abc", "colour": "red"}
ORDERS = ("round_robin", "ordered", "shard")


def scope() -> Scope:
    return index(Thing, "by_colour")


def place(name: str, count: int) -> str:
    """Return where the entry of a red thing stands under a count."""
    entity = definition(Thing)
    by_colour = entity.indexes["by_colour"]
    entry = by_colour.entry({**RED, "id": name})
    assert entry is not None
    return index_home(by_colour, entry, ItemKey("move.v1.Thing:abc", name), count)


def places(world: Moving) -> dict[str, str]:
    return {item[SK]["S"]: item["GSI2PK"]["S"] for item in world.raw() if "GSI2PK" in item}


def ids(items: Collection[Any], order: str) -> list[str]:
    pages = items.pages(RED, index="by_colour", order=order, limit=7)
    return sorted(item.id for page in pages for item in page.items)


def stages(world: Moving) -> Iterator[str]:
    """Carry a resize out, and yield the stages that are published."""
    seen = ""
    for _ in range(60):
        stage = world.resharder.status(scope()).stage
        if stage != seen:
            yield stage
            seen = stage
        if world.step(scope().key).kind == "done":
            return


def test_more_shards_hold_for_new_entries_and_nothing_is_written(world: Moving) -> None:
    world.fill(Thing, 40, colour=lambda _: "red")
    before = world.raw()
    began = world.clock.now

    world.resharder.start(scope(), 16)
    passed = list(stages(world))

    status = world.resharder.status(scope())
    assert passed == ["pending", "prepare", "stable"]
    assert (status.count, status.former, status.rewrites, status.moved, status.busy) == (16, [2], False, 0, False)
    assert world.raw() == before
    assert world.clock.now - began <= 3 * TIMING.wait(TIMING.lease) + 1
    things = world.of(Thing)
    things.create(tenant="abc", id="new", colour="red")
    things.replace(Thing(tenant="abc", id="0007", colour="red"))
    now = places(world)
    assert now == {
        **{f"{n:04d}": place(f"{n:04d}", 2) for n in range(40) if n != 7},
        "new": place("new", 16),
        "0007": place("0007", 16),
    }
    for order in ORDERS:
        assert ids(world.of(Thing), order) == [*(f"{n:04d}" for n in range(40)), "new"]


def test_writers_use_the_new_count_only_when_every_reader_looks_in_both_places(world: Moving) -> None:
    world.fill(Thing, 4, colour=lambda _: "red")
    shards = {place(f"{n:04d}", 2) for n in range(20)}
    name = next(f"{n:04d}" for n in range(4, 100) if place(f"{n:04d}", 16) not in shards)
    # Nothing moves, so only what was published before is waited for.
    world.clock.now += TIMING.wait(TIMING.lease)
    late = world.of(Thing)
    ids(late, "ordered")
    world.resharder.start(scope(), 16)
    published = world.clock.now
    world.resharder.advance(scope().key)
    assert world.resharder.status(scope()).stage == "prepare"

    world.of(Thing).create(tenant="abc", id=name, colour="red")
    found = ids(late, "ordered")
    before = places(world)[name]
    waits = [world.resharder.advance(scope().key).seconds]
    world.clock.now = published + TIMING.wait(TIMING.lease) - 1
    waits.append(world.resharder.advance(scope().key).seconds)
    prepared = world.of(Thing)
    ids(prepared, "ordered")
    world.clock.now += 1
    world.until(scope(), "stable")
    world.of(Thing).replace(Thing(tenant="abc", id=name, colour="red"))

    assert name in found
    assert before == place(name, 2)
    assert waits == [TIMING.wait(TIMING.lease), 1.0]
    assert places(world)[name] == place(name, 16)
    assert name in ids(prepared, "ordered")


def test_older_entries_are_rewritten_when_that_is_asked_for(world: Moving) -> None:
    world.fill(Thing, 40, colour=lambda _: "red")
    world.resize(scope(), 4)
    world.resize(scope(), 16)
    grown = world.resharder.status(scope()).former

    status = world.resize(scope(), 16, rewrite=True)

    assert grown == [2, 4]
    assert (status.count, status.former, status.moved) == (16, [], status.total)
    assert places(world) == {f"{n:04d}": place(f"{n:04d}", 16) for n in range(40)}
    assert ids(world.of(Thing), "round_robin") == [f"{n:04d}" for n in range(40)]


def test_a_resize_that_rewrites_brings_entries_from_before_the_index_was_sharded_to_their_places(
    world: Moving,
) -> None:
    world.fill(Thing, 20, colour=lambda _: "red")
    for item in world.raw():
        world.put({**item, "GSI2PK": {"S": item["GSI2PK"]["S"].rpartition(":")[0]}})

    world.resize(scope(), 16, rewrite=True)

    assert places(world) == {name: place(name, 16) for name in places(world)}


def test_a_resize_that_rewrites_brings_entries_of_all_counts_to_their_places(world: Moving) -> None:
    world.fill(Thing, 20, colour=lambda _: "red")
    world.resize(scope(), 4)

    status = world.resize(scope(), 16, rewrite=True)

    assert (status.count, status.former) == (16, [])
    assert places(world) == {f"{n:04d}": place(f"{n:04d}", 16) for n in range(20)}


def test_an_index_does_not_shrink_before_older_entries_are_rewritten(world: Moving) -> None:
    world.fill(Thing, 20, colour=lambda _: "red")
    world.resize(scope(), 16)

    for to, reason in ((8, "not_rewritten"), (16, "same_count")):
        with pytest.raises(ReshardRefusedError) as refused:
            world.resharder.start(scope(), to)
        assert refused.value.reason == reason
    world.resize(scope(), 16, rewrite=True)
    with pytest.raises(ReshardRefusedError) as again:
        world.resharder.start(scope(), 16, rewrite=True)

    assert again.value.reason == "same_count"
    assert world.resize(scope(), 1).former == []
    assert set(places(world).values()) == {"move.v1.Thing:abc:red:0"}


def test_what_cannot_be_rewritten_or_must_be_is_refused(world: Moving) -> None:
    with pytest.raises(InvalidValueError, match="no index is named"):
        world.resharder.start(partition(Thing), 8, rewrite=True)
    with pytest.raises(InvalidValueError, match="cannot shrink without rewriting"):
        world.resharder.start(scope(), 1, rewrite=False)


@pytest.mark.parametrize("stage", ["pending", "prepare"])
def test_growth_is_taken_back_until_writers_use_the_new_count(world: Moving, stage: str) -> None:
    world.fill(Thing, 10, colour=lambda _: "red")
    world.resharder.start(scope(), 16)
    world.until(scope(), stage)

    world.resharder.abort(scope())
    status = world.finish(scope())

    assert (status.count, status.former, status.busy) == (2, [], False)
    world.of(Thing).create(tenant="abc", id="new", colour="red")
    assert places(world)["new"] == place("new", 2)


def test_the_way_back_from_fewer_shards_rewrites_the_entries_that_were_rewritten(world: Moving) -> None:
    world.fill(Thing, 30, colour=lambda _: "red")
    world.resharder.start(scope(), 8, rewrite=True)
    world.finish(scope())
    before = places(world)
    world.resharder.start(scope(), 2, survey=False)
    world.until(scope(), "move")
    world.clock.now += TIMING.wait(TIMING.lease)
    world.resharder.work(scope().key, 0, seconds=1e9)

    world.resharder.abort(scope())
    status = world.finish(scope())

    assert (status.count, status.former, status.busy) == (8, [], False)
    assert places(world) == before


def test_rewriting_under_the_same_count_can_be_aborted_at_any_time(world: Moving) -> None:
    world.fill(Thing, 30, colour=lambda _: "red")
    world.resize(scope(), 16)
    world.resharder.start(scope(), 16, rewrite=True, survey=False)
    world.until(scope(), "move")
    world.clock.now += TIMING.wait(TIMING.lease)
    world.resharder.work(scope().key, 0, seconds=1e9)

    world.resharder.abort(scope())
    status = world.finish(scope())

    assert (status.count, status.former, status.busy, status.back_to) == (16, [2], False, None)
    assert len(set(places(world).values())) > 2
    for order in ORDERS:
        assert ids(world.of(Thing), order) == [f"{n:04d}" for n in range(30)]


def test_a_hot_index_of_any_size_grows_and_is_rewritten_when_it_is_quiet(world: Moving) -> None:
    world.fill(Thing, 20, colour=lambda _: "red")
    resharder = world.on(world.inner, most_seconds=1.0)
    resharder.start(scope(), 16, cause="throttle")
    grown = world.finish(scope(), resharder)
    quiet = GrowthSettings()

    def after_two_days() -> tuple[GrowthEvent, int | None, int, Sequence[int]]:
        world.clock.now += 2 * 24 * 3600.0
        [asked] = shrink_quiet(world.resharder, settings=quiet)
        status = world.finish(scope())
        return asked.event, asked.target, status.count, status.former

    assert (grown.count, grown.former, grown.declined) == (16, [2], None)
    assert after_two_days() == (GrowthEvent.ASKED, 16, 16, [])
    assert after_two_days() == (GrowthEvent.ASKED, 8, 8, [])
    assert ids(world.of(Thing), "ordered") == [f"{n:04d}" for n in range(20)]


@dataclass
class Traffic:
    """Three processes that write and list things, with views that are up to a lease old."""

    world: Moving
    random: Random
    tenant: str
    live: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.clients, self.names = [self.world.of(Thing) for _ in range(3)], count()

    def write(self) -> None:
        things, random, old = self.random.choice(self.clients), self.random, sorted(self.live)
        if old and random.random() < 0.15:
            things.delete(tenant=self.tenant, id=old[0])
            self.live.remove(old[0])
            return
        name = random.choice(old) if old and random.random() < 0.6 else f"{next(self.names):04d}"
        things.replace(Thing(tenant=self.tenant, id=name, colour="red"))
        self.live.add(name)

    def list(self) -> None:
        things, red = self.random.choice(self.clients), {**RED, "tenant": self.tenant}
        limit, order = self.random.choice([2, 5, 50]), self.random.choice(ORDERS)
        pages = things.pages(red, index="by_colour", order=order, limit=limit)
        assert sorted(item.id for page in pages for item in page.items) == sorted(self.live)

    def wait(self) -> None:
        self.world.clock.now += self.random.choice([0.1, 5, 20, 31])

    def resize(self) -> None:
        """Take a step of the resize that is under way, or start one."""
        world, random = self.world, self.random
        resharder, key = world.resharder, scope().key
        if resharder.poll():
            step = resharder.advance(key)
            for task in step.tasks:
                resharder.work(key, task, seconds=random.choice([0.0, 1e9]))
            world.clock.now += min(step.seconds, random.choice([0, 3, 1e9]))
            return
        now = resharder.status(scope())
        to = random.choice([n for n in (1, 2, 4, 8) if n >= now.count or not now.former])
        if to != now.count or now.former:
            rewrite = True if to <= now.count else random.random() < 0.3
            resharder.start(scope(), to, rewrite=rewrite, survey=False)


def test_clients_behind_by_a_phase_find_every_entry_once_while_an_index_grows_and_is_rewritten(world: Moving) -> None:
    former = 0
    for seed in range(examples(100)):
        traffic = Traffic(world, Random(seed), f"t{seed}")
        acts = [traffic.write, traffic.list, traffic.wait, traffic.resize]
        for act in traffic.random.choices(acts, [4, 2, 1, 4], k=100):
            act()
            former = max(former, len(world.resharder.status(scope()).former))
        world.finish(scope())
        traffic.list()
    assert former > 1
