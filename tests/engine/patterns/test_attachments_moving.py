"""Attachments while the shard count of their items changes, and with many concurrent writers."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import pytest
from msgspec.structs import replace

from dynashard import Collection, Entity, Key, Registry, Shards, definition
from dynashard.errors import AlreadyExistsError
from dynashard.repository import RetryPolicy
from dynashard.testing.faults import meanwhile
from dynashard.transport import Transport
from dynashard_patterns.attachments.sweep import sweep
from dynashard_patterns.attachments.versions import GRACE_SECONDS
from tests.engine.patterns.attachment_world import KEY, Report, large, pointed, reports, versions
from tests.engine.repository.late_world import client
from tests.engine.resharding.mover_world import strays
from tests.engine.resharding.resharding_world import Moving, moving_world, partition, whole
from tests.engine.stored_things import CURSORS, World
from tests.waiting import HANG_SECONDS

pytestmark = pytest.mark.engine

WRITERS, ROUNDS = 6, 3


@pytest.fixture
def moving(wire: Transport, table: str) -> Iterator[Moving]:
    with moving_world(wire, table) as made:
        yield made


def held(moving: Moving) -> tuple[set[str], set[str]]:
    """Return the versions of which anything is stored, and those that items point to."""
    items = moving.raw()
    stored = {item["SK"]["S"].split("#")[1] for item in items if "~" in item.get("Type", {}).get("S", "")}
    return stored, {item["details"]["M"]["V"]["S"] for item in items if "details" in item}


@pytest.mark.parametrize("scope", [partition, whole], ids=["partition", "entity"])
def test_a_pointer_moves_with_its_item_and_its_pieces_stay(moving: Moving, scope: Callable[[Any], Any]) -> None:
    """In every phase, up-to-date and outdated clients create, replace, change and delete items."""
    resharder = moving.new(entities=(Report,))
    old_client = moving.of(Report)
    expected: dict[str, Any] = {}

    def put(client: Any, name: str, number: int) -> None:
        client.put(Report(id=name, title=str(number), details={"name": name, "number": number}))
        expected[name] = (str(number), {"name": name, "number": number})

    for number in range(12):
        put(old_client, f"first-{number}", 0)
    resharder.start(scope(Report), 8)
    for step in range(60):
        client = old_client if step % 2 else moving.of(Report)
        put(client, f"made-{step}", step)
        put(client, f"first-{step % 8}", step)
        client.update({"tenant": "abc", "id": f"first-{8 + step % 2}"}, set={"details": step, "title": "u"})
        expected[f"first-{8 + step % 2}"] = ("u", step)
        client.replace(Report(id="first-10", title=str(step)))
        expected["first-10"] = (str(step), {"name": "first-10", "number": 0})
        if step % 3 == 2:
            client.delete({"tenant": "abc", "id": f"made-{step - 1}"})
            del expected[f"made-{step - 1}"]
        if moving.step(scope(Report).key, resharder).kind == "done":
            break
    assert resharder.status(scope(Report)).count == 8

    reader = moving.of(Report)
    found = {name: reader.get({"tenant": "abc", "id": name}, include=["details"]) for name in expected}
    assert {name: (item.title, item.details) for name, item in found.items()} == expected
    assert moving.misplaced(Report, 8) == []
    stored, current = held(moving)
    assert stored == current


def test_a_sweep_that_a_resize_overtakes_keeps_the_version_of_an_item_that_has_moved(moving: Moving) -> None:
    """Its read is executed when its lease has ended, the item has moved, and its marker is swept."""
    [moved] = strays(Report, 4, 8, 1)
    key = {"tenant": "abc", "id": moved["SK"]["S"]}
    moving.of(Report).create(Report(**key, details=["live"]))
    moving.clock.now += 2 * GRACE_SECONDS
    resharder = moving.new(entities=(Report,))

    def resized() -> None:
        resharder.start(partition(Report), 8)
        moving.finish(partition(Report), resharder)

    sweeper = client(moving, [meanwhile("BatchGetItem", resized)])

    *_, swept = sweep(sweeper.store, definition(Report))

    assert (swept.versions, swept.removed) == (1, 0)
    assert moving.of(Report).get(key, include=["details"]).details == ["live"]


def quick(world: World, transport: Transport) -> Collection[Report]:
    """Return a collection whose retries have short pauses and a long deadline."""
    retry_policy = RetryPolicy(seconds=HANG_SECONDS, first_pause=0.001, longest_pause=0.02)
    return Collection(replace(world.store, transport=transport, retry_policy=retry_policy), CURSORS, Report)


def test_readers_among_many_writers_never_see_a_mixture(world: World, wire: Transport) -> None:
    """Each writer writes whole versions named by their titles. Finally only the pieces of the last one are left."""
    documents = {n: large(n, 530) for n in range(WRITERS * ROUNDS + 1)}
    on = quick(world, wire)
    on.create(Report(title="0", details=documents[0]))
    begin, over = threading.Barrier(WRITERS + 2), threading.Event()
    wrong: list[str] = []
    seen: set[str] = set()

    def write(writer: int) -> None:
        begin.wait()
        for turn in range(ROUNDS):
            number = 1 + writer * ROUNDS + turn
            if turn % 2:
                on.update(KEY, set={"title": str(number), "details": documents[number]})
            else:
                on.replace(Report(title=str(number), details=documents[number]))

    def read() -> None:
        begin.wait()
        while not over.is_set():
            found = on.get(KEY, include=["details"])
            seen.add(found.title)
            if found.details != documents[int(found.title)]:
                wrong.append(found.title)

    with ThreadPoolExecutor(WRITERS + 2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        writers = [pool.submit(write, each) for each in range(WRITERS)]
        wait(writers)
        over.set()
        for each in (*writers, *readers):
            each.result()

    assert wrong == []
    assert seen
    last = on.get(KEY, include=["details"])
    assert last.details == documents[int(last.title)]
    assert versions(world) == pointed(world)
    assert len(versions(world)) == 1


def test_of_many_concurrent_creates_one_succeeds_and_the_others_leave_nothing(world: World, wire: Transport) -> None:
    begin = threading.Barrier(WRITERS)
    created: list[int] = []

    def create(number: int) -> None:
        begin.wait()
        try:
            reports(world, wire).create(Report(title=str(number), details=large(number, 10)))
        except AlreadyExistsError:
            return
        created.append(number)

    with ThreadPoolExecutor(WRITERS) as pool:
        for each in [pool.submit(create, number) for number in range(WRITERS)]:
            each.result()

    [winner] = created
    assert reports(world, wire).get(KEY, include=["details"]).details == large(winner, 10)
    assert versions(world) == pointed(world)


def test_a_release_that_does_not_declare_a_field_sweeps_none_of_its_current_versions_in_any_phase(
    moving: Moving,
) -> None:
    class Older(
        Entity, name="test.v1.Report", key=Key(partition="{tenant}", sort="{id}"), shards=Shards(4), registry=Registry()
    ):
        tenant: str
        id: str

    resharder = moving.new(entities=(Report,))
    expected, swept = {}, []
    for number in range(8):
        moving.of(Report).put(Report(id=f"first-{number}", details=[number]))
    resharder.start(partition(Report), 8)
    for step in range(60):
        names = [f"first-{step % 8}", f"made-{step}"]
        for name in names:
            moving.of(Report).put(Report(id=name, details=[name, step]))
            expected[name] = [name, step]
        if step:
            moving.of(Older).delete({"tenant": "abc", "id": f"made-{step - 1}"})
            del expected[f"made-{step - 1}"]
        moving.clock.now += 2 * GRACE_SECONDS
        *_, done = sweep(moving.client().store, definition(Older), undeclared=["details"])
        swept.append(done.removed)
        if moving.step(partition(Report).key, resharder).kind == "done":
            break

    assert resharder.status(partition(Report)).count == 8
    assert swept == [0, *[1] * (len(swept) - 1)]
    reader = moving.of(Report)
    assert {
        name: reader.get({"tenant": "abc", "id": name}, include=["details"]).details for name in expected
    } == expected
