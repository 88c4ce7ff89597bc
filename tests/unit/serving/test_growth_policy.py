"""The growth policy: which throttles request a larger count, when, and which are only reported."""

from asyncio import CancelledError
from datetime import datetime
from math import nan
from threading import Barrier, Thread
from typing import Any

import pytest

from dynashard import Entity, Key, Registry, Shards, definition
from dynashard.errors import (
    ConfigurationError,
    EngineUnavailableError,
    ReshardRefusedError,
    ThrottledError,
    TopologyChangedError,
)
from dynashard.growth.policy import Growth
from dynashard.growth.settings import GrowthSettings
from dynashard.growth.terms import CountState, GrowthEvent, arguments_of
from dynashard.resharding.scope import Scope
from dynashard.runtime import Runtime
from tests.declaring import declare
from tests.unit.serving.growth_policy_world import (
    DAY,
    HOT,
    HOT_INDEX,
    NO_REASON,
    START,
    Loads,
    World,
    entity,
    throttle,
)
from tests.unit.transport.test_transport_classification import classified

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("name", "asked", "events"),
    [
        ("key_range_throttled", [("thing.v1.Thing:abc", 32)], [GrowthEvent.ASKED]),
        ("index_key_range_throttled_on_demand", [("thing.v1.Thing|GSI1", 8)], [GrowthEvent.ASKED]),
        ("index_read_key_range_throttled", [], [GrowthEvent.CANNOT]),
        ("index_and_key_range_throttled", [("thing.v1.Thing:abc", 32)], [GrowthEvent.LIMIT, GrowthEvent.ASKED]),
        ("index_provisioned_throttled", [], [GrowthEvent.LIMIT]),
        ("table_provisioned_throttled", [], [GrowthEvent.LIMIT]),
        ("table_maximum_throttled", [], [GrowthEvent.LIMIT]),
        ("account_limit", [], [GrowthEvent.LIMIT]),
        ("account_limit_without_reasons", [], [GrowthEvent.LIMIT]),
        ("transaction_beyond_account_limit", [], [GrowthEvent.LIMIT]),
        ("throttled_without_reasons", [], [GrowthEvent.UNKNOWN]),
        ("provisioned_throttled_without_reasons", [], [GrowthEvent.UNKNOWN]),
        ("throttled_for_a_new_reason", [], [GrowthEvent.UNKNOWN]),
        ("transaction_throttled", [], [GrowthEvent.UNKNOWN]),
    ],
)
def test_only_hot_key_ranges_change_a_count(name: str, asked: list[tuple[str, int]], events: list[GrowthEvent]) -> None:
    world = World()

    world.process().throttled(entity(), "thing.v1.Thing:abc", classified(name))

    assert (world.asked, world.events) == (asked, events)


@pytest.mark.parametrize("limit", ["ProvisionedThroughput", "AccountLimit", "MaxOnDemandThroughput"])
@pytest.mark.parametrize("does", ["Read", "Write"])
def test_other_limits_are_reported_with_a_remedy_once_per_cooldown(limit: str, does: str) -> None:
    world = World()
    growth = world.process()
    error = throttle(f"Table{does}{limit}Exceeded")

    for _ in range(5):
        growth.throttled(entity(), "thing.v1.Thing:abc", error)
    world.now += 300
    growth.throttled(entity(), "thing.v1.Thing:abc", error)

    assert (world.asked, world.reads, world.events) == ([], 0, [GrowthEvent.LIMIT, GrowthEvent.LIMIT])
    assert world.reports[0].reason == f"{error.reasons[0].reason}: {error.reasons[0].remedy}"


def test_two_limits_at_once_are_both_reported() -> None:
    world = World()
    growth = world.process()

    growth.throttled(entity(), None, throttle("TableReadAccountLimitExceeded"))
    growth.throttled(entity(), None, throttle("TableWriteProvisionedThroughputExceeded"))

    assert world.events == [GrowthEvent.LIMIT, GrowthEvent.LIMIT]


