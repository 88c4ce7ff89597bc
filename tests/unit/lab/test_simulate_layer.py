"""Runs of the real layer in virtual time."""

from itertools import accumulate
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dynashard_lab.simulate.command import run_scenario
from dynashard_lab.simulate.layer.operations import Stored
from dynashard_lab.simulate.layer.readback import read_back
from dynashard_lab.simulate.layer.run import run_layer
from dynashard_lab.simulate.run import Result
from dynashard_lab.simulate.scenario import Scenario, load
from dynashard_tools.failure import CommandError

pytestmark = pytest.mark.unit

HEAVY = {"partition": "user.v1.User:hot", "shards": 1, "item_bytes": 40_960, "rate": 50.0}
"""2,000 write units a second."""


def ran(demand: dict[str, Any], layer: dict[str, Any] | None = None, **more: Any) -> Result:
    base = {"title": "t", "question": "q", "seconds": 60.0, "table": {"warm_write_units": 40_000.0}}
    scenario = Scenario.model_validate(
        {**base, "demands": {"users": {**HEAVY, **demand}}, "layer": layer or {}, **more}
    )
    assert scenario.layer is not None
    return run_layer(scenario, scenario.layer)


@pytest.mark.deep
def test_one_shard_carries_what_one_partition_does() -> None:
    result = ran({})

    assert result.admitted == pytest.approx((60 + 1) * 1_000 / 40, rel=0.05)
    assert result.asked == pytest.approx(60 * 50, rel=0.1)
    assert result.reasons.keys() == {"TableWriteKeyRangeThroughputExceeded"}
    assert result.layer is not None
    assert (result.layer.lost, result.layer.doubled) == (0, 0)


def test_shards_carry_what_their_partitions_do_together() -> None:
    result = ran({"shards": 16})

    assert result.admitted == result.asked
    assert result.throttled == 0


def test_same_scenario_gives_the_same_run() -> None:
    first, second = (ran({}, seconds=20.0) for _ in range(2))

    assert first.points == second.points
    assert first.reasons == second.reasons


@pytest.mark.deep
def test_load_in_batches_takes_as_long_as_the_partition() -> None:
    result = ran({"items": 4_000, "item_bytes": 1_024, "rate": 1.0}, {"request_seconds": 0.01}, seconds=600.0)

    assert result.finished
    assert result.admitted == 4_000
    assert result.seconds == pytest.approx(3.0, abs=1.0)


def test_loaders_of_one_process_do_not_wait_for_each_other() -> None:
    layer = {"request_seconds": 0.01, "processes": 1, "loaders": 4, "lease": 0.5}

    result = ran({"shards": 16, "items": 4_000, "item_bytes": 1_024, "rate": 1.0}, layer, seconds=600.0)

    assert result.finished
    assert result.admitted == 4_000


def test_count_that_an_operator_changes_under_load_loses_nothing() -> None:
    resize = {"at": 5.0, "demand": "users", "to": 4}
    layer = {"lease": 2.0, "operation": 3.0, "mover_share": 1.0, "resizes": [resize]}

    result = ran({"rate": 20.0}, layer, seconds=90.0)

    assert result.layer is not None
    assert result.layer.shards == {"users": 4}
    assert result.layer.phases[-1][1] == "users: stable, 4 shards"
    assert (result.layer.lost, result.layer.doubled) == (0, 0)
    assert result.layer.acknowledged == result.admitted > 1_500


@pytest.mark.deep
def test_growth_reaches_16_times_what_a_shard_takes_within_a_factor_of_two_and_loses_nothing() -> None:
    # Limits are a 125th of DynamoDB's: 128 writes a second are what 16 shards take. The table has so many physical
    # partitions that few shards share one: more than a tenth would be throttled otherwise until they are split.
    units = {"partition_write_units": 8.0, "on_demand_write_units": 32.0, "table_write_quota": 640.0}
    demand = {"item_bytes": 1_024, "rate": [[0.0, 1.0], [5.0, 1.0], [6.0, 128.0]]}
    layer = {"growth": "on", "placement": "random", "lease": 4.0, "operation": 5.0}

    result = ran(demand, layer, seconds=150.0, settings=units, table={"warm_write_units": 640.0})

    assert result.layer is not None
    assert result.layer.optimum == {"users": 16}
    assert 8 <= result.layer.shards["users"] <= 32
    assert result.layer.adapted_seconds is not None
    assert [point.admitted >= 0.7 * 128 for point in result.points[-20:]].count(False) <= 2
    assert (result.layer.lost, result.layer.doubled) == (0, 0)


