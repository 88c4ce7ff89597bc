"""Roll-ups equal the sums of their items under any fault of stream and network."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count, pairwise
from threading import Barrier, Thread
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynashard import Dynashard, Entity, EntityDefinition, Key, RetryPolicy
from dynashard.errors import DynashardError, InvalidValueError
from dynashard.runtime import Runtime
from dynashard.testing.faults import (
    Fault,
    FaultyTransport,
    Send,
    conflict,
    lost_answer,
    lost_request,
    meanwhile,
    repeated,
    throttled,
)
from dynashard.topology import DeclaredTopology, Phase, Topology, View
from dynashard.transport import Transport, Wire
from dynashard_patterns.changes import Change
from dynashard_patterns.rollups import ItemCounter, Level, RollUpRepair, Tally
from dynashard_patterns.rollups.declaration import Counted
from dynashard_patterns.rollups.levels import LAST
from tests.beats import BEATS, NOON, REGISTRY, Beat, Sums, beat, roll_ups, stored_sums, truth
from tests.depth import examples
from tests.engine.stored_things import Clock

pytestmark = pytest.mark.engine

TENANTS = (f"tenant-{number}" for number in count())


def opened(transport: Transport, table: str, topology: Topology | None = None, **more: Any) -> Dynashard:
    waited = Clock(0)

    def sleep(seconds: float) -> None:
        waited.at += seconds

    retry_policy = RetryPolicy(seconds=5, runtime=Runtime(monotonic=waited, sleep=sleep))
    return Dynashard(
        transport,
        table=table,
        topology=topology or DeclaredTopology(),
        cursor_keys=["only-ever-in-these-tests"],
        retry_policy=retry_policy,
        **more,
    )


def counter(db: Dynashard, slot: int = 0) -> ItemCounter[Beat]:
    return ItemCounter(db, BEATS, random=lambda: (slot + 0.5) / BEATS.spread)


@pytest.fixture(scope="module")
def shared(create_table: Callable[[], str]) -> str:
    """One table for all tests of this module. Each uses its own tenants."""
    return create_table()


@pytest.fixture
def db(wire: Transport, shared: str) -> Dynashard:
    return opened(wire, shared)


@pytest.fixture
def own() -> str:
    return next(TENANTS)


def change(item: Beat, kind: Any = "created") -> Change[Beat]:
    key = {"tenant": item.tenant, "song": item.song, "at": item.at, "id": item.id}
    return Change(kind, Beat, key, None if kind == "created" else item, item, "1")


def changes(items: Sequence[Beat]) -> list[Change[Beat]]:
    return [change(item) for item in items]


@st.composite
def deliveries(draw: st.DrawFn) -> tuple[list[Beat], list[tuple[int, list[Beat]]]]:
    """Draw beats, and batches of them for two counters in any order, split and repeated."""
    beats = draw(
        st.lists(
            st.builds(
                beat,
                st.integers(0, 40),
                st.sampled_from(["one", "two"]),
                minutes=st.integers(0, 200),
                loud=st.integers(0, 3),
            ),
            min_size=1,
            max_size=60,
            unique_by=lambda b: (b.song, b.at, b.id),
        )
    )
    again = draw(st.lists(st.sampled_from(beats), max_size=60))
    stream = draw(st.permutations([*beats, *again]))
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=5)))
    bounds = [0, *cuts, len(stream)]
    return beats, [(draw(st.integers(0, 1)), list(stream[a:b])) for a, b in pairwise(bounds)]


@given(deliveries())
@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_batches_in_any_order_and_split_count_each_item_once(
    db: Dynashard, delivered: tuple[list[Beat], list[tuple[int, list[Beat]]]]
) -> None:
    tenant = next(TENANTS)
    counters = [counter(db, 0), counter(db, 1)]
    beats, batches = delivered

    for who, batch in batches:
        counters[who].handle(changes([each.model_copy(update={"tenant": tenant}) for each in batch]))

    assert stored_sums(db, tenant=tenant) == truth(beats)


def test_the_first_of_several_failures_is_raised(wire: Transport, shared: str) -> None:
    reasons = iter(["first", "second"])

    def refuse(_send: Send, _request: Mapping[str, Any]) -> Wire:
        raise InvalidValueError(next(reasons))

    tenant = next(TENANTS)
    once = counter(opened(FaultyTransport(wire, [Fault("TransactWriteItems", refuse, nth=None)]), shared))

    with pytest.raises(InvalidValueError, match="first"):
        once.count([beat(n, song=f"song {n}", tenant=tenant) for n in range(28)])
    assert next(reasons, None) is None


FAULTS = [lost_request, lost_answer, repeated, throttled, conflict]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_of_any_transaction_loses_and_doubles_nothing(
    wire: Transport, shared: str, own: str, fault: Callable[..., Fault], nth: int
) -> None:
    beats = [beat(n, minutes=n % 7, tenant=own) for n in range(200)]
    faulty = FaultyTransport(wire, [fault("TransactWriteItems", nth=nth)])
    once = counter(opened(faulty, shared))
    db = opened(wire, shared)

    try:
        once.handle(changes(beats))
    except DynashardError as error:
        assert error.transient  # noqa: PT017 - it may also pass
    counter(db, 3).handle(changes(beats[50:]))
    counter(db, 4).handle(changes(beats[:120]))

    assert not faulty.waiting
    assert stored_sums(db, tenant=own) == truth(beats)


class Passing(
    Entity,
    name="test.v1.Passing",
    key=Key("{tenant}", "{level}#{start}#{slot:02d}"),
    expires="until",
    registry=REGISTRY,
):
    tenant: str
    level: Level
    start: datetime
    slot: int
    beats: int = 0
    until: datetime | None = None


def test_rows_of_a_level_with_a_time_to_keep_expire_so_long_after_their_span(db: Dynashard, own: str) -> None:
    century = timedelta(days=36_500)
    passing = roll_ups(
        name="passing", into={Passing: ("hour", "day")}, add=lambda _: {"beats": 1}, keep={"hour": century}
    )
    beats = [beat(n, tenant=own) for n in range(3)]
    db.collection(Beat).batch_write(put=beats)

    for each in beats[:2]:
        ItemCounter(db, passing, random=lambda: 0.0).count([each])
    repaired = RollUpRepair(db, passing, {"tenant": own}).repair(NOON, NOON + timedelta(hours=1))

    [hour] = db.collection(Passing).items(tenant=own, prefix="hour")
    [day] = db.collection(Passing).items(tenant=own, prefix="day")
    assert (hour.beats, hour.until) == (3, NOON + timedelta(hours=1) + century)
    assert (day.beats, day.until) == (3, None)
    assert repaired.mended == 2


def test_a_row_that_would_expire_after_the_last_of_all_times_is_kept_until_then(db: Dynashard, own: str) -> None:
    century = timedelta(days=36_500)
    last = roll_ups(
        name="last",
        into={Passing: ("hour", "day")},
        add=lambda _: {"beats": 1},
        keep={"hour": century, "day": timedelta.max},
    )
    late = Beat(tenant=own, song="one", at=datetime(9999, 12, 31, 12, tzinfo=UTC), id="1")

    ItemCounter(db, last).count([late, beat(2, tenant=own)])

    found = {(row.start.year, str(row.level)): row.until for row in db.collection(Passing).scan(tenant=own)}
    assert found == {
        (2026, "hour"): NOON + timedelta(hours=1) + century,
        (2026, "day"): LAST.replace(microsecond=0),
        (9999, "hour"): LAST.replace(microsecond=0),
        (9999, "day"): LAST.replace(microsecond=0),
    }


class KilledError(BaseException):
    """The process is gone."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_batch_is_counted_once_when_its_counter_is_killed_at_any_transaction(
    wire: Transport, shared: str, own: str, when: str, nth: int
) -> None:
    def strike(send: Callable[[Any], Any], request: Any) -> Any:
        if when == "after":
            send(request)
        raise KilledError

    beats = [beat(n, minutes=n % 7, tenant=own) for n in range(200)]
    faulty = FaultyTransport(wire, [Fault("TransactWriteItems", strike, nth)])
    db = opened(wire, shared)

    with pytest.raises(KilledError):
        counter(opened(faulty, shared)).handle(changes(beats))
    tally = counter(db).count(beats)

    assert tally == Tally(200 - tally.known, tally.known)
    assert (tally.known > 0) == (nth > 1 or when == "after")
    assert stored_sums(db, tenant=own) == truth(beats)