def test_a_limit_of_an_index_is_reported_with_its_index() -> None:
    world = World()

    world.process().throttled(entity(), None, throttle("IndexWriteProvisionedThroughputExceeded", slot="GSI1"))

    assert [(each.event, each.index) for each in world.reports] == [(GrowthEvent.LIMIT, "GSI1")]


def test_limits_of_other_indexes_entities_and_kinds_are_reported_each() -> None:
    world = World()
    growth = world.process()
    limit = "IndexWriteProvisionedThroughputExceeded"

    for error in (throttle(limit, slot="GSI1"), throttle(limit, slot="GSI2"), NO_REASON):
        growth.throttled(entity(), None, error)
    for thing in (entity(), entity(name="other.v1.Other")):
        growth.throttled(thing, None, classified("account_limit_without_reasons"))

    assert [(each.event, each.entity, each.index) for each in world.reports] == [
        (GrowthEvent.LIMIT, "thing.v1.Thing", "GSI1"),
        (GrowthEvent.LIMIT, "thing.v1.Thing", "GSI2"),
        (GrowthEvent.UNKNOWN, "thing.v1.Thing", None),
        (GrowthEvent.LIMIT, "thing.v1.Thing", None),
        (GrowthEvent.LIMIT, "other.v1.Other", None),
    ]


def test_two_hot_indexes_are_both_looked_at() -> None:
    world, error = World(), throttle("IndexWriteKeyRangeThroughputExceeded", slot="GSI2")
    error.reasons = [*error.reasons, *HOT_INDEX.reasons]

    world.process().throttled(entity(), None, error)

    assert [(each.event, each.index) for each in world.reports] == [
        (GrowthEvent.ASKED, "GSI1"),
        (GrowthEvent.CANNOT, "GSI2"),
    ]


def test_only_the_table_grows_if_an_index_is_hot_too_and_reasons_that_are_not_known_do_not_count() -> None:
    both, index = throttle(), throttle("IndexWriteKeyRangeThroughputExceeded", slot="GSI1")
    both.reasons = [*HOT_INDEX.reasons, *HOT.reasons]
    index.reasons = [*HOT_INDEX.reasons, *throttle("ANewReason").reasons]
    asked = []

    for error in (both, index):
        world = World()
        world.process().throttled(entity(), "thing.v1.Thing:abc", error)
        asked.append([key for key, _ in world.asked])

    assert asked == [["thing.v1.Thing:abc"], ["thing.v1.Thing|GSI1"]]


@pytest.mark.parametrize(
    ("declared", "asked", "remedy"),
    [
        (Shards(start=1, max=256, placement="random"), 2, ""),
        (Shards(16), 32, ""),
        (Shards(16, max=16), None, "it has 16 shards, its ceiling is 16: declare a higher max"),
        (Shards(10, "modulo"), None, "modulo counts never change"),
        (Shards(16, adopt="unsharded"), None, "it is unsharded still: start its reshard to 16"),
    ],
)
def test_the_declaration_decides_whether_a_hot_partition_grows(
    declared: Shards, asked: int | None, remedy: str
) -> None:
    world = World()

    world.process().throttled(entity(declared), "thing.v1.Thing:abc", HOT)

    assert world.asked == ([("thing.v1.Thing:abc", asked)] if asked else [])
    assert world.events == [GrowthEvent.ASKED if asked else GrowthEvent.CANNOT]
    assert world.reports[0].reason.endswith(remedy)
    assert world.reports[0].target == asked


def test_an_unsharded_partition_whose_keys_begin_with_their_time_gets_two_shards() -> None:
    world = World()
    declared = Shards(2, max=8, placement="epochs", adopt="unsharded")
    timed = entity(declared, fields={"at": datetime}, key=Key("{tenant}", "{at}#{id}"))

    world.process().throttled(timed, "thing.v1.Thing:abc", HOT)

    assert world.asked == [("thing.v1.Thing:abc", 2)]


