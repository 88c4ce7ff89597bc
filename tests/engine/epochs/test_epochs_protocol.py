"""The rules of the protocol, each by what would go wrong without it: no key is ever placed by two counts."""

import pytest
from msgspec.structs import replace

from dynashard.errors import (
    ClockOffError,
    InvalidKeyError,
    KeyTooFarAheadError,
    OutcomeUnknownError,
    ReshardRefusedError,
    TopologyChangedError,
)
from dynashard.key_time import KSUID
from dynashard.resharding import Status
from dynashard.resharding.resize import Resize
from dynashard.runtime import Runtime
from dynashard.testing.faults import FaultyTransport, Late, lost_answer
from dynashard.topology import EpochState, TopologyTable
from dynashard.topology.epochs import MOST_EPOCHS
from dynashard.topology.records import first_record
from dynashard.transport.attempts import Attempts
from dynashard.transport.direct.choice import transport_for
from dynashard.transport.interface import Settings
from dynashard.transport.sdk import SdkTransport
from tests.engine.epochs.epochs_world import CLOCKS, LEASE, TIMING, Epochs, Event, partition, whole
from tests.recording import RecordingTransport

pytestmark = pytest.mark.engine

TABLES = "epoch.v1.Event:abc"


def start(world: Epochs, to: int = 4, off: float = 0.0) -> Status:
    """Publish an epoch; there is a record of the entity already."""
    world.process().collection(Event).find(tenant="abc", id=world.id())
    return world.resharder(off).start(partition(), to)


def moment(world: Epochs) -> float:
    """Return when the last epoch begins."""
    return KSUID.moment_of(world.record().epochs[-1].first)


def test_an_epoch_begins_so_far_ahead_that_no_earlier_view_has_placed_a_key_in_it(world: Epochs) -> None:
    start(world)

    lead = moment(world) - world.clock.now
    assert lead >= LEASE + CLOCKS.ahead + 4 * CLOCKS.off
    assert lead <= TIMING.ahead(LEASE) + 1


def test_it_is_confirmed_only_when_every_view_has_it(world: Epochs) -> None:
    start(world)
    resharder = world.resharder()
    wait = resharder.advance(TABLES).seconds

    world.clock.now += LEASE + 2 * CLOCKS.off - 0.01
    resharder.advance(TABLES)
    before = world.counts()
    world.clock.now += 0.01
    resharder.advance(TABLES)

    assert wait == pytest.approx(LEASE + 2 * CLOCKS.off)
    assert before == [(1, "confirmed"), (4, "pending")]
    assert world.counts() == [(1, "confirmed"), (4, "confirmed")]


def test_only_time_is_waited_for_until_an_epoch_is_confirmed_and_until_it_has_begun(world: Epochs) -> None:
    start(world)
    resharder, known = world.resharder(), LEASE + 2 * CLOCKS.off

    seen, waiting = resharder.advance(TABLES), resharder.advance(TABLES)
    world.clock.now += known
    confirmed, begins = resharder.advance(TABLES), resharder.advance(TABLES)
    left = moment(world) - world.clock.now
    world.clock.now += left
    ended = resharder.advance(TABLES)

    assert [step.kind for step in (seen, waiting, confirmed, begins, ended)] == ["wait"] * 4 + ["done"]
    assert [step.steady for step in (seen, waiting, begins)] == [True] * 3
    assert [seen.seconds, waiting.seconds, begins.seconds] == pytest.approx([known, known, left])
    assert confirmed.seconds == 0


def test_the_status_says_what_an_epoch_waits_for_and_until_when(world: Epochs) -> None:
    start(world)
    resharder, known = world.resharder(), LEASE + 2 * CLOCKS.off

    resharder.advance(TABLES)
    seen = world.clock.now
    world.clock.now += 1
    published = resharder.status(partition())
    world.clock.now = seen + known
    resharder.advance(TABLES)
    confirmed = resharder.status(partition())

    assert [published.waits_for, confirmed.waits_for] == ["clients", "epoch"]
    assert [published.until, confirmed.until] == pytest.approx([seen + known, moment(world)])


def test_the_wait_begins_when_the_entry_is_seen_not_when_it_was_sent(world: Epochs) -> None:
    world.process().collection(Event).find(tenant="abc", id=world.id())
    late = Late("TransactWriteItems")
    with pytest.raises(OutcomeUnknownError):
        world.resharder(plan=[late.fault]).start(partition(), 4)

    world.clock.now += LEASE
    late.arrive()
    resharder = world.resharder()
    seen = resharder.advance(TABLES)
    world.clock.now += LEASE - 1
    resharder.advance(TABLES)

    assert seen.seconds == pytest.approx(LEASE + 2 * CLOCKS.off)
    assert seen.steady
    assert world.counts()[-1] == (4, "pending")


