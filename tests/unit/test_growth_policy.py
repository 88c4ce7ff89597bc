"""When counts grow and shrink by themselves: what is asked for, when, and what is only told."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import pairwise
from threading import Barrier, Thread
from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from dynashard import Entity, Index, Key, Registry, Shards, definition
from dynashard.entity import EntityDefinition, IndexDefinition
from dynashard.errors import (
    ConfigurationError,
    EngineUnavailableError,
    ReshardRefusedError,
    ThrottledError,
    TopologyChangedError,
)
from dynashard.resharding.growth import Growth, GrowthSettings, News, Report, Standing
from dynashard.resharding.scope import Scope
from dynashard.topology import Record
from dynashard.transport.interface import Wire
from dynashard.transport.load import Load
from tests.declaring import declare
from tests.faults import Fault, FaultyTransport, throttled
from tests.unit.test_transport_classification import classified

pytestmark = pytest.mark.unit

TABLE = "arn:aws:dynamodb:eu-west-1:123456789012:table/users"
DAY = 24 * 3600.0
START = 1_800_000_000.0
INDEXES = [
    Index("GSI1", "by_id", "{tenant}", "{id}", shards=Shards(4, max=16)),
    Index("GSI2", "all", "{tenant}", "{id}"),
]


class Nowhere:
    """A transport behind a fault that always strikes."""

    def call(self, operation: str, request: Any) -> Wire:
        raise NotImplementedError

    def call_all(self, calls: Any, *, concurrency: int = 16) -> list[Wire]:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


def throttle(
    reason: str = "TableWriteKeyRangeThroughputExceeded", *, slot: str | None = None, operation: str = "PutItem"
) -> ThrottledError:
    """What the transport raises."""
    fault: Fault = throttled(operation, reason=reason, resource=f"{TABLE}/index/{slot}" if slot else TABLE)
    with pytest.raises(ThrottledError) as caught:
        FaultyTransport(Nowhere(), [fault]).call(operation, {})
    return caught.value


HOT = throttle()
HOT_INDEX = throttle("IndexWriteKeyRangeThroughputExceeded", slot="GSI1")
NO_REASON = throttle("")


def entity(shards: Shards | None = None, **declared: Any) -> EntityDefinition[Any]:
    return definition(declare(shards=shards or Shards(16, max=64), indexes=INDEXES, **declared))


@dataclass
class World:
    """A topology that several processes share, and a clock."""

    now: float = START
    standing: dict[str, Standing] = field(default_factory=dict)
    asked: list[tuple[str, int]] = field(default_factory=list)
    looks: int = 0
    told: list[Report] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)
    meanwhile: Callable[[], None] = lambda: None
    trouble: Exception | None = None

    def present(
        self, entity: EntityDefinition[Any], partition: str | None, index: IndexDefinition | None, /
    ) -> Standing:
        self.looks += 1
        scope = Scope(entity, partition, index)
        shards = index.shards if index else entity.shards
        assert shards is not None
        return self.standing.setdefault(scope.key, Standing(shards.initial, START - DAY, busy=False))

    def ask(
        self, entity: EntityDefinition[Any], partition: str | None, index: IndexDefinition | None, target: int, /
    ) -> object:
        if self.trouble is not None:
            raise self.trouble
        key = Scope(entity, partition, index).key
        standing = self.standing[key]
        if standing.busy or standing.count == target:
            raise ReshardRefusedError("one is running already", reason="running")
        self.asked.append((key, target))
        self.standing[key] = Standing(target, self.now, busy=False)
        return None

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        self.meanwhile()

    def process(self, *, random: float = 0.5, waits: bool = True, load: Any = None, **settings: Any) -> Growth:
        return Growth(
            self.ask,
            self.present,
            clock=lambda: self.now,
            random=lambda: random,
            settings=GrowthSettings(**settings),
            sleep=self.sleep if waits else None,
            load=load,
            report=self.told.append,
        )

    @property
    def news(self) -> list[News]:
        return [report.news for report in self.told]


@dataclass
class Loads:
    """A load that the test sets."""

    below: bool | None = True
    calmness: bool | None = True
    asked: list[bool] = field(default_factory=list)

    def __call__(self, *, index: str | None = None, writing: bool = True) -> Load:
        assert index is None
        self.asked.append(writing)
        return Load(self.below, "1 of 2 units")

    def calm(self, seconds: float, *, index: str | None = None) -> bool | None:
        assert (seconds, index) in {(DAY, None), (DAY, "GSI1")}
        return self.calmness


@pytest.mark.parametrize(
    ("name", "asked", "news"),
    [
        ("key_range_throttled", [("thing.v1.Thing:abc", 32)], [News.ASKED]),
        ("index_key_range_throttled_on_demand", [("thing.v1.Thing|GSI1", 8)], [News.ASKED]),
        ("index_read_key_range_throttled", [], [News.CANNOT]),
        ("index_and_key_range_throttled", [("thing.v1.Thing:abc", 32)], [News.LIMIT, News.ASKED]),
        ("index_provisioned_throttled", [], [News.LIMIT]),
        ("table_provisioned_throttled", [], [News.LIMIT]),
        ("table_maximum_throttled", [], [News.LIMIT]),
        ("account_limit", [], [News.LIMIT]),
        ("account_limit_without_reasons", [], [News.LIMIT]),
        ("transaction_beyond_account_limit", [], [News.LIMIT]),
        ("throttled_without_reasons", [], [News.UNKNOWN]),
        ("provisioned_throttled_without_reasons", [], [News.UNKNOWN]),
        ("throttled_for_a_new_reason", [], [News.UNKNOWN]),
        ("transaction_throttled", [], [News.UNKNOWN]),
    ],
)
def test_only_hot_key_ranges_change_a_count(name: str, asked: list[tuple[str, int]], news: list[News]) -> None:
    world = World()

    world.process().throttled(entity(), "thing.v1.Thing:abc", classified(name))

    assert (world.asked, world.news) == (asked, news)


@pytest.mark.parametrize("limit", ["ProvisionedThroughput", "AccountLimit", "MaxOnDemandThroughput"])
@pytest.mark.parametrize("does", ["Read", "Write"])
def test_other_limits_are_told_with_their_remedy_once_in_a_cooldown(limit: str, does: str) -> None:
    world = World()
    growth = world.process()
    error = throttle(f"Table{does}{limit}Exceeded")

    for _ in range(5):
        growth.throttled(entity(), "thing.v1.Thing:abc", error)
    world.now += 300
    growth.throttled(entity(), "thing.v1.Thing:abc", error)

    assert (world.asked, world.looks, world.news) == ([], 0, [News.LIMIT, News.LIMIT])
    assert world.told[0].told == f"{error.reasons[0].reason}: {error.reasons[0].remedy}"


def test_two_limits_at_once_are_both_told() -> None:
    world = World()
    growth = world.process()

    growth.throttled(entity(), None, throttle("TableReadAccountLimitExceeded"))
    growth.throttled(entity(), None, throttle("TableWriteProvisionedThroughputExceeded"))

    assert world.news == [News.LIMIT, News.LIMIT]


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
def test_what_is_declared_decides_whether_a_hot_partition_grows(
    declared: Shards, asked: int | None, remedy: str
) -> None:
    world = World()

    world.process().throttled(entity(declared), "thing.v1.Thing:abc", HOT)

    assert world.asked == ([("thing.v1.Thing:abc", asked)] if asked else [])
    assert world.news == [News.ASKED if asked else News.CANNOT]
    assert world.told[0].told.endswith(remedy)
    assert world.told[0].target == asked


def test_an_entity_without_shards_is_not_even_looked_at() -> None:
    world = World()

    world.process().throttled(definition(declare()), "thing.v1.Thing:abc", HOT)

    assert (world.news, world.looks) == ([News.CANNOT], 0)
    assert world.told[0].told == "thing.v1.Thing:abc is hot: declare shards"


@pytest.mark.parametrize(
    ("error", "partition"),
    [
        (HOT, None),
        (throttle("IndexWriteKeyRangeThroughputExceeded"), "thing.v1.Thing:abc"),
        (throttle("IndexWriteKeyRangeThroughputExceeded", slot="GSI3"), "thing.v1.Thing:abc"),
    ],
    ids=["no partition", "no index named", "index of others"],
)
def test_what_is_hot_must_be_known(error: ThrottledError, partition: str | None) -> None:
    world = World()

    world.process(load=Loads()).throttled(entity(), partition, error)

    assert (world.asked, world.news) == ([], [News.UNKNOWN])


def test_a_hot_index_grows_for_all_partitions_and_only_to_its_own_ceiling() -> None:
    world = World()
    growth = world.process()
    for tenant in ("a", "b", "c"):
        growth.throttled(entity(), f"thing.v1.Thing:{tenant}", HOT_INDEX)
        world.now += 400

    assert world.asked == [("thing.v1.Thing|GSI1", 8), ("thing.v1.Thing|GSI1", 16)]
    assert world.news == [News.ASKED, News.ASKED, News.CANNOT]
    assert {(report.partition, report.index) for report in world.told} == {(None, "GSI1")}


def test_a_storm_of_throttles_asks_once_and_costs_nothing_else() -> None:
    world = World()
    growth = world.process()
    thing = entity()

    for _ in range(1000):
        growth.throttled(thing, "thing.v1.Thing:abc", HOT)

    assert world.asked == [("thing.v1.Thing:abc", 32)]
    assert (world.looks, len(world.slept), len(world.told)) == (2, 1, 1)


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


def test_who_waits_looks_again_and_finds_that_another_was_first() -> None:
    world = World()
    other = world.process(random=0.0)
    thing = entity()

    def meanwhile() -> None:
        world.meanwhile = lambda: None
        other.throttled(thing, "thing.v1.Thing:abc", HOT)

    world.meanwhile = meanwhile
    world.process(random=0.9).throttled(thing, "thing.v1.Thing:abc", HOT)

    assert world.asked == [("thing.v1.Thing:abc", 32)]
    assert world.news == [News.ASKED, News.LOST]


def test_without_sleep_no_request_waits_and_a_later_throttle_asks() -> None:
    world = World()
    growth = world.process(waits=False)
    thing = entity()

    growth.throttled(thing, "thing.v1.Thing:abc", HOT)
    world.now += 5.4
    growth.throttled(thing, "thing.v1.Thing:abc", HOT)
    before = (world.looks, list(world.asked))
    world.now += 0.2
    growth.throttled(thing, "thing.v1.Thing:abc", HOT)
    growth.throttled(thing, "thing.v1.Thing:abc", HOT)

    assert before == (0, [])
    assert (world.looks, world.asked, world.slept) == (1, [("thing.v1.Thing:abc", 32)], [])


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
    ("changed", "busy", "asked"),
    [(START - 299, False, []), (START + 50, False, []), (START - 300, False, [32]), (START - DAY, True, [])],
    ids=["in the cooldown", "by a clock ahead", "after it", "changing"],
)
def test_a_count_that_changed_or_changes_is_left_alone(changed: float, *, busy: bool, asked: list[int]) -> None:
    world = World(standing={"thing.v1.Thing:abc": Standing(16, changed, busy)})

    world.process().throttled(entity(), "thing.v1.Thing:abc", HOT)

    assert [target for _, target in world.asked] == asked
    assert world.news == [News.ASKED] * len(asked)


def test_a_clock_ahead_does_not_prolong_the_cooldown() -> None:
    world = World(standing={"thing.v1.Thing:abc": Standing(16, START + 5000, busy=False)})
    growth = world.process()

    growth.throttled(entity(), "thing.v1.Thing:abc", HOT)
    world.standing["thing.v1.Thing:abc"] = Standing(16, START, busy=False)
    world.now += 300
    growth.throttled(entity(), "thing.v1.Thing:abc", HOT)

    assert world.asked == [("thing.v1.Thing:abc", 32)]


def test_a_process_remembers_ten_thousand_partitions() -> None:
    world = World()
    growth = world.process(mode="dry_run")
    thing = entity()

    for tenant in [*range(10_001), 10_000, 0]:
        growth.throttled(thing, f"thing.v1.Thing:{tenant}", HOT)

    assert len(world.told) == 10_002


def test_the_cooldown_that_another_process_began_ends_when_it_ends() -> None:
    world = World(standing={"thing.v1.Thing:abc": Standing(16, START - 290, busy=False)})
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

    assert world.news == [News.WOULD_ASK, News.WOULD_ASK]


def test_a_dry_run_tells_and_asks_nothing() -> None:
    world = World()
    growth = world.process(mode="dry_run")

    for _ in range(3):
        growth.throttled(entity(), "thing.v1.Thing:abc", HOT)

    assert (world.asked, world.slept, world.news) == ([], [], [News.WOULD_ASK])
    assert (world.told[0].target, world.told[0].partition) == (32, "thing.v1.Thing:abc")


def test_switched_off_nothing_is_looked_at_asked_or_told() -> None:
    world, loads = World(), Loads()
    growth = world.process(mode="off", load=loads)

    for error in (HOT, HOT_INDEX, NO_REASON, throttle("TableWriteAccountLimitExceeded")):
        growth.throttled(entity(), "thing.v1.Thing:abc", error)

    assert (world.asked, world.looks, world.told, loads.asked) == ([], 0, [], [])
    assert growth.shrink([record("thing.v1.Thing:abc", 64)], [entity()]) == []


@pytest.mark.parametrize(
    ("trouble", "news"),
    [
        (ReshardRefusedError("not swept", reason="not_swept"), News.REFUSED),
        (TopologyChangedError("changed"), News.LOST),
        (EngineUnavailableError("gone"), News.FAILED),
        (throttle(), News.FAILED),
    ],
)
def test_a_request_never_fails_because_its_count_cannot_grow(trouble: Exception, news: News) -> None:
    world = World(trouble=trouble)

    world.process().throttled(entity(), "thing.v1.Thing:abc", HOT)

    assert (world.asked, world.news) == ([], [news])


def test_a_request_never_fails_because_its_count_cannot_be_read() -> None:
    def present(*_: object) -> Standing:
        raise EngineUnavailableError("gone")

    world = World()
    growth = Growth(
        world.ask,
        present,
        clock=lambda: START,
        random=lambda: 0.5,
        settings=GrowthSettings(),
        report=world.told.append,
        sleep=world.sleep,
    )

    growth.throttled(entity(), "thing.v1.Thing:abc", HOT)

    assert world.news == [News.FAILED]


@pytest.mark.parametrize(
    ("below", "asked", "news"),
    [
        (True, [("thing.v1.Thing:abc", 32)], [News.ASKED]),
        (False, [], [News.LIMIT]),
        (None, [], [News.UNKNOWN]),
    ],
)
def test_without_a_reason_the_load_decides(
    *, below: bool | None, asked: list[tuple[str, int]], news: list[News]
) -> None:
    world, loads = World(), Loads(below)

    world.process(load=loads).throttled(entity(), "thing.v1.Thing:abc", NO_REASON)

    assert (world.asked, world.news, loads.asked) == (asked, news, [True])
    assert below or "1 of 2 units" in world.told[0].told


def test_a_throttled_read_asks_for_the_load_of_reading() -> None:
    world, loads = World(), Loads()

    world.process(load=loads).throttled(entity(), "thing.v1.Thing:abc", throttle("", operation="Query"))

    assert loads.asked == [False]


def test_the_load_is_asked_for_once_a_minute_until_it_is_known() -> None:
    world, loads = World(), Loads(None)
    growth = world.process(load=loads)

    for _ in range(10):
        growth.throttled(entity(), "thing.v1.Thing:abc", NO_REASON)
    world.now += 60
    loads.below = True
    for _ in range(10):
        growth.throttled(entity(), "thing.v1.Thing:abc", NO_REASON)

    assert len(loads.asked) == 2
    assert world.asked == [("thing.v1.Thing:abc", 32)]


def test_a_known_load_serves_a_later_throttle_that_ends_the_wait() -> None:
    world, loads = World(), Loads()
    growth = world.process(load=loads, waits=False)

    growth.throttled(entity(), "thing.v1.Thing:abc", NO_REASON)
    world.now += 6
    growth.throttled(entity(), "thing.v1.Thing:abc", NO_REASON)

    assert (len(loads.asked), world.asked) == (1, [("thing.v1.Thing:abc", 32)])


def test_a_message_that_blames_the_indexes_grows_no_table() -> None:
    world, loads = World(), Loads()

    world.process(load=loads).throttled(entity(), "thing.v1.Thing:abc", classified("transaction_throttled"))

    assert (world.asked, loads.asked, world.news) == ([], [], [News.UNKNOWN])


def test_threads_ask_once() -> None:
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
    ],
    ids=str,
)
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="growth"):
        GrowthSettings(**wrong)


def record(key: str, count: int, *, age: float = DAY, **more: Any) -> Record:
    return Record(key, count, Decimal(str(START - age)), 30.0, **more)


@pytest.mark.parametrize(
    ("stands", "target"),
    [
        (record("thing.v1.Thing:abc", 64), 32),
        (record("thing.v1.Thing|GSI1", 16), 8),
        (record("thing.v1.Thing:abc", 64, change={"cause": "throttle"}), 32),
        (record("thing.v1.Thing:abc", 64, age=DAY - 1), None),
        (record("thing.v1.Thing:abc", 16), None),
        (record("thing.v1.Thing|GSI1", 4), None),
        (record("thing.v1.Thing", 64), None),
        (record("thing.v1.Thing:abc", 0), None),
        (record("thing.v1.Thing:abc", 64, target=128), None),
        (record("thing.v1.Thing:abc", 64, swept=False), None),
        (record("thing.v1.Thing:abc", 64, change={"cause": "operator"}), None),
    ],
    ids=[
        "partition", "index", "grown by itself", "not long enough", "declared", "index as declared", "whole family",
        "unsharded", "changing", "not swept", "set by an operator",
    ],
)  # fmt: skip
def test_a_count_is_halved_after_a_long_quiet_down_to_what_is_declared(stands: Record, target: int | None) -> None:
    world = World(standing={stands.key: Standing(stands.count, 0.0, busy=False)})

    told = world.process(load=Loads()).shrink([stands], [entity()])

    assert world.asked == ([(stands.key, target)] if target else [])
    assert [report.news for report in told] == ([News.ASKED] if target else [])
    assert told == world.told


def test_modulo_counts_are_not_halved() -> None:
    assert World().process().shrink([record("thing.v1.Thing:abc", 32)], [entity(Shards(10, "modulo"))]) == []


@pytest.mark.parametrize("calm", [False, None])
def test_nothing_is_halved_where_throttles_are_counted_or_nobody_knows(*, calm: bool | None) -> None:
    loads = Loads(calmness=calm)

    assert World().process(load=loads).shrink([record("thing.v1.Thing:abc", 64)], [entity()]) == []


def test_what_this_process_saw_throttled_is_not_quiet() -> None:
    world = World(standing={"thing.v1.Thing:abc": Standing(64, 0.0, busy=False)})
    growth = world.process()
    growth.throttled(entity(), "thing.v1.Thing:abc", HOT)
    stands = record("thing.v1.Thing:abc", 64)

    early = growth.shrink([stands], [entity()])
    world.now += DAY
    late = growth.shrink([stands], [entity()])

    assert (len(early), len(late)) == (0, 1)


def test_a_count_grown_again_after_it_was_halved_stands_twice_as_long() -> None:
    history = frozenset({"1:16", "100:32", "200:16", "300:32", "400:64"})
    twice = replace(record("thing.v1.Thing:abc", 32, age=2 * DAY - 1), history=history - {"400:64"})
    first = replace(record("thing.v1.Thing:other", 64), history=history)
    world = World(standing={"thing.v1.Thing:abc": Standing(32, 0.0, busy=False)})
    world.standing["thing.v1.Thing:other"] = Standing(64, 0.0, busy=False)
    growth = world.process()

    growth.shrink([twice, first], [entity()])
    early = list(world.asked)
    world.now += 1
    growth.shrink([twice], [entity()])

    assert early == [("thing.v1.Thing:other", 32)]
    assert world.asked[1:] == [("thing.v1.Thing:abc", 16)]


def test_a_dry_run_halves_nothing() -> None:
    world = World()

    told = world.process(mode="dry_run").shrink([record("thing.v1.Thing:abc", 64)], [entity()])

    assert (world.asked, [report.news for report in told]) == ([], [News.WOULD_ASK])


class Throttling(RuleBasedStateMachine):
    """Several processes under random throttles, whose waits overlap, one of them asking without a wait of its own."""

    SHARDS = Shards(2, max=32)
    COOLDOWN = 300.0

    @initialize(modes=st.lists(st.sampled_from(["on", "on", "dry_run", "off"]), min_size=3, max_size=3))
    def begin(self, modes: list[str]) -> None:
        self.world = World()
        self.modes = modes
        self.thing = definition(declare(shards=self.SHARDS, indexes=INDEXES))
        self.draws = 0
        self.changes: list[tuple[float, str, int]] = []
        self.world.ask = self.ask  # type: ignore[method-assign]
        self.processes = [
            self.world.process(mode=mode, waits=at != 2, random=0.3 * at) for at, mode in enumerate(modes)
        ]
        self.active = [at for at, mode in enumerate(modes) if mode == "on"]
        self.caller = 0

    def ask(
        self, entity: EntityDefinition[Any], partition: str | None, index: IndexDefinition | None, target: int, /
    ) -> object:
        assert self.modes[self.caller] == "on"
        World.ask(self.world, entity, partition, index, target)
        self.changes.append((self.world.now, Scope(entity, partition, index).key, target))
        return None

    @rule(
        process=st.integers(0, 2),
        other=st.integers(0, 2),
        tenant=st.sampled_from("ab"),
        error=st.sampled_from([HOT, HOT, HOT_INDEX, NO_REASON, throttle("TableWriteAccountLimitExceeded")]),
    )
    def throttle_one(self, process: int, other: int, tenant: str, error: ThrottledError) -> None:
        def meanwhile() -> None:
            self.world.meanwhile = lambda: None
            self.caller = other
            self.processes[other].throttled(self.thing, f"thing.v1.Thing:{tenant}", error)
            self.caller = process

        self.world.meanwhile = meanwhile
        self.caller = process
        self.processes[process].throttled(self.thing, f"thing.v1.Thing:{tenant}", error)
        self.world.meanwhile = lambda: None

    @rule(seconds=st.sampled_from([0.5, 3.0, 9.0, 120.0, 299.0, 301.0, 4000.0]))
    def pass_time(self, seconds: float) -> None:
        self.world.now += seconds

    @rule(tenant=st.sampled_from("ab"))
    def another_program_changes_the_count(self, tenant: str) -> None:
        key = f"thing.v1.Thing:{tenant}"
        if key in self.world.standing:
            standing = self.world.standing[key]
            self.world.standing[key] = Standing(max(2, standing.count // 2), self.world.now, busy=False)

    @invariant()
    def counts_only_double_up_to_their_ceiling(self) -> None:
        for key, standing in getattr(self, "world", World()).standing.items():
            assert standing.count in {2, 4, 8, 16, 32}
            assert standing.count <= (16 if "|" in key else 32)

    @invariant()
    def a_cooldown_lies_between_two_changes(self) -> None:
        for key in {key for _, key, _ in getattr(self, "changes", [])}:
            times = [at for at, changed, _ in self.changes if changed == key]
            assert all(later - earlier >= self.COOLDOWN for earlier, later in pairwise(times))


Throttling.TestCase.settings = hypothesis_settings(max_examples=60, stateful_step_count=30, deadline=None)
TestThrottling = Throttling.TestCase


class Log(Entity, name="log.v1.Line", key=Key("{tenant}", "{id}", prefix="fam"), shards=Shards(2), registry=Registry()):
    tenant: str
    id: str


def test_a_record_of_a_family_with_a_prefix_is_known_by_it() -> None:
    world = World()
    world.process().throttled(definition(Log), "fam:abc", HOT)

    assert world.asked == [("fam:abc", 4)]