def test_an_entity_without_shards_is_not_read() -> None:
    world = World()

    world.process().throttled(definition(declare()), "thing.v1.Thing:abc", HOT)

    assert (world.events, world.reads) == ([GrowthEvent.CANNOT], 0)
    assert world.reports[0].reason == "thing.v1.Thing:abc is hot: declare shards"


@pytest.mark.parametrize(
    ("error", "partition", "reason", "index"),
    [
        (HOT, None, "a key range of thing.v1.Thing is hot, but it is unknown which", None),
        (
            throttle("IndexWriteKeyRangeThroughputExceeded"),
            "thing.v1.Thing:abc",
            "a key range of index (unnamed) is hot, which thing.v1.Thing does not declare",
            None,
        ),
        (
            throttle("IndexWriteKeyRangeThroughputExceeded", slot="GSI3"),
            "thing.v1.Thing:abc",
            "a key range of index GSI3 is hot, which thing.v1.Thing does not declare",
            "GSI3",
        ),
    ],
    ids=["no partition", "no index named", "index of others"],
)
def test_a_throttle_of_an_unknown_partition_is_only_reported(
    error: ThrottledError, partition: str | None, reason: str, index: str | None
) -> None:
    world = World()

    world.process(load=Loads()).throttled(entity(), partition, error)

    assert world.asked == []
    assert [(each.event, each.reason, each.index) for each in world.reports] == [(GrowthEvent.UNKNOWN, reason, index)]


def test_a_hot_index_grows_for_all_partitions_and_only_to_its_own_ceiling() -> None:
    world = World()
    growth = world.process()
    for tenant in ("a", "b", "c"):
        growth.throttled(entity(), f"thing.v1.Thing:{tenant}", HOT_INDEX)
        world.now += 400

    assert world.asked == [("thing.v1.Thing|GSI1", 8), ("thing.v1.Thing|GSI1", 16)]
    assert world.events == [GrowthEvent.ASKED, GrowthEvent.ASKED, GrowthEvent.CANNOT]
    assert {(report.partition, report.index) for report in world.reports} == {(None, "GSI1")}


def test_while_the_table_is_hot_too_its_hot_index_is_left_alone() -> None:
    world = World()
    both = ThrottledError("both", operation="PutItem", reasons=[*HOT_INDEX.reasons, *HOT.reasons])

    world.process().throttled(entity(), "thing.v1.Thing:abc", both)

    assert world.asked == [("thing.v1.Thing:abc", 32)]


def test_many_throttles_make_one_request() -> None:
    world = World()
    growth = world.process()
    thing = entity()

    for _ in range(1000):
        growth.throttled(thing, "thing.v1.Thing:abc", HOT)

    assert world.asked == [("thing.v1.Thing:abc", 32)]
    assert (world.reads, len(world.slept), len(world.reports)) == (2, 1, 1)


def test_partitions_of_one_entity_grow_apart() -> None:
    world = World()
    growth = world.process()

    for tenant in ("a", "b"):
        growth.throttled(entity(), f"thing.v1.Thing:{tenant}", HOT)

    assert world.asked == [("thing.v1.Thing:a", 32), ("thing.v1.Thing:b", 32)]


@pytest.mark.parametrize(("random", "slept"), [(0.0, 1.0), (0.5, 5.5), (0.999, 9.991)])
def test_the_wait_is_drawn_between_its_bounds(random: float, slept: float) -> None:
    world = World()

    world.process(random=random).throttled(entity(), "thing.v1.Thing:abc", HOT)

    assert world.slept == [pytest.approx(slept)]


def test_a_waiting_process_reads_again_and_sees_the_request_of_another() -> None:
    world = World()
    other = world.process(random=0.0)
    thing = entity()

    def meanwhile() -> None:
        world.meanwhile = lambda: None
        other.throttled(thing, "thing.v1.Thing:abc", HOT)

    world.meanwhile = meanwhile
    world.process(random=0.9).throttled(thing, "thing.v1.Thing:abc", HOT)

    assert world.asked == [("thing.v1.Thing:abc", 32)]
    assert world.events == [GrowthEvent.ASKED, GrowthEvent.LOST]