def test_two_counters_at_the_same_items_count_them_once(wire: Transport, shared: str, own: str) -> None:
    beats = [beat(n, minutes=n % 3, tenant=own) for n in range(150)]
    db = opened(wire, shared)
    start, failures = Barrier(3), []

    def work(slot: int) -> None:
        start.wait()
        try:
            counter(
                Dynashard(wire, table=shared, topology=DeclaredTopology(), cursor_keys=["only-ever-in-these-tests"]),
                slot,
            ).count(beats)
        except DynashardError as error:
            failures.append(error)

    threads = [Thread(target=work, args=(slot,)) for slot in (0, 0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not failures
    assert stored_sums(db, tenant=own) == truth(beats)


def test_a_rival_counter_between_a_refusal_and_the_retry_is_noticed(wire: Transport, shared: str, own: str) -> None:
    beats = [beat(n, tenant=own) for n in range(9)]
    db = opened(wire, shared)
    other = counter(db, 1)
    faulty = FaultyTransport(
        wire,
        [
            meanwhile("TransactWriteItems", lambda: other.count(beats[:3]), nth=1),
            meanwhile("TransactWriteItems", lambda: other.count(beats[3:6]), nth=2),
        ],
    )

    tally = counter(opened(faulty, shared)).count(beats)

    assert tally == Tally(counted=3, known=6)
    assert stored_sums(db, tenant=own) == truth(beats)


def test_marks_not_yet_visible_to_plain_reads_are_not_counted_again(wire: Transport, shared: str, own: str) -> None:
    def nothing(_send: Any, _request: Any) -> Any:
        return {"Responses": {shared: []}}

    beats = [beat(n, tenant=own) for n in range(9)]
    db = opened(wire, shared)
    counter(db, 1).count(beats[2:6])
    faulty = FaultyTransport(wire, [Fault("BatchGetItem", nothing, None)])

    tally = counter(opened(faulty, shared)).count(beats)

    assert tally == Tally(counted=5, known=4)
    assert stored_sums(db, tenant=own) == truth(beats)


def test_late_items_count_in_their_own_spans(db: Dynashard, own: str) -> None:
    on_time = [beat(n, minutes=60 + n, tenant=own) for n in range(5)]
    late = [beat(n, minutes=n, tenant=own) for n in range(5, 9)]
    counting = counter(db)

    counting.handle(changes(on_time))
    counting.handle(changes(late))

    assert stored_sums(db, tenant=own) == truth([*on_time, *late])


@pytest.mark.parametrize("kind", ["updated", "deleted", "expired"])
def test_only_creation_counts(db: Dynashard, own: str, kind: str) -> None:
    counted = beat(1, tenant=own)
    counting = counter(db)

    counting.handle([change(counted), change(counted, kind), change(beat(2, tenant=own), kind)])

    assert stored_sums(db, tenant=own) == truth([counted])


class MovingRows(DeclaredTopology):
    """The count of the rows changes from 2 to 4."""

    phase: Phase = Phase.STABLE

    def view(self, entity: EntityDefinition[Any], partition: str) -> View:
        if entity.name != "test.v1.Sums" or self.phase is Phase.STABLE:
            return super().view(entity, partition)
        return View(2, self.phase, 4, markers=True)


def test_rows_are_exact_while_their_count_changes(wire: Transport, shared: str, own: str) -> None:
    topology = MovingRows()
    db = opened(wire, shared, topology=topology)
    counting = counter(db)
    beats = [beat(n, minutes=n % 20, tenant=own) for n in range(120)]

    counting.count(beats[:30])
    for at, phase in enumerate([Phase.PREPARE, Phase.MOVE]):
        topology.phase = phase
        counting.count(beats[30 * (at + 1) - 10 : 30 * (at + 2)])
        assert stored_sums(db, tenant=own) == truth(beats[: 30 * (at + 2)])


def test_fewer_requests_than_items(wire: Transport, shared: str, own: str) -> None:
    recording = FaultyTransport(wire)
    counting = counter(opened(recording, shared))
    beats = [beat(n, tenant=own) for n in range(90)]

    counting.count(beats)
    first = [call.operation for call in recording.calls]
    counting.count(beats)

    assert first == ["TransactWriteItems"]
    assert [call.operation for call in recording.calls][1:] == ["TransactWriteItems", "BatchGetItem"]


def test_marks_outlive_the_records_of_the_stream(wire: Transport, shared: str, own: str) -> None:
    db = opened(wire, shared)
    first = beat(1, tenant=own)
    later = datetime.now(UTC).replace(microsecond=0) + timedelta(days=100)
    ItemCounter(db, BEATS, clock=later.timestamp).count([first])

    [mark] = db.collection(Counted).batch_get([{"id": BEATS.mark(first)}], consistent=True)

    assert mark is not None
    assert mark.expires_at == later + timedelta(days=7)


def test_an_item_that_cannot_be_added_is_reported_and_the_rest_is_counted(db: Dynashard, own: str) -> None:
    beats = [beat(n, minutes=60 * n, tenant=own) for n in range(60)]
    wrong = roll_ups(add=lambda each: {"beats": 1, "loud": each.loud} if each.id != "7" else {"silence": 1})

    with pytest.raises(DynashardError, match="silence"):
        ItemCounter(db, wrong).count(beats)
    with pytest.raises(DynashardError, match="silence"):
        ItemCounter(db, wrong).count([beats[7]])
    ItemCounter(db, wrong).count([each for each in beats if each.id != "7"])

    rows = BEATS.read(db, {"tenant": own}, level="month", start=NOON.replace(day=1, hour=0), end=NOON)
    assert [row.beats for row in rows] == [59]


def test_a_group_is_identified_by_its_own_fields(db: Dynashard, own: str) -> None:
    counter(db, 0).count([beat(1, tenant=own), beat(2, "two", tenant=own)])
    counter(db, 1).count([beat(3, minutes=61, tenant=own)])
    counter(db, 2).count([beat(4, minutes=61, tenant=own)])

    rows = BEATS.read(
        db, {"tenant": own, "song": "one"}, level="hour", start=NOON, end=NOON + timedelta(hours=2), consistent=True
    )

    assert [(row.start, row.beats) for row in rows] == [(NOON, 1), (NOON + timedelta(hours=1), 2)]
    assert {type(row) for row in rows} == {Sums}
    assert {(row.slot, row.revision) for row in rows} == {(0, None)}


@pytest.mark.parametrize(
    ("by", "asked", "field"),
    [
        ({"tenant": "abc"}, {}, "song"),
        ({"song": "one"}, {}, "tenant"),
        ({"tenant": "abc", "song": "one", "id": "1"}, {}, "id"),
        ({"tenant": "abc", "song": "one", "slot": 1}, {}, "slot"),
        ({"tenant": "abc", "song": "one"}, {"level": "century"}, "level"),
        ({"tenant": "abc", "song": "one"}, {"level": "minute", "end": NOON + timedelta(days=30)}, "to"),
        ({"tenant": "abc", "song": "one"}, {"end": NOON}, "to"),
    ],
)
def test_an_impossible_group_is_refused(db: Dynashard, by: dict[str, Any], asked: dict[str, Any], field: str) -> None:
    wanted: dict[str, Any] = {"level": "hour", "start": NOON, "end": NOON + timedelta(hours=1), **asked}

    with pytest.raises(DynashardError) as refused:
        BEATS.read(db, by, **wanted)

    assert refused.value.details["field"] == field
