"""How a backfill reads and writes so that others are delayed little, and when it notes its progress."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from dynashard.backfills import Options, Report
from dynashard.testing.faults import Fault, FaultyTransport, Send
from dynashard.transport import Transport
from dynashard.transport.interface import Wire
from tests.engine.backfills.backfill_world import DEFAULT, backfill_of, filled
from tests.engine.resharding.resharding_world import Moving, moving_world

pytestmark = pytest.mark.engine


@pytest.fixture
def world(wire: Transport, table: str) -> Iterator[Moving]:
    with moving_world(wire, table) as made:
        filled(made, 90)
        yield made


class KilledError(Exception):
    """The process ends here."""


def killed(_send: Send, _request: Any) -> Wire:
    raise KilledError


def scans(wire: FaultyTransport) -> list[Any]:
    return [call.request for call in wire.calls if call.operation == "Scan"]


def noted(world: Moving, wire: FaultyTransport) -> int:
    """Return how often progress was stored."""
    return sum(call.operation == "UpdateItem" and call.request["TableName"] == world.topology for call in wire.calls)


@pytest.mark.parametrize(("kind", "items"), [("migrate", 40), ("by_amount", 20)])
def test_a_page_is_what_is_written_in_a_tenth_of_a_second(world: Moving, kind: str, items: int) -> None:
    wire = FaultyTransport(world.inner)

    report = backfill_of(world, kind, wire).run()

    assert (report.complete, report.written) == (True, 90)
    assert [each["Limit"] for each in scans(wire)][:2] == [items, items]


def test_pages_of_items_that_need_no_write_grow(world: Moving) -> None:
    backfill_of(world, "by_amount", world.inner).run()
    wire = FaultyTransport(world.inner)

    report = backfill_of(world, "by_amount", wire, replace(DEFAULT, chunk=70)).run()

    assert report.written == 0
    assert [each["Limit"] for each in scans(wire)] == [20, 40, 70]


def test_the_table_is_read_from_start_to_end_if_one_partition_can_give_the_units(world: Moving) -> None:
    wire = FaultyTransport(world.inner)

    report = backfill_of(world, "migrate", wire).run()

    assert report.tasks == 1
    assert all("Segment" not in each for each in scans(wire))


@pytest.mark.parametrize(
    ("options", "workers", "tasks"),
    [
        (Options(), 1, 1),
        (Options(write_units=1.0, read_units=1.0), 1, 1),
        (Options(write_units=401.0), 2, 8),
        (Options(read_units=1201.0), 2, 8),
        (Options(write_units=2_000.0), 5, 20),
        (Options(write_units=1e6), 16, 64),
        (Options(tasks=3), 1, 3),
        (Options(workers=3), 3, 12),
    ],
)
def test_more_units_are_shared_by_more_workers(options: Options, workers: int, tasks: int) -> None:
    assert (options.at_a_time, options.segments) == (workers, tasks)


@pytest.mark.parametrize(("workers", "tasks", "items"), [(1, 2, 40), (2, 2, 20), (2, 1, 40)])
def test_workers_share_the_units(world: Moving, workers: int, tasks: int, items: int) -> None:
    wire = FaultyTransport(world.inner)

    backfill_of(world, "migrate", wire, Options(workers=workers, tasks=tasks)).run()

    assert scans(wire)[0]["Limit"] == items


def test_the_time_of_a_write_counts_towards_the_wait_for_the_next(world: Moving) -> None:
    def slow(send: Send, request: Any) -> Wire:
        world.sleep(0.06)
        return send(request)

    wire = FaultyTransport(world.inner, [Fault("UpdateItem", slow, nth=None, text=world.table)])
    began = world.clock()

    report = backfill_of(world, "by_amount", wire, Options(write_units=20.0)).run()

    assert report.written == 90
    # 3 units for each item at 20 a second; otherwise each write would add its 0.06 s.
    assert 13.0 <= world.clock() - began <= 14.0


def test_workers_are_far_apart(world: Moving) -> None:
    wire = FaultyTransport(world.inner)

    report = backfill_of(world, "migrate", wire, Options(workers=2, tasks=6)).run()

    order = list(dict.fromkeys(each["Segment"] for each in scans(wire)))
    assert (report.complete, report.written) == (True, 90)
    assert [set(order[at : at + 2]) for at in (0, 2, 4)] == [{0, 3}, {1, 4}, {2, 5}]


def test_a_backfill_that_a_release_with_segments_began_is_ended_in_these(world: Moving) -> None:
    reports: list[Report] = []
    begun = Options(workers=2, tasks=8, chunk=2, seconds=0.01)
    first = backfill_of(world, "migrate", world.inner, begun).run(reports.append, lambda: bool(reports))
    wire = FaultyTransport(world.inner)

    report = backfill_of(world, "migrate", wire).run()

    assert (first.complete, report.complete, report.written) == (False, True, 90)
    assert {each["TotalSegments"] for each in scans(wire)} == {8}
    assert report.tasks == 8


def test_progress_is_noted_once_a_second(world: Moving) -> None:
    wire = FaultyTransport(world.inner)
    began = world.clock()

    report = backfill_of(world, "by_amount", wire, Options(write_units=20.0, seconds=1e9, chunk=2)).run()

    seconds = world.clock() - began
    assert report.written == 90
    assert len(scans(wire)) > seconds * 2
    assert seconds / 2 < noted(world, wire) <= seconds + 1


def test_a_kill_loses_the_note_of_about_a_second_of_work(world: Moving) -> None:
    dies = FaultyTransport(world.inner, [Fault("UpdateItem", killed, nth=80)])
    options = Options(write_units=20.0, seconds=1e9)

    with pytest.raises(KilledError):
        backfill_of(world, "by_amount", dies, options).run()
    missing = sum("GSI2PK" not in item for item in world.raw())
    report = backfill_of(world, "by_amount", world.inner, options).run()

    assert report.complete
    # What it had written is counted, but for two pages of ten.
    assert (90 - missing) - 20 <= report.written - missing < 90 - missing