def test_without_sleep_no_request_waits_and_a_later_throttle_requests_growth() -> None:
    world = World()
    growth = world.process(waits=False)
    thing = entity()

    growth.throttled(thing, "thing.v1.Thing:abc", HOT)
    world.now += 5.4
    growth.throttled(thing, "thing.v1.Thing:abc", HOT)
    before = (world.reads, list(world.asked))
    world.now += 0.2
    growth.throttled(thing, "thing.v1.Thing:abc", HOT)
    growth.throttled(thing, "thing.v1.Thing:abc", HOT)

    assert before == (0, [])
    assert (world.reads, world.asked, world.slept) == (1, [("thing.v1.Thing:abc", 32)], [])


def test_without_sleep_a_throttle_long_after_the_wait_begins_a_new_one() -> None:
    world = World()
    growth = world.process(waits=False)
    thing = entity()

    growth.throttled(thing, "thing.v1.Thing:abc", HOT)
    world.now += 400
    growth.throttled(thing, "thing.v1.Thing:abc", HOT)

    assert world.asked == []
    world.now += 6
    growth.throttled(thing, "thing.v1.Thing:abc", HOT)
    assert world.asked == [("thing.v1.Thing:abc", 32)]


@pytest.mark.parametrize(
    ("changed", "busy", "kept"),
    [
        (START - 299, False, "its count of 16 changed, or its resize was called off, 299 s ago"),
        (START + 50, False, "its count of 16 changed, or its resize was called off, 0 s ago"),
        (START - 300, False, None),
        (START - DAY, True, "its count of 16 is changing to 8 already"),
    ],
    ids=["in the cooldown", "by a clock ahead", "after it", "changing"],
)
def test_a_count_that_changed_or_changes_is_left_alone_which_is_reported_once_in_a_cooldown(
    changed: float, *, busy: bool, kept: str | None
) -> None:
    world = World(counts={"thing.v1.Thing:abc": CountState(16, changed, busy, target=8)})
    growth = world.process()

    for _ in range(2):
        growth.throttled(entity(), "thing.v1.Thing:abc", HOT)

    assert ([target for _, target in world.asked], world.reads) == (([], 1) if kept else ([32], 2))
    [report] = world.reports
    assert report.event is (GrowthEvent.KEPT if kept else GrowthEvent.ASKED)
    assert kept is None or report.reason == f"thing.v1.Thing:abc was throttled, but {kept}"


@pytest.mark.parametrize(
    ("changed", "busy", "events"),
    [
        (START - 3599, False, [GrowthEvent.TOO_LONG]),
        (START + 5000, False, [GrowthEvent.TOO_LONG]),
        (START - 3600, False, [GrowthEvent.ASKED]),
        (START - 3599, True, [GrowthEvent.KEPT]),
    ],
    ids=["within an hour", "by a clock ahead", "after it", "changing again"],
)
def test_a_declined_resize_is_not_requested_again_for_an_hour(
    changed: float, *, busy: bool, events: list[GrowthEvent]
) -> None:
    declined = CountState(16, changed, busy, declined="it moves 9 items", target=64)
    world = World(counts={"thing.v1.Thing:abc": declined})

    world.process().throttled(entity(), "thing.v1.Thing:abc", HOT)

    assert world.events == events
    targets = {GrowthEvent.TOO_LONG: 64, GrowthEvent.ASKED: 32, GrowthEvent.KEPT: None}
    assert [each.target for each in world.reports] == [targets[event] for event in events]


def test_a_clock_ahead_does_not_prolong_the_cooldown() -> None:
    world = World(counts={"thing.v1.Thing:abc": CountState(16, START + 5000, busy=False)})
    growth = world.process()

    growth.throttled(entity(), "thing.v1.Thing:abc", HOT)
    world.counts["thing.v1.Thing:abc"] = CountState(16, START, busy=False)
    world.now += 300
    growth.throttled(entity(), "thing.v1.Thing:abc", HOT)

    assert world.asked == [("thing.v1.Thing:abc", 32)]