def test_growth_by_epochs_is_followed_within_a_lease_and_the_bounds_of_clocks_and_moves_nothing() -> None:
    # Limits are a 125th of DynamoDB's: 128 writes a second are what 16 shards take.
    units = {"partition_write_units": 8.0, "on_demand_write_units": 32.0, "table_write_quota": 320.0}
    demand = {"item_bytes": 900, "rate": [[0.0, 1.0], [60.0, 1.0], [61.0, 128.0]]}
    layer = {"growth": "on", "placement": "epochs", "clocks_off": 4.8, "lease": 4.0, "operation": 5.0, "processes": 4}

    result = ran(demand, layer, seconds=130.0, settings=units, table={"warm_write_units": 320.0})

    assert result.layer is not None
    assert result.layer.shards["users"] >= 16
    assert [point.admitted >= 0.7 * 128 for point in result.points[-8:]].count(False) <= 1
    assert result.layer.growth_units <= 20
    assert (result.layer.moved, result.layer.lost, result.layer.doubled) == (0, 0, 0)
    # The first answers may leave it open whether a clock is off by more than allowed.
    assert sum(result.layer.failed.values()) < 20
    assert result.layer.failed.keys() <= {"ClockOffError"}


def test_processes_whose_clocks_are_off_by_more_than_allowed_write_nothing() -> None:
    layer = {"placement": "epochs", "clocks_off": 60.0, "processes": 2}

    result = ran({"item_bytes": 900}, layer, seconds=20.0)

    assert result.layer is not None
    assert (result.admitted, result.layer.acknowledged) == (0, 0)
    assert result.layer.failed == {"ClockOffError": result.asked}


@pytest.mark.deep
@pytest.mark.parametrize("variant", ["epochs", "epochs, 1 process", "epochs, 50 processes"])
def test_epochs_serve_16_times_as_much_within_100_seconds_at_20_units_and_never_less_than_without_growth(
    variant: str,
) -> None:
    variants = load("layer-growth", ["seconds=190"])
    off = run_scenario(variants["growth off"])

    on = run_scenario(variants[variant])

    assert on.layer is not None
    assert on.layer.adapted_seconds is not None
    assert on.layer.adapted_seconds <= 100
    assert on.layer.growth_units <= 20
    assert (on.layer.moved, on.layer.lost, on.layer.doubled, on.layer.stale) == (0, 0, 0, 0)
    served, without = (_served_after(each, 70.0) for each in (on, off))
    # Both meet the same demand, but not at the same instants.
    assert all(mine >= 0.98 * others for mine, others in zip(served, without, strict=True))


def _served_after(result: Result, seconds: float) -> list[float]:
    """Return what was admitted until each point after a time, in operations a point."""
    every = accumulate(point.admitted for point in result.points)
    return [served for point, served in zip(result.points, every, strict=True) if point.seconds > seconds]


@pytest.mark.deep
def test_log_that_grew_keeps_its_shards_while_it_is_quiet_and_grows_again_as_fast() -> None:
    rate = [[0, 1], [60, 1], [61, 32], [160, 32], [161, 0.1], [7_500, 0.1], [7_501, 128]]
    scenario = load("layer-log", [f"demands.log.rate={rate}", "seconds=7650"])["hot, quiet, hot again"]
    assert scenario.layer is not None

    layer = run_layer(scenario, scenario.layer).layer

    assert layer is not None
    first, second = (at for at, text in layer.growth if text.startswith("asked: "))
    assert first - 61 < 30
    assert second - 7_501 < 30
    assert [text for at, text in layer.phases if 300 < at < 7_500] == []
    assert layer.phases[-1][0] - second < 150
    assert layer.phases[-1][1] == f"log: stable, {layer.shards['log']} shards"
    assert layer.shards["log"] >= 16
    assert (layer.lost, layer.doubled) == (0, 0)