def test_it_is_void_if_keys_in_it_may_have_been_placed_and_a_later_one_follows(world: Epochs) -> None:
    start(world)
    first, resharder = moment(world), world.resharder()
    world.clock.now = first - CLOCKS.placed

    resharder.advance(TABLES)
    void = world.counts()
    world.finish()

    assert void == [(1, "confirmed"), (4, "void")]
    assert world.counts() == [(1, "confirmed"), (4, "void"), (4, "confirmed")]
    assert moment(world) > first


def test_every_view_must_have_a_later_epoch_too_which_begins_later_each_time(world: Epochs) -> None:
    start(world)
    resharder, lead = world.resharder(), moment(world) - world.clock.now
    resharder.advance(TABLES)
    world.clock.now = moment(world)

    resharder.advance(TABLES)
    resharder.advance(TABLES)
    again = resharder.advance(TABLES)

    assert world.counts()[1:] == [(4, "void"), (4, "pending")]
    assert again.seconds == pytest.approx(LEASE + 2 * CLOCKS.off)
    assert moment(world) - world.clock.now == pytest.approx(lead + TIMING.margin, abs=1)


def test_a_wait_that_a_clock_ahead_began_begins_again(world: Epochs) -> None:
    start(world, off=100.0)

    assert world.resharder().advance(TABLES).seconds == pytest.approx(LEASE + 2 * CLOCKS.off)


def test_an_epoch_begins_after_one_that_a_clock_ahead_has_published(world: Epochs) -> None:
    start(world, off=100.0)
    world.resharder().abort(partition())
    void = moment(world)

    world.resharder().start(partition(), 4)

    assert moment(world) == void + 1


def test_an_epoch_that_came_too_late_is_taken_back(world: Epochs) -> None:
    start(world)
    resharder = world.resharder()
    world.clock.now = moment(world)
    resharder.advance(TABLES)

    assert resharder.abort(partition()).target is None
    assert world.counts() == [(1, "confirmed"), (4, "void")]


def test_a_resize_that_has_ended_is_not_written_again(world: Epochs) -> None:
    start(world)
    world.finish()
    ended = world.record()

    world.finish()

    assert world.record() == ended


def test_a_change_that_is_always_too_late_is_paused_with_the_reason(world: Epochs) -> None:
    start(world)
    resharder = world.resharder()
    for _ in range(20):
        if resharder.advance(TABLES).kind == "done":
            break
        world.clock.now += 10_000

    status = resharder.status(partition())
    assert (status.paused, status.count, status.target) == (True, 1, 4)
    assert "could not be confirmed in time" in (status.error or "")
    resharder.resume(partition())
    world.finish(resharder=resharder)
    assert world.counts()[-1] == (4, "confirmed")


@pytest.mark.parametrize("act", ["write", "read", "batch", "transact"])
def test_a_client_that_needs_a_key_of_a_pending_epoch_settles_it(world: Epochs, act: str) -> None:
    start(world)
    world.clock.now = moment(world) + 1
    db, stale = world.process(), world.id()

    events = db.collection(Event)
    if act == "read":
        events.find(tenant="abc", id=stale)
    elif act == "batch":
        events.batch_write([Event(tenant="abc", id=stale)])
    else:
        events.create(tenant="abc", id=stale, handling="exactly-once" if act == "transact" else None)

    assert world.counts() == [(1, "confirmed"), (4, "void")]
    assert act == "read" or world.raw()[stale] == f"{TABLES}:0"
    world.finish()
    world.clock.now += 1
    world.write(db, 20)
    assert len(world.shards()) == 4


def test_an_earlier_key_is_placed_under_a_pending_epoch_without_settling_it(world: Epochs) -> None:
    start(world)

    [written] = world.write(world.process())

    assert world.counts()[-1] == (4, "pending")
    assert world.raw()[written] == f"{TABLES}:0"


def test_a_confirmation_that_arrives_late_decides_if_nobody_has(world: Epochs) -> None:
    start(world)
    world.clock.now += LEASE + 2 * CLOCKS.off
    late = Late("PutItem")
    with pytest.raises(OutcomeUnknownError):
        world.resharder(plan=[late.fault]).advance(TABLES)
    world.clock.now = moment(world) + 1

    late.arrive()

    assert world.counts()[-1] == (4, "confirmed")
    ids = world.write(world.process(), 20)
    assert all(world.process(off).collection(Event).find(tenant="abc", id=ids[0]) for off in (-2.0, 2.0))
    assert len(world.shards()) == 4