def test_a_process_remembers_ten_thousand_partitions() -> None:
    world = World()
    growth = world.process(mode="dry_run")
    thing = entity()

    for tenant in [*range(10_001), 10_000, 0]:
        growth.throttled(thing, f"thing.v1.Thing:{tenant}", HOT)

    assert len(world.reports) == 10_002


def test_the_cooldown_that_another_process_began_ends_when_it_ends() -> None:
    world = World(counts={"thing.v1.Thing:abc": CountState(16, START - 290, busy=False)})
    growth = world.process()

    growth.throttled(entity(), "thing.v1.Thing:abc", HOT)
    world.now += 10
    growth.throttled(entity(), "thing.v1.Thing:abc", HOT)

    assert world.asked == [("thing.v1.Thing:abc", 32)]


def test_a_clock_that_was_set_back_forgets_the_rest() -> None:
    world = World()
    growth = world.process(mode="dry_run")
    growth.throttled(entity(), "thing.v1.Thing:abc", HOT)

    world.now -= 2 * 3600
    growth.throttled(entity(), "thing.v1.Thing:abc", HOT)

    assert world.events == [GrowthEvent.WOULD_ASK, GrowthEvent.WOULD_ASK]


def test_a_dry_run_only_reports() -> None:
    world = World()
    growth = world.process(mode="dry_run")

    for _ in range(3):
        growth.throttled(entity(), "thing.v1.Thing:abc", HOT)

    assert (world.asked, world.slept, world.events) == ([], [], [GrowthEvent.WOULD_ASK])
    assert (world.reports[0].target, world.reports[0].partition) == (32, "thing.v1.Thing:abc")


def test_a_disabled_policy_reads_requests_and_reports_nothing() -> None:
    world, loads = World(), Loads()
    growth = world.process(mode="off", load=loads)

    for error in (HOT, HOT_INDEX, NO_REASON, throttle("TableWriteAccountLimitExceeded")):
        growth.throttled(entity(), "thing.v1.Thing:abc", error)

    assert (world.asked, world.reads, world.reports, loads.asked) == ([], 0, [], [])


@pytest.mark.parametrize(
    ("trouble", "event"),
    [
        (ReshardRefusedError("not swept", reason="not_swept"), GrowthEvent.REFUSED),
        (ReshardRefusedError("64 epochs", reason="too_many_epochs"), GrowthEvent.CANNOT),
        (TopologyChangedError("changed"), GrowthEvent.LOST),
        (EngineUnavailableError("gone"), GrowthEvent.FAILED),
        (throttle(), GrowthEvent.FAILED),
    ],
)
def test_a_request_never_fails_because_its_count_cannot_grow(trouble: Exception, event: GrowthEvent) -> None:
    world = World(trouble=trouble)

    world.process().throttled(entity(), "thing.v1.Thing:abc", HOT)

    assert (world.asked, [(each.event, each.target) for each in world.reports]) == ([], [(event, 32)])
    assert event is GrowthEvent.LOST or str(trouble) in world.reports[0].reason


def test_a_request_never_fails_because_its_count_cannot_be_read() -> None:
    def present(*_: object) -> CountState:
        raise EngineUnavailableError("gone")

    world = World()
    growth = Growth(
        world.ask,
        present,
        runtime=Runtime(lambda: START, world.sleep, lambda: 0.5),
        settings=GrowthSettings(),
        report=world.reports.append,
        waits=True,
    )

    growth.throttled(entity(), "thing.v1.Thing:abc", HOT)

    assert [(each.event, each.reason) for each in world.reports] == [
        (GrowthEvent.FAILED, "thing.v1.Thing:abc is hot, but its count is unreadable: gone")
    ]


