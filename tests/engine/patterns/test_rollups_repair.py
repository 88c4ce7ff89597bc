"""Wrong roll-ups are found and repaired while counting continues."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import pytest

from dynashard import Dynashard, Entity, Key, Registry
from dynashard.errors import InvalidQueryError
from dynashard.testing.faults import Fault, FaultyTransport, Send, afterwards
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport, Wire
from dynashard_patterns.rollups import ItemCounter, Level, RepairResult, RollUpRepair
from dynashard_patterns.rollups.declaration import Counted
from dynashard_patterns.rollups.levels import LAST
from tests.beats import BEATS, NOON, Beat, Months, Sums, beat, roll_ups, stored_sums, truth
from tests.recording import RecordingTransport

pytestmark = pytest.mark.engine

TENANTS = (f"tenant-{number}" for number in count())
DAY = NOON.replace(hour=0)
MONTH = DAY.replace(day=1)
KEYS = ["only-ever-in-these-tests"]


@pytest.fixture(scope="module")
def shared(create_table: Callable[[], str]) -> str:
    """One table for all tests of this module. Each uses its own tenants."""
    return create_table()


@pytest.fixture
def db(wire: Transport, shared: str) -> Dynashard:
    return Dynashard(wire, table=shared, topology=DeclaredTopology(), cursor_keys=KEYS)


@pytest.fixture
def beats(db: Dynashard) -> list[Beat]:
    """Stored but uncounted beats of a new tenant."""
    tenant = next(TENANTS)
    found = [beat(n, ("one", "two")[n % 2], minutes=17 * n, loud=n, tenant=tenant) for n in range(1, 30)]
    db.collection(Beat).batch_write(put=found)
    return found


def repair_of(db: Dynashard, beats: list[Beat], **more: Any) -> RollUpRepair[Beat]:
    return RollUpRepair(db, BEATS, {"tenant": beats[0].tenant}, **more)


def counter(db: Dynashard, slot: int = 0) -> ItemCounter[Beat]:
    return ItemCounter(db, BEATS, random=lambda: (slot + 0.5) / BEATS.spread)


def month(repair: RollUpRepair[Beat], **more: Any) -> RepairResult:
    return repair.repair(MONTH + timedelta(days=19), MONTH + timedelta(days=21), **more)


def days(repair: RollUpRepair[Beat]) -> list[Any]:
    return list(repair.check(DAY, DAY + timedelta(days=1)))


def test_rows_that_are_counted_correctly_show_no_difference(db: Dynashard, beats: list[Beat]) -> None:
    counter(db).count(beats)
    read: list[int] = []

    assert days(repair_of(db, beats, advance=read.append)) == []
    assert read[-1] == len(beats)


def test_items_that_were_never_counted_are_found_in_each_span_that_lies_within(
    db: Dynashard, beats: list[Beat]
) -> None:
    counter(db).count(beats[5:])

    found = days(repair_of(db, beats))

    levels = [dict(each.row.key)["level"] for each in found]
    assert {level: levels.count(level) for level in set(levels)} == {"minute": 5, "hour": 4, "day": 2}
    assert all(each.lacking for each in found)
    [one] = [each for each in found if dict(each.row.key)["level"] == "day" and dict(each.row.key)["song"] == "one"]
    all_of_one = [each for each in beats if each.song == "one"]
    assert one.expected == {"beats": len(all_of_one), "loud": sum(each.loud for each in all_of_one)}
    assert one.stored == {"beats": len(all_of_one) - 2, "loud": one.expected["loud"] - 6}


def test_a_month_is_compared_with_the_others(db: Dynashard, beats: list[Beat]) -> None:
    counter(db).count(beats[1:])

    found = list(repair_of(db, beats).check(MONTH, MONTH + timedelta(days=30)))

    assert [dict(each.row.key)["level"] for each in found] == ["minute", "hour", "day", "month"]


def test_only_the_named_hours_are_read(wire: Transport, shared: str, db: Dynashard, beats: list[Beat]) -> None:
    counter(db).count(beats[1:])
    recorded = RecordingTransport(wire)
    repair = repair_of(Dynashard(recorded, table=shared, topology=DeclaredTopology(), cursor_keys=KEYS), beats)
    hours = {Level.HOUR.start(each.at) for each in beats}

    found = list(repair.check(MONTH, MONTH + timedelta(days=30), hours=hours))

    assert [dict(each.row.key)["level"] for each in found] == ["minute", "hour", "day", "month"]
    assert sum("IndexName" in request for request in recorded.requests) == len(hours)


def test_a_day_without_items_is_looked_up_once(wire: Transport, shared: str) -> None:
    recorded = RecordingTransport(wire)
    db = Dynashard(recorded, table=shared, topology=DeclaredTopology(), cursor_keys=KEYS)
    repair = RollUpRepair(db, BEATS, {"tenant": next(TENANTS)})

    assert list(repair.check(NOON, DAY + timedelta(days=3))) == []
    assert sum("IndexName" in request for request in recorded.requests) == 3


def test_all_rows_that_lack_items_are_repaired_and_not_counted_again(db: Dynashard, beats: list[Beat]) -> None:
    counter(db).count(beats[10:])
    repair = repair_of(db, beats)

    mended = month(repair)
    late = counter(db, 1).count(beats)

    assert mended.mended > 0
    assert (mended.kept, mended.left) == (0, 0)
    assert days(repair) == []
    assert late.counted == 0
    assert month(repair) == RepairResult()


def test_an_item_that_begins_another_part_while_items_are_read_is_counted_once(
    wire: Transport, shared: str, db: Dynashard, beats: list[Beat]
) -> None:
    counter(db).count(beats[1:])
    arriving: list[Callable[[], object]] = []

    def interrupted(send: Send, request: Mapping[str, Any]) -> Wire:
        if arriving:
            arriving.pop()()
        return send(request)

    faulty = FaultyTransport(wire, [Fault("Query", interrupted, nth=None)])
    repair = repair_of(Dynashard(faulty, table=shared, topology=DeclaredTopology(), cursor_keys=KEYS), beats)
    wrong = days(repair)
    arriving.append(lambda: counter(db, 3).count(beats[:1]))

    _, left = repair.mend(wrong)

    assert (left, arriving) == (set(), [])
    assert stored_sums(db, tenant=beats[0].tenant) == truth(beats)


def test_nothing_is_lowered_while_an_item_does_not_fit(
    wire: Transport, shared: str, db: Dynashard, beats: list[Beat]
) -> None:
    counter(db).count(beats)
    before = stored_sums(db, tenant=beats[0].tenant)
    [item] = [
        row
        for row in wire.call("Scan", {"TableName": shared})["Items"]
        if row["PK"]["S"].startswith(f"test.v1.Beat:{beats[0].tenant}:") and row["SK"]["S"].endswith(f"#{beats[0].id}")
    ]
    wire.call("PutItem", {"TableName": shared, "Item": {**item, "loud": {"S": "very"}}})

    result = repair_of(db, beats).repair(MONTH, MONTH + timedelta(days=30), lower=True)

    assert (result.mended, result.kept) == (0, 4)
    assert stored_sums(db, tenant=beats[0].tenant) == before


def test_roll_ups_can_be_rebuilt_from_their_items(db: Dynashard, beats: list[Beat]) -> None:
    mended = repair_of(db, beats).repair(MONTH, MONTH + timedelta(days=30))

    assert mended.left == 0
    assert stored_sums(db, tenant=beats[0].tenant) == truth(beats)


def test_items_of_the_last_moments_of_all_times_are_compared_and_repaired(db: Dynashard) -> None:
    tenant = next(TENANTS)
    beats = [beat(n, tenant=tenant).model_copy(update={"at": LAST - timedelta(hours=n)}) for n in range(2)]
    db.collection(Beat).batch_write(put=beats)
    repair, last_month = repair_of(db, beats), Level.MONTH.start(LAST)

    found = list(repair.check(last_month, LAST))
    mended = repair.repair(last_month, LAST)

    levels = [dict(each.row.key)["level"] for each in found]
    assert {level: levels.count(level) for level in set(levels)} == {"minute": 2, "hour": 2, "day": 1, "month": 1}
    assert (mended.mended, mended.left) == (6, 0)
    assert list(repair.check(last_month, LAST)) == []


class Passing(
    Entity,
    name="repair.v1.Passing",
    key=Key("{tenant}:{song}", "{level}#{start}#{slot:02d}"),
    expires="until",
    registry=Registry(),
):
    tenant: str
    song: str
    level: Level
    start: datetime
    slot: int
    beats: int = 0
    until: datetime | None = None


@pytest.mark.parametrize(("hours", "levels"), [(13, [Level.HOUR, Level.DAY]), (15, [Level.DAY])])
def test_only_rows_that_are_still_kept_must_be_there(db: Dynashard, hours: int, levels: list[Level]) -> None:
    passing = roll_ups(
        name="passing",
        into={Passing: ("hour", "day")},
        add=lambda _: {"beats": 1},
        keep={"hour": timedelta(hours=1), "day": timedelta(days=9)},
    )
    one = beat(1, tenant=next(TENANTS))
    db.collection(Beat).create(one)
    now = (DAY + timedelta(hours=hours)).timestamp()
    repair = RollUpRepair(db, passing, {"tenant": one.tenant}, clock=lambda: now)

    assert [each.row.level for each in days(repair)] == levels


def test_rows_that_are_too_high_are_kept_unless_lowering_is_requested(db: Dynashard, beats: list[Beat]) -> None:
    counter(db).count(beats)
    db.collection(Beat).delete(beats[0])
    repair = repair_of(db, beats)

    kept = month(repair)
    lowered = month(repair, lower=True)

    assert kept == RepairResult(kept=3)
    assert lowered == RepairResult(mended=3)
    assert days(repair) == []


def test_a_span_without_items_of_a_group_is_found(db: Dynashard, beats: list[Beat]) -> None:
    counter(db).count(beats)
    ghost = beat(99, "one", minutes=3 * 17 + 1, tenant=beats[0].tenant)
    counter(db).count([ghost])

    found = days(repair_of(db, beats))

    assert [(dict(each.row.key)["level"], each.lacking) for each in found] == [
        ("minute", False),
        ("hour", False),
        ("day", False),
    ]
    assert found[0].expected == {}


def test_an_item_that_is_counted_meanwhile_is_not_repaired_as_well(
    wire: Transport, shared: str, db: Dynashard, beats: list[Beat]
) -> None:
    other = counter(db, 1)
    tries = iter([beats[:3], beats[3:9], beats[9:]])

    def count_some() -> None:
        other.count(next(tries, []))

    faulty = FaultyTransport(wire, [Fault("TransactWriteItems", _before(count_some), None)])
    repair = repair_of(Dynashard(faulty, table=shared, topology=DeclaredTopology(), cursor_keys=KEYS), beats)

    mended = repair.repair(MONTH, MONTH + timedelta(days=30))

    assert mended.left == 0
    assert stored_sums(db, tenant=beats[0].tenant) == truth(beats)
    assert days(repair_of(db, beats)) == []


def test_an_item_that_is_stored_meanwhile_is_counted_once(
    wire: Transport, shared: str, db: Dynashard, beats: list[Beat]
) -> None:
    late = beat(77, "one", minutes=20, tenant=beats[0].tenant)
    faulty = FaultyTransport(
        wire, [afterwards("BatchGetItem", lambda: db.collection(Beat).batch_write(put=[late]), nth=1)]
    )

    repair_of(Dynashard(faulty, table=shared, topology=DeclaredTopology(), cursor_keys=KEYS), beats).repair(
        MONTH, MONTH + timedelta(days=30)
    )
    counter(db, 2).count([late])
    repair_of(db, beats).repair(MONTH, MONTH + timedelta(days=30))

    assert stored_sums(db, tenant=beats[0].tenant) == truth([*beats, late])


def test_an_item_that_is_stored_during_a_repair_is_counted_in_each_row_within_the_hour(
    db: Dynashard, beats: list[Beat]
) -> None:
    counter(db).count(beats[1:])
    repair = repair_of(db, beats)
    wrong = days(repair)
    late = beat(79, beats[0].song, minutes=50, tenant=beats[0].tenant)
    db.collection(Beat).create(late)

    left = repair.correct(wrong)
    tally = counter(db, 1).count([late])

    assert (left, tally.counted) == (set(), 0)
    assert days(repair) == []


@pytest.mark.parametrize("together", [1, 400])
def test_the_repair_of_a_day_also_repairs_the_month_that_lacks_the_same_items(
    db: Dynashard, beats: list[Beat], monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    monkeypatch.setattr("dynashard_patterns.rollups.repair._MARKED_TOGETHER", together)
    counter(db).count(beats[3:])

    mended = repair_of(db, beats).repair(DAY, DAY + timedelta(days=1))

    assert mended.left == 0
    assert stored_sums(db, tenant=beats[0].tenant) == truth(beats)


def test_an_item_that_comes_while_an_hour_is_repaired_is_counted_in_its_day_and_its_month(
    db: Dynashard, beats: list[Beat]
) -> None:
    counter(db).count(beats[1:])
    repair = repair_of(db, beats)
    [wrong] = [each for each in days(repair) if each.row.level is Level.HOUR]
    late = beat(79, beats[0].song, minutes=50, tenant=beats[0].tenant)
    db.collection(Beat).create(late)

    found, left = repair.mend([wrong])
    tally = counter(db, 1).count([late, beats[0]])

    assert (left, tally.counted) == (set(), 0)
    assert [each.row.level for each in found] == [Level.HOUR, Level.DAY, Level.MONTH]
    assert stored_sums(db, tenant=beats[0].tenant) == truth([*beats, late])


@pytest.mark.parametrize("hour", [-12, 11], ids=["first of its day", "last of its day"])
def test_an_hour_at_the_edge_of_its_day_is_repaired_with_the_day_and_the_month(db: Dynashard, hour: int) -> None:
    tenant = next(TENANTS)
    [early, late] = beats = [beat(n, minutes=60 * hour + 10 * n, tenant=tenant) for n in range(2)]
    db.collection(Beat).create(early)
    repair = repair_of(db, beats)
    [wrong] = [each for each in days(repair) if each.row.level is Level.HOUR]
    db.collection(Beat).create(late)

    found, left = repair.mend([wrong])

    assert ([each.row.level for each in found], left) == ([Level.HOUR, Level.DAY, Level.MONTH], set())
    assert list(repair.check(MONTH, Level.MONTH.end(MONTH))) == []


def test_longer_spans_that_were_repaired_are_not_read_again(
    wire: Transport, shared: str, db: Dynashard, beats: list[Beat]
) -> None:
    counter(db).count(beats[1:])
    recorded = RecordingTransport(wire)
    repair = repair_of(Dynashard(recorded, table=shared, topology=DeclaredTopology(), cursor_keys=KEYS), beats)
    drifts = list(repair.check(MONTH, Level.MONTH.end(MONTH)))
    before = sum("IndexName" in request for request in recorded.requests)

    found, left = repair.mend(drifts)

    assert (found, left) == (drifts, set())
    # The hour, the day, and each day of the month.
    assert sum("IndexName" in request for request in recorded.requests) == before + 1 + 1 + 30


def test_a_month_that_counts_more_than_its_items_is_left_by_the_repair_of_a_day(
    db: Dynashard, beats: list[Beat]
) -> None:
    deleted = [beat(200 + n, "one", minutes=-3000, tenant=beats[0].tenant) for n in range(2)]
    counter(db).count([*beats[1:], *deleted])
    repair = repair_of(db, beats)

    found, left = repair.mend(days(repair))

    assert {each.row.level for each in found} == {Level.MINUTE, Level.HOUR, Level.DAY}
    assert left == set()


def test_a_repair_that_counts_no_new_item_reads_no_longer_span(
    wire: Transport, shared: str, db: Dynashard, beats: list[Beat]
) -> None:
    counter(db).count(beats)
    for each in db.collection(Sums).scan({"tenant": beats[0].tenant, "song": "one"}):
        if each.level is Level.DAY and each.slot == 0:
            db.collection(Sums).update(each, set={"beats": 0})
    recorded = RecordingTransport(wire)
    repair = repair_of(Dynashard(recorded, table=shared, topology=DeclaredTopology(), cursor_keys=KEYS), beats)
    drifts = days(repair)
    before = sum("IndexName" in request for request in recorded.requests)

    found, left = repair.mend(drifts)

    assert [each.row.level for each in found] == [Level.DAY]
    assert left == set()
    assert sum("IndexName" in request for request in recorded.requests) == before + 1


def test_items_that_were_counted_are_not_marked_again(
    wire: Transport, shared: str, db: Dynashard, beats: list[Beat]
) -> None:
    counter(db).count(beats[1:])
    recorded = RecordingTransport(wire)
    repair = repair_of(Dynashard(recorded, table=shared, topology=DeclaredTopology(), cursor_keys=KEYS), beats)

    repair.correct(days(repair))

    marked = [
        put
        for request in recorded.requests
        for put in request.get("RequestItems", {}).get(shared, ())
        if "PutRequest" in put
    ]
    assert [put["PutRequest"]["Item"]["Type"] for put in marked] == [{"S": "dynashard.v1.Counted"}]


def test_an_item_counted_after_the_items_were_read_is_not_forgotten(
    wire: Transport, shared: str, db: Dynashard, beats: list[Beat]
) -> None:
    late = beat(78, "one", minutes=35, tenant=beats[0].tenant)

    def come() -> None:
        db.collection(Beat).create(late)
        counter(db, 1).count([late])

    faulty = FaultyTransport(wire, [afterwards("BatchWriteItem", come, nth=1)])

    repair_of(Dynashard(faulty, table=shared, topology=DeclaredTopology(), cursor_keys=KEYS), beats).repair(
        MONTH, MONTH + timedelta(days=30)
    )

    assert not faulty.waiting
    assert stored_sums(db, tenant=beats[0].tenant) == truth([*beats, late])


def test_rows_that_keep_changing_are_left(wire: Transport, shared: str, db: Dynashard, beats: list[Beat]) -> None:
    more = (beat(1000 + n, "one", minutes=17, tenant=beats[0].tenant) for n in count())

    def count_one_more() -> None:
        stored = next(more)
        db.collection(Beat).create(stored)
        counter(db, 1).count([stored])

    faulty = FaultyTransport(wire, [Fault("TransactWriteItems", _before(count_one_more), None)])
    repair = repair_of(Dynashard(faulty, table=shared, topology=DeclaredTopology(), cursor_keys=KEYS), beats[:1])

    mended = repair.repair(DAY + timedelta(hours=12), DAY + timedelta(hours=13))

    assert mended.left > 0


def test_a_repair_that_dies_between_marks_and_rows_is_done_again(
    wire: Transport, shared: str, db: Dynashard, beats: list[Beat]
) -> None:
    def die(_send: Any, _request: Any) -> Any:
        raise KeyboardInterrupt

    faulty = FaultyTransport(wire, [Fault("TransactWriteItems", die, 1)])

    with pytest.raises(KeyboardInterrupt):
        repair_of(Dynashard(faulty, table=shared, topology=DeclaredTopology(), cursor_keys=KEYS), beats).repair(
            MONTH, MONTH + timedelta(days=30)
        )
    counter(db).count(beats)
    repair_of(db, beats).repair(MONTH, MONTH + timedelta(days=30))

    assert stored_sums(db, tenant=beats[0].tenant) == truth(beats)
    marks = db.collection(Counted).batch_get([{"id": BEATS.mark(each)} for each in beats])
    assert None not in marks


@pytest.mark.parametrize(
    ("declared", "of"),
    [({"by_time": None}, {"tenant": "abc"}), ({}, {}), ({}, {"tenant": "abc", "song": "one"})],
)
def test_items_that_cannot_be_listed_by_time_cannot_be_compared(
    db: Dynashard, declared: dict[str, Any], of: dict[str, str]
) -> None:
    with pytest.raises(InvalidQueryError):
        RollUpRepair(db, roll_ups(into={Sums: ("day",), Months: ("month",)}, **declared), of)


def _before(action: Callable[[], object]) -> Callable[[Callable[[Any], Any], Any], Any]:
    def strike(send: Callable[[Any], Any], request: Any) -> Any:
        action()
        return send(request)

    return strike