def test_a_late_confirmation_changes_no_epoch_that_a_client_has_made_void(world: Epochs) -> None:
    start(world)
    world.clock.now += LEASE + 2 * CLOCKS.off
    late = Late("PutItem")
    with pytest.raises(OutcomeUnknownError):
        world.resharder(plan=[late.fault]).advance(TABLES)
    world.clock.now = moment(world) + 1
    world.write(world.process())

    late.arrive()

    assert world.counts()[-1] == (4, "void")


def test_a_late_void_changes_no_epoch_that_is_confirmed(world: Epochs) -> None:
    start(world)
    late = Late("PutItem")
    [entry] = [each for each in world.record().epochs if each.state is EpochState.PENDING]
    faulty = world.resharder(plan=[late.fault]).topology
    with pytest.raises(OutcomeUnknownError):
        faulty.settle(TABLES, entry.first, EpochState.VOID, now=world.clock.now)
    world.finish()

    late.arrive()
    unchanged = faulty.settle(TABLES, entry.first, EpochState.VOID, now=world.clock.now)

    assert world.counts()[-1] == (4, "confirmed")
    assert unchanged is not None
    assert unchanged.epochs[-1].state is EpochState.CONFIRMED


def test_a_late_confirmation_of_one_epoch_does_not_confirm_the_next(world: Epochs) -> None:
    start(world)
    first = world.record().epochs[-1].first
    resharder = world.resharder()
    resharder.abort(partition())
    resharder.start(partition(), 8)

    TopologyTable(world.inner, world.topology).settle(TABLES, first, EpochState.CONFIRMED, now=world.clock.now)

    assert world.counts() == [(1, "confirmed"), (4, "void"), (8, "pending")]


def test_a_publication_that_arrives_late_is_refused_after_another_resize(world: Epochs) -> None:
    world.process().collection(Event).find(tenant="abc", id=world.id())
    late = Late("TransactWriteItems")
    with pytest.raises(OutcomeUnknownError):
        world.resharder(plan=[late.fault]).start(partition(), 4)
    world.grow(8)

    late.arrive()

    assert world.counts() == [(1, "confirmed"), (8, "confirmed")]


def test_no_entry_is_published_while_the_last_one_is_not_settled(world: Epochs) -> None:
    start(world)

    with pytest.raises(ReshardRefusedError) as refused:
        world.resharder().start(partition(), 8)

    assert refused.value.reason == "running"
    with pytest.raises(ValueError, match="not settled"):
        world.record().publishing(world.clock.now, "zzz", 8)


def test_a_view_is_not_used_after_its_lease_so_a_client_that_slept_knows_all_epochs(world: Epochs) -> None:
    db = world.process()
    world.write(db, 5)
    for count in (4, 16, 8):
        world.grow(count)
    world.clock.now += 1

    ids = world.write(db, 60)

    other = world.process().collection(Event)
    assert all(other.find(tenant="abc", id=each) for each in ids)
    assert len(world.shards()) == 8


def test_two_processes_with_clocks_off_place_keys_around_the_beginning_alike(world: Epochs) -> None:
    start(world)
    fast, slow = world.process(CLOCKS.off), world.process(-CLOCKS.off)
    for db in (fast, slow):
        world.write(db, 1)
    world.finish(resharder=world.resharder(-CLOCKS.off))
    begins = moment(world)
    ids = []
    while world.clock.now < begins + 3:
        for at in (world.clock.now, begins - 1, begins):
            for db, ahead in ((fast, CLOCKS.off), (slow, -CLOCKS.off)):
                if at <= world.clock.now + ahead + CLOCKS.ahead - 1:
                    ids += world.write(db, at=at)
        world.clock.now += 1

    for db in (fast, slow):
        events = db.collection(Event)
        assert all(events.find(tenant="abc", id=each) for each in ids if world.clock.now)