@pytest.mark.parametrize("interruption", [CancelledError(), KeyboardInterrupt(), ValueError("not of the layer")])
def test_a_caller_that_is_cancelled_while_its_count_is_read_leaves_it_to_the_next_after_a_minute(
    interruption: BaseException,
) -> None:
    world, interruptions = World(), [interruption]

    def read(scope: Scope) -> CountState:
        if interruptions:
            raise interruptions.pop()
        return world.present(scope)

    runtime = Runtime(lambda: world.now, world.sleep, lambda: 0.5)
    growth = Growth(world.ask, read, runtime=runtime, settings=GrowthSettings(), waits=True)

    with pytest.raises(type(interruption)):
        growth.throttled(entity(), "thing.v1.Thing:abc", HOT)
    world.now += 59
    growth.throttled(entity(), "thing.v1.Thing:abc", HOT)
    assert world.asked == []
    world.now += 1
    growth.throttled(entity(), "thing.v1.Thing:abc", HOT)

    assert world.asked == [("thing.v1.Thing:abc", 32)]


def test_a_count_that_cannot_be_read_is_read_again_after_a_minute() -> None:
    world, failures = World(), [EngineUnavailableError("gone")]

    def read(scope: Scope) -> CountState:
        if failures:
            raise failures.pop()
        return world.present(scope)

    growth = Growth(
        world.ask,
        read,
        runtime=Runtime(lambda: world.now, world.sleep, lambda: 0.5),
        settings=GrowthSettings(),
        report=world.reports.append,
        waits=True,
    )

    growth.throttled(entity(), "thing.v1.Thing:abc", HOT)
    world.now += 59
    growth.throttled(entity(), "thing.v1.Thing:abc", HOT)
    assert world.events == [GrowthEvent.FAILED]
    world.now += 1
    growth.throttled(entity(), "thing.v1.Thing:abc", HOT)

    assert (world.asked, world.events) == ([("thing.v1.Thing:abc", 32)], [GrowthEvent.FAILED, GrowthEvent.ASKED])


def test_many_threads_make_one_request() -> None:
    world = World()
    growth = world.process()
    thing = entity()
    together = Barrier(8)

    def storm() -> None:
        together.wait()
        for _ in range(50):
            growth.throttled(thing, "thing.v1.Thing:abc", HOT)

    threads = [Thread(target=storm) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert world.asked == [("thing.v1.Thing:abc", 32)]


@pytest.mark.parametrize(
    "wrong",
    [
        {"mode": "maybe"},
        {"cooldown_seconds": 0},
        {"quiet_seconds": 10},
        {"wait_low": -1},
        {"wait_low": 5, "wait_high": 4},
        {"most_minutes": 0},
        {"mover_share": 0},
        {"mover_share": 1.01},
        {"cooldown_seconds": 60, "quiet_seconds": 59.9},
        {"cooldown_seconds": nan},
        {"quiet_seconds": nan},
        {"most_minutes": nan},
    ],
    ids=str,
)
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="growth"):
        GrowthSettings(**wrong)


@pytest.mark.parametrize(
    "extreme",
    [
        {"cooldown_seconds": 0.5, "quiet_seconds": 0.5},
        {"wait_low": 0, "wait_high": 0},
        {"most_minutes": 0.5, "mover_share": 1},
        {"mover_share": 0.01},
    ],
    ids=str,
)
def test_extreme_settings_are_accepted(extreme: dict[str, Any]) -> None:
    assert GrowthSettings(**extreme).mode == "on"


def test_a_resize_that_starts_by_itself_may_take_ten_minutes_unless_it_is_set() -> None:
    assert (GrowthSettings().most_seconds, GrowthSettings(most_minutes=2.5).most_seconds) == (600, 150)


class Log(Entity, name="log.v1.Line", key=Key("{tenant}", "{id}", prefix="fam"), shards=Shards(2), registry=Registry()):
    tenant: str
    id: str


def test_the_record_of_a_family_is_found_by_its_prefix() -> None:
    world = World()
    world.process().throttled(definition(Log), "fam:abc", HOT)

    assert world.asked == [("fam:abc", 4)]


def test_the_command_that_an_event_names_is_quoted_for_the_shell() -> None:
    assert arguments_of(Scope(entity(), "thing.v1.Thing:it's; a file")) == "thing.v1.Thing 'it'\"'\"'s; a file'"