@pytest.mark.deep
def test_growth_that_would_move_items_for_long_is_declined_and_callers_get_what_they_got_without_it() -> None:
    # 4 shards of a 125th of DynamoDB's limits hold 5,120 items, and creates ask for 1.2 times what they take.
    demand = {"item_bytes": 900, "shards": 4, "stored": 5_120, "rate": 1.2 * 32.0}
    units = {"partition_write_units": 8.0, "partition_read_units": 24.0, "on_demand_write_units": 32.0}
    units |= {"on_demand_read_units": 96.0, "table_write_quota": 320.0, "table_read_quota": 320.0}
    table = {"warm_write_units": 320.0, "warm_read_units": 960.0}

    off, on = (
        ran(demand, {"growth": growth, "processes": 4}, seconds=1000.0, settings=units, table=table)
        for growth in ("off", "on")
    )

    assert on.layer is not None
    assert on.admitted >= 0.9 * off.admitted
    assert on.layer.shards == {"users": 4}
    assert any(text.startswith("asked: ") for _, text in on.layer.growth)
    assert any(text.startswith("too_long: ") for _, text in on.layer.growth)
    assert (on.layer.lost, on.layer.doubled) == (0, 0)


@pytest.mark.deep
def test_hot_tenant_creates_16_times_as_much_with_16_shards_and_40_times_with_64() -> None:
    quick = ["settings.heat_split_seconds=60", "settings.heat_pause_seconds=5", "rehearsal_seconds=600", "seconds=3"]
    variants = load("layer-hot-tenant", quick)
    found = {}
    for name in ("1 shard", "16 shards", "64 shards"):
        scenario = variants[name]
        assert scenario.layer is not None
        found[name] = run_layer(scenario, scenario.layer).admitted

    assert found["16 shards"] >= 15 * found["1 shard"]
    assert found["64 shards"] >= 38 * found["1 shard"]


@pytest.mark.deep
def test_listings_of_a_mixed_demand_are_throttled_first_and_more_shards_help_unless_they_are_in_order() -> None:
    # One process has fewer retries than ten, so that a short run shows what a longer one does.
    quick = ["settings.heat_split_seconds=60", "settings.heat_pause_seconds=5", "rehearsal_seconds=300", "seconds=2.5"]
    variants = load(
        "layer-mixed", [*quick, "layer.processes=1", "demands.tenant.stored=200", "demands.tenant.rate=600"]
    )
    found = {}
    for name in ("4 shards", "16 shards", "16 shards, in order"):
        scenario = variants[name]
        assert scenario.layer is not None
        found[name] = run_layer(scenario, scenario.layer).layer

    throttled = {
        name: {kind: counts.throttled / counts.asked for kind, counts in layer.operations.items()}
        for name, layer in found.items()
        if layer is not None
    }
    assert throttled["4 shards"].keys() == {"create", "get", "list", "put", "update"}
    listed = throttled["4 shards"].pop("list")
    assert listed > 1.5 * max(throttled["4 shards"].values())
    assert max(throttled["16 shards"].values()) < 0.01
    in_order = throttled["16 shards, in order"].pop("list")
    assert in_order > 0.1
    assert max(throttled["16 shards, in order"].values()) < 0.02
    assert [(layer.lost, layer.doubled, layer.stale) for layer in found.values() if layer] == [(0, 0, 0)] * 3


@pytest.mark.parametrize("placement", ["calculated", "random"])
def test_updates_while_a_count_changes_leave_the_last_acknowledged_values(placement: str) -> None:
    mixed = {"shares": {"get": 2, "update": 4, "put": 3, "create": 2, "list": 1}, "stored": 150, "item_bytes": 900}
    resize = {"at": 5.0, "demand": "users", "to": 4}
    layer = {"lease": 2.0, "operation": 3.0, "resizes": [resize], "placement": placement}

    result = ran({**mixed, "rate": 30.0}, layer, seconds=40.0)

    assert result.layer is not None
    assert result.layer.shards == {"users": 4}
    assert result.layer.operations["update"].done > 300
    assert result.layer.failed.keys() <= {"RevisionMismatchError"}
    assert result.admitted > 0.98 * result.asked
    assert (result.layer.lost, result.layer.doubled, result.layer.stale) == (0, 0, 0)


def test_read_back_counts_what_is_lost_listed_twice_and_stale() -> None:
    listed = [("a", "00000001x"), ("b", "00000002x"), ("b", "00000002x"), ("c", "00000000x")]
    page = SimpleNamespace(items=[{"id": id_, "data": data} for id_, data in listed])
    collection = SimpleNamespace(pages=lambda *_, **__: [page])

    found = read_back(cast("Any", collection), [Stored("t", id_, 1) for id_ in "acd"])

    assert (found.lost, found.doubled, found.stale) == (1, 1, 1)


@pytest.mark.parametrize("wrong", [{"shards": 0}, {"transactional": True}, {"operation": "read"}])
def test_demands_that_the_layer_cannot_run_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(CommandError, match="users: "):
        ran(wrong)