def test_a_key_too_far_ahead_is_refused_before_anything_is_sent(world: Epochs) -> None:
    db = world.process()
    events = db.collection(Event)
    world.write(db, at=world.clock.now + CLOCKS.ahead - 1)
    ahead = world.id(world.clock.now + CLOCKS.ahead + 1)

    with pytest.raises(KeyTooFarAheadError) as refused:
        events.create(tenant="abc", id=ahead)

    assert refused.value.details == {"field": "id", "ahead": 3.0, "now": "2026-05-28T20:26:40.000+00:00"}
    for act in (
        lambda: events.update(tenant="abc", id=ahead, set={"n": 1}),
        lambda: events.delete(tenant="abc", id=ahead),
        lambda: events.batch_write([Event(tenant="abc", id=ahead)]),
        lambda: events.check(Event(tenant="abc", id=ahead)),
        lambda: events.create(tenant="abc", id=ahead, handling="exactly-once"),
    ):
        with pytest.raises(KeyTooFarAheadError):
            act()
    fine, wrong = events.try_batch_write([Event(tenant="abc", id=world.id()), Event(tenant="abc", id=ahead)])
    assert fine is None
    assert isinstance(wrong, KeyTooFarAheadError)
    world.clock.now += 2
    assert events.create(tenant="abc", id=ahead)


def test_a_clock_that_is_set_back_forgets_what_it_allowed(world: Epochs) -> None:
    start(world)
    events = world.process().collection(Event)
    ahead = world.id(world.clock.now + 600)
    world.clock.now += 3600
    later = world.id(world.clock.now + 60)
    with pytest.raises(KeyTooFarAheadError):
        events.create(tenant="abc", id=later)
    assert events.find(tenant="abc", id=later) is None
    world.clock.now -= 3600

    with pytest.raises(KeyTooFarAheadError):
        events.create(tenant="abc", id=ahead)
    assert events.find(tenant="abc", id=ahead) is None
    assert world.counts()[-1] == (4, "pending")


def test_a_key_without_a_time_is_refused_with_its_form(world: Epochs) -> None:
    with pytest.raises(InvalidKeyError, match="'ada' does not begin with a KSUID"):
        world.process().collection(Event).create(tenant="abc", id="ada")


@pytest.mark.parametrize("transport", ["direct", "botocore"])
@pytest.mark.parametrize("off", [-60.0, 60.0])
def test_a_process_whose_clock_is_off_writes_nothing_and_still_reads(
    world: Epochs, engine_url: str, transport: str, off: float
) -> None:
    [written] = world.write(world.process())
    settings = Settings(engine_url, "us-east-1", "local", "local")
    wrong = Attempts(runtime=Runtime(lambda: Runtime().clock() + off))
    wire = SdkTransport(settings, wrong) if transport == "botocore" else transport_for(settings, {}, wrong)
    db = world.process(transport=wire)
    events = db.collection(Event)

    assert events.get(tenant="abc", id=written)
    for act in (
        lambda: events.create(tenant="abc", id=world.id()),
        lambda: events.delete(tenant="abc", id=written),
        lambda: events.batch_write([Event(tenant="abc", id=world.id())]),
        lambda: events.create(tenant="abc", id=world.id(), handling="exactly-once"),
    ):
        with pytest.raises(ClockOffError) as refused:
            act()
        assert refused.value.retryable
        assert refused.value.off == pytest.approx(off, abs=2)

    assert set(world.raw()) == {written}
    assert db.key_clock.offset.exceeds(5.0)
    wire.close()


def test_a_history_is_full_after_64_epochs(world: Epochs) -> None:
    start(world)
    world.finish()
    record = world.record()
    full = record
    while len(full.epochs) < MOST_EPOCHS:
        first = KSUID.first(KSUID.moment_of(full.epochs[-1].first) + 1)
        published = full.publishing(world.clock.now, first, 4)
        full = published.settling(world.clock.now, first, EpochState.CONFIRMED) or published
    TopologyTable(world.inner, world.topology).save((record, full))

    with pytest.raises(ReshardRefusedError) as refused:
        world.resharder().start(partition(), 8)

    assert refused.value.reason == "too_many_epochs"
    assert len(world.record().epochs) == MOST_EPOCHS


def test_an_epoch_is_taken_back_until_it_is_confirmed(world: Epochs) -> None:
    start(world)
    resharder = world.resharder()

    taken_back = resharder.abort(partition())
    resharder.start(partition(), 4)
    world.clock.now += LEASE + 2 * CLOCKS.off
    resharder.advance(TABLES)

    assert (taken_back.count, taken_back.target, taken_back.busy) == (1, None, False)
    with pytest.raises(ReshardRefusedError) as refused:
        resharder.abort(partition())
    assert refused.value.reason == "confirmed"


def test_a_paused_epoch_is_not_confirmed(world: Epochs) -> None:
    start(world)
    resharder = world.resharder()
    resharder.pause(partition())
    world.clock.now += 40

    assert resharder.advance(TABLES).kind == "done"
    assert world.counts()[-1] == (4, "pending")
    assert resharder.status(partition()).waits_for == "resume"


