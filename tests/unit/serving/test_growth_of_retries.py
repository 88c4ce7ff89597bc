"""Throttles that retries hide make counts grow if they are sustained, and else change nothing."""

from typing import Any

import pytest

from dynashard import Index, Key, Shards, definition
from dynashard.entity import EntityDefinition
from dynashard.errors import ThrottledError
from dynashard.growth.demand import CountingTransport, Demand, Place
from dynashard.growth.evidence import Evidence
from dynashard.growth.retries import SUSTAINED, RetriedThrottles, owner_of
from dynashard.growth.sizing import enough
from dynashard.growth.terms import GrowthEvent
from dynashard.testing.one_by_one import OneByOne
from dynashard.transport.interface import Call, Wire, metered, record_throttle
from tests.declaring import declare
from tests.unit.serving.growth_loop import Loop
from tests.unit.serving.growth_policy_world import entity, throttle

pytestmark = pytest.mark.unit

PARTITION = "thing.v1.Thing:hot"
TENANTS = [f"thing.v1.Thing:{number}" for number in range(50)]
PAUSES = (0.25, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
"""Pauses with which hardly any request fails."""
TABLE_HOT, INDEX_HOT = "TableWriteKeyRangeThroughputExceeded", "IndexWriteKeyRangeThroughputExceeded"
WRITES = Place(None, writing=True)
ITEM = {"PK": {"S": f"{PARTITION}:1"}, "SK": {"S": "x"}, "GSI1PK": {"S": "thing.v1.Thing:abc:2"}, "GSI1SK": {"S": "x"}}
PUT = {"TableName": "table", "Item": ITEM}
BARE = Key("{tenant}", "{id}", prefix="", separator="_")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("processes", [1, 4])
def test_callers_that_always_wait_make_the_count_grow(processes: int) -> None:
    loop = Loop({}, callers={PARTITION: 4}, processes=processes, pauses=PAUSES)

    loop.run(60)

    assert loop.world.asked == [(PARTITION, 2)]
    assert sum(failed for _, _, failed in loop.history) == 0
    assert "0 of" in loop.world.reports[0].reason
    assert "executed after retries" in loop.world.reports[0].reason


def test_short_peaks_that_retries_absorb_change_nothing() -> None:
    loop = Loop({PARTITION: 900.0}, pauses=PAUSES)

    for _ in range(4):
        loop.run(29)
        loop.rates[PARTITION] = 2_000.0
        loop.run(1)
        loop.rates[PARTITION] = 600.0
        loop.run(10)

    assert (loop.world.asked, loop.world.events) == ([], [])


@pytest.mark.parametrize("processes", [1, 3])
def test_retried_throttles_of_a_cold_table_change_no_count(processes: int) -> None:
    loop = Loop({}, callers=dict.fromkeys(TENANTS, 1), units=4_000, processes=processes, pauses=PAUSES)

    loop.run(100)

    assert loop.world.asked == []
    assert set(loop.world.events) - {GrowthEvent.KEPT} == {GrowthEvent.LIMIT}


def test_quiet_neighbours_of_callers_that_wait_are_left_alone() -> None:
    loop = Loop(dict.fromkeys(TENANTS, 5.0), callers={PARTITION: 4}, processes=2, pauses=PAUSES)

    loop.run(120)

    assert {key for key, _ in loop.world.asked} == {PARTITION}
    assert GrowthEvent.LIMIT not in loop.world.events


@pytest.mark.parametrize(
    ("retried", "throttled", "is_enough"), [(9, 0, True), (11, 0, False), (9, 1, False)], ids=["few", "many", "lasting"]
)
def test_few_retried_throttles_are_no_reason_to_grow(*, retried: int, throttled: int, is_enough: bool) -> None:
    evidence = Evidence((100,), 1, throttled, 100, throttled + retried, retried)

    assert enough(evidence) is is_enough


class Retrying(OneByOne):
    """A transport that meets throttles before each answer."""

    def __init__(self, *reasons: str) -> None:
        self.reasons = reasons
        self.trouble: Exception | None = None

    def call(self, *_: Any, **__: Any) -> Wire:
        for reason in self.reasons:
            record_throttle(reason)
        if self.trouble is not None:
            raise self.trouble
        return {}

    def close(self) -> None:
        pass


class Counted:
    """A counting transport above retries, and what it reports."""

    def __init__(self, *reasons: str) -> None:
        self.inner = Retrying(*reasons)
        self.demand = Demand(lambda: 1000.0)
        self.reported: list[tuple[str, str | None, ThrottledError]] = []
        retries = RetriedThrottles([entity(Shards(2, max=16)).model], self.demand, self._report, "table")
        self.transport = CountingTransport(self.inner, "table", self.demand, retries.executed)

    def _report(self, entity: Any, partition: str | None, error: ThrottledError) -> None:
        self.reported.append((entity.name, partition, error))

    def put(self, times: int = SUSTAINED, request: Wire = PUT) -> None:
        for _ in range(times):
            self.transport.call("PutItem", request)


def test_each_request_is_reported_once_there_were_enough() -> None:
    counted = Counted(TABLE_HOT, TABLE_HOT)

    counted.put(SUSTAINED - 1)
    before = list(counted.reported)
    counted.put(2)

    assert before == []
    assert [(name, partition) for name, partition, _ in counted.reported] == [("thing.v1.Thing", PARTITION)] * 2
    [tally] = counted.demand.tallies(WRITES)
    assert (tally.admitted, tally.refused, tally.throttled) == ({f"{PARTITION}:1": 11}, {f"{PARTITION}:1": 11}, {})
    assert tally.retried == {PARTITION: 11}


def test_throttles_of_an_earlier_request_of_a_caller_do_not_count_again() -> None:
    counted = Counted(TABLE_HOT)

    with metered() as meter:
        counted.put(1)
        counted.inner.reasons = ()
        counted.put(20)

    assert meter.throttles == {TABLE_HOT: 1}
    assert counted.demand.tallies(WRITES)[0].retried == {PARTITION: 1}


def test_an_index_is_reported_if_only_it_is_hot() -> None:
    counted = Counted(INDEX_HOT)

    counted.put()

    [(name, partition, error)] = counted.reported
    assert (name, partition, error.reasons[0].index) == ("thing.v1.Thing", None, "GSI1")
    assert counted.demand.tallies(Place("GSI1", writing=True))[0].retried == {"thing.v1.Thing|GSI1": 10}


def test_the_table_comes_first_if_both_are_hot() -> None:
    counted = Counted(INDEX_HOT, TABLE_HOT)

    counted.put()

    [(_, partition, error)] = counted.reported
    assert (partition, error.reasons[0].on_index) == (PARTITION, False)


@pytest.mark.parametrize(
    ("reasons", "request_"),
    [
        ((), PUT),
        (("TableWriteAccountLimitExceeded",), PUT),
        ((TABLE_HOT, "TableWriteMaxOnDemandThroughputExceeded"), PUT),
        (("ThrottlingError",), PUT),
        ((INDEX_HOT,), {**PUT, "Item": {**ITEM, "GSI2PK": {"S": "y"}, "GSI2SK": {"S": "y"}}}),
        ((TABLE_HOT,), {**PUT, "Item": {"PK": {"S": "robots:7"}, "SK": {"S": "x"}}}),
        ((TABLE_HOT,), {**PUT, "TableName": "another"}),
    ],
    ids=["none", "account", "maximum", "no reason", "two indexes", "no entity", "another table"],
)
def test_other_throttles_are_not_reported(reasons: tuple[str, ...], request_: Wire) -> None:
    counted = Counted(*reasons)

    counted.put(20, request_)

    assert (counted.reported, counted.demand.active) == ([], False)


def test_retried_reads_are_counted_as_reads() -> None:
    counted = Counted("TableReadKeyRangeThroughputExceeded")

    counted.transport.call("GetItem", {"TableName": "table", "Key": {"PK": ITEM["PK"], "SK": ITEM["SK"]}})

    assert [tally.retried for tally in counted.demand.tallies(Place(None, writing=False))] == [{PARTITION: 1}]
    assert counted.demand.tallies(WRITES) == []


def test_a_throttle_that_lasts_is_not_reported_here() -> None:
    counted = Counted(TABLE_HOT)
    counted.inner.trouble = throttle()

    for _ in range(20):
        with pytest.raises(ThrottledError):
            counted.put(1)
    counted.transport.try_all([Call("PutItem", PUT)] * 20)

    assert counted.reported == []


def test_stored_keys_lead_to_what_has_the_count() -> None:
    thing = definition(declare(shards=Shards(2)))
    adopted = definition(declare(name="old.v1.Old", key=BARE, shards=Shards(2)))
    by_id = [Index("GSI1", "by_id", "{tenant}", "{id}", shards=Shards(4))]
    indexed = definition(declare(shards=Shards(2), indexes=by_id))

    assert owner_of("thing.v1.Thing:abc:1", None, [thing, adopted]) == (
        thing,
        "thing.v1.Thing:abc",
        "thing.v1.Thing:abc",
    )
    assert owner_of("thing.v1.Thing:abc", None, [thing]) == (thing, "thing.v1.Thing:abc", "thing.v1.Thing:abc")
    assert owner_of("thing.v1.Thing:7", None, [thing]) == (thing, "thing.v1.Thing:7", "thing.v1.Thing:7")
    assert owner_of("abc_1", None, [thing, adopted]) == (adopted, "abc", "=old.v1.Old:abc")
    assert owner_of("thing.v1.Thing:abc:3", "GSI1", [indexed]) == (indexed, None, "thing.v1.Thing|GSI1")
    assert owner_of("thing.v1.Thing:abc:3", "GSI2", [indexed]) is None


def test_index_keys_lead_by_the_prefix_of_the_index_to_the_entity_that_has_it() -> None:
    index = Index("GSI1", "by_id", "{tenant}", "{id}", prefix="ids", shards=Shards(4))
    thing = definition(declare(shards=Shards(2), indexes=[index]))
    bare = Index("GSI1", "by_id", "{tenant}", "{id}", shards=Shards(4))
    adopted = definition(declare(name="old.v1.Old", key=BARE, shards=Shards(2), indexes=[bare]))

    assert owner_of("ids:abc:3", "GSI1", [thing]) == (thing, None, "thing.v1.Thing|GSI1")
    assert owner_of("thing.v1.Thing:abc:3", "GSI1", [thing]) is None
    assert owner_of("old.v1.Old:abc:3", "GSI1", [adopted, thing]) == (adopted, None, "=old.v1.Old|GSI1")
    assert owner_of("abc:3", "GSI1", [adopted]) is None


def test_keys_that_look_like_others_do_not_mislead() -> None:
    def of(prefix: str, shards: Shards | None = None, partition: str = "{tenant}") -> EntityDefinition[Any]:
        return definition(declare(name=f"{prefix}.v1.Thing", key=Key(partition, "{id}", prefix=prefix), shards=shards))

    adopted = definition(declare(name="old.v1.Old", key=BARE, shards=Shards(2)))
    member = of("fam", Shards(2))
    other = definition(declare(name="other.v1.Other", key=Key("{tenant}", "{id}", prefix="fam"), shards=Shards(2)))
    unsharded, pairs = of("log"), of("pair", Shards(2, adopt="unsharded"), "{tenant}:{id}")

    assert owner_of("fam:abc_1:1", None, [adopted, member]) == (member, "fam:abc_1", "fam:abc_1")
    assert owner_of("family:abc:1", None, [member]) is None
    assert owner_of("fam:abc:1", None, [member, other]) == (member, "fam:abc", "fam:abc")
    assert owner_of("log:abc:7", None, [unsharded]) == (unsharded, "log:abc:7", "log:abc:7")
    assert owner_of("pair:abc:xyz", None, [pairs]) == (pairs, "pair:abc:xyz", "pair:abc:xyz")


def test_keys_without_a_prefix_of_two_entities_lead_nowhere() -> None:
    entities = [definition(declare(name=name, key=BARE, shards=Shards(2))) for name in ("old.v1.Old", "old.v1.Older")]

    assert owner_of("abc_1", None, entities) is None