def test_the_status_says_what_is_waited_for(world: Epochs) -> None:
    pending = start(world)
    world.clock.now += LEASE + 2 * CLOCKS.off
    resharder = world.resharder()
    resharder.advance(TABLES)
    confirmed = resharder.status(partition())
    world.finish()
    done = resharder.status(partition())

    assert (pending.stage, pending.waits_for, pending.count, pending.target) == ("pending", "clients", 1, 4)
    assert pending.until == pytest.approx(pending.started + LEASE + 2 * CLOCKS.off if pending.started else 0)
    assert (confirmed.stage, confirmed.waits_for, confirmed.until) == ("confirmed", "epoch", moment(world))
    assert (done.stage, done.count, done.busy) == ("stable", 4, False)
    assert [(each.count, each.state) for each in done.epochs] == [(1, "confirmed"), (4, "confirmed")]
    assert done.as_dict()["epochs"][1]["since"] == moment(world)


def test_a_driver_that_is_killed_anywhere_is_followed_by_another(world: Epochs) -> None:
    start(world)
    for nth in range(1, 5):
        for fault in (lost_answer("PutItem", nth=nth), lost_answer("TransactWriteItems", nth=nth)):
            try:
                step = world.resharder(plan=[fault]).advance(TABLES)
                world.clock.now += step.seconds
            except (OutcomeUnknownError, TopologyChangedError):
                pass

    world.finish()

    assert [each for each in world.counts() if each[1] != "void"] == [(1, "confirmed"), (4, "confirmed")]


def test_growing_costs_few_requests_whatever_the_partition_holds(world: Epochs) -> None:
    sent: list[list[int]] = []
    for items in (5, 200):
        world.process().collection(Event).batch_write([Event(tenant="abc", id=world.id()) for _ in range(items)])
        resharder = world.resharder()
        resharder.start(partition(), 4 << len(sent))
        world.finish(resharder=resharder)
        sent.append([world.faulty.sent(each) for each in ("BatchGetItem", "PutItem", "TransactWriteItems", "Query")])

    assert sent[0] == sent[1]
    assert sent[0][1] <= 3
    assert sent[0][2:] == [2, 0]


def test_a_partition_of_a_hundred_million_items_grows_like_one_of_a_thousand(world: Epochs) -> None:
    """The large one has its items by its record alone: what a former resize has counted and moved there."""
    small, large = partition("small"), partition("large")
    for number in range(10):
        world.process().collection(Event).batch_write(
            [Event(tenant="small", id=world.id(), n=number) for _ in range(100)]
        )
    counted = Resize("former", 8, 1, tasks=8, total=10**8, moved=10**8, write_units=5e8).stored()
    sent: list[list[tuple[str, str]]] = []
    took: list[float] = []
    for scope in (small, large):
        world.process().collection(Event).find(tenant=str(scope.partition).rpartition(":")[2], id=world.id())
        record = first_record(scope.key, 1, now=world.clock() - 1000, lease=LEASE).revised(world.clock() - 900)
        TopologyTable(world.inner, world.topology).create(record if scope is small else replace(record, resize=counted))
        recording, begun = RecordingTransport(world.inner), world.clock()
        resharder = world.resharder(wire=FaultyTransport(recording))
        estimate = resharder.estimate(scope, 16)
        resharder.start(scope, 16)
        world.finish(scope, resharder)
        requests = zip(recording.operations, map(str, recording.requests), strict=True)
        sent.append([(operation, world.table) for operation, text in requests if world.table in text])
        sent.append([(operation, "") for operation in recording.operations])
        took += [world.clock() - begun, estimate.seconds, estimate.write_units + estimate.read_units]

    assert sent[0] == sent[2] == []
    assert sent[1] == sent[3]
    assert len(sent[1]) <= 20
    assert took[:3] == took[3:]
    assert took[2] == 0
    assert world.counts(large.key) == world.counts(small.key) == [(1, "confirmed"), (16, "confirmed")]


def test_a_family_does_not_change_while_one_of_its_partitions_has_no_record_yet(world: Epochs) -> None:
    world.process().collection(Event).find(tenant="abc", id=world.id())
    resharder = world.resharder()
    resharder.start(whole(), 4)

    with pytest.raises(ReshardRefusedError) as refused:
        resharder.start(partition(), 8)

    assert refused.value.reason == "family_busy"


def test_the_estimate_moves_nothing(world: Epochs) -> None:
    db = world.process()
    world.write(db, 3)

    estimate = world.resharder().estimate(partition(), 16)

    assert (estimate.items, estimate.write_units, estimate.dollars) == (0, 0, 0)
    assert estimate.seconds == pytest.approx(TIMING.ahead(LEASE))
