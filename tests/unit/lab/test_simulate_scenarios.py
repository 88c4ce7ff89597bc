"""The scenarios' figures, and how their files are read."""

import json
import re
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from random import Random
from typing import Any

import pytest
from typer.testing import CliRunner

from dynashard.placement import CALCULATED
from dynashard.routing import shard_keys
from dynashard_lab.plan.prices import REFERENCE, prices_of
from dynashard_lab.simulate.command import run_scenario
from dynashard_lab.simulate.partitions import hash_of
from dynashard_lab.simulate.run import Result, run
from dynashard_lab.simulate.scenario import DemandSpec, Scenario, load, names
from dynashard_lab.simulate.settings import Settings
from dynashard_lab.simulate.traffic import place, units_of
from dynashard_tools.commands import app
from dynashard_tools.failure import CommandError
from tests.markdown import ROOT

pytestmark = pytest.mark.unit


def results(name: str, *changes: str, only: Sequence[str] = ()) -> dict[str, Result]:
    found = load(name, changes)
    return {variant: run(scenario) for variant, scenario in found.items() if not only or variant in only}


def test_a_hot_tenant_writes_15_times_as_much_with_16_shards_and_38_times_with_64() -> None:
    # Splits for heat are quicker than assumed, so that the run is short; the rates afterwards are the same.
    quick = ("settings.heat_split_seconds=60", "settings.heat_pause_seconds=5", "seconds=720")
    found = results("hot-tenant", *quick, only=("1 shard", "16 shards", "64 shards"))

    one = found["1 shard"].settled_rate

    assert one == pytest.approx(1_000, rel=0.01)
    assert found["16 shards"].settled_rate >= 15 * one
    assert found["64 shards"].settled_rate >= 38 * one


def test_before_heat_splits_shards_share_partitions_as_chance_says() -> None:
    found = results("hot-tenant", "seconds=120", only=("16 shards", "64 shards"))

    # 40 (1 - (39/40)^n) partitions are hit: 13.3 in the mean by 16 shards, 32.1 by 64.
    assert found["16 shards"].settled_rate == pytest.approx(13_300, abs=2_500)
    assert found["64 shards"].settled_rate == pytest.approx(32_100, abs=4_500)
    assert [each.heat_splits for each in found.values()] == [0, 0]


@pytest.mark.deep
def test_a_million_users_take_a_thousand_seconds_under_one_key_and_thirty_in_64_shards() -> None:
    quick = ("settings.heat_split_seconds=60", "settings.heat_pause_seconds=5")
    variants = load("bulk-load", quick)
    naive = run(variants["one key"])
    sharded = run(
        variants["64 shards, each with a partition of its own"].model_copy(update={"rehearsal_seconds": 600.0})
    )

    assert naive.finished
    assert naive.admitted == sharded.admitted == 1_000_000
    assert naive.seconds == pytest.approx(1_000, rel=0.05)
    assert sharded.seconds <= 30


def test_scheduled_capacity_costs_at_most_60_percent_of_the_peak_and_throttles_no_more() -> None:
    found = results("prime-time", "tick=60", only=("flat at the peak", "scheduled"))

    flat, scheduled = found["flat at the peak"], found["scheduled"]

    assert scheduled.dollars_a_month <= 0.6 * flat.dollars_a_month
    assert scheduled.throttled <= flat.throttled
    assert scheduled.admitted == pytest.approx(flat.admitted)


def test_random_sort_keys_are_split_for_heat_and_rising_ones_are_not() -> None:
    quick = ("settings.heat_split_seconds=60", "settings.heat_pause_seconds=5", "seconds=480")

    found = [round(each.settled_rate / 1_000, 1) for each in results("rising-sort-keys", *quick).values()]

    assert found == [pytest.approx(4, abs=0.3), 1, 1]


def test_a_hot_index_limits_the_table() -> None:
    found = results("hot-index", "seconds=60")

    assert found["index of 1 shard"].settled_rate == pytest.approx(1_000, rel=0.01)
    assert found["index of 1 shard"].reasons.keys() == {"IndexWriteKeyRangeThroughputExceeded"}
    assert found["index of 16 shards"].settled_rate >= 6_000


def test_two_large_tenants_of_the_scenario_share_a_quarter_of_the_key_space() -> None:
    demands = load("two-large-tenants")["unsharded"].demands.values()

    assert len({hash_of(each.partition) * 4 >> 64 for each in demands}) == 1


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", names())
def test_every_scenario_runs(name: str) -> None:
    for scenario in load(name, ["seconds=60", "tick=20", "rehearsal_seconds=0"]).values():
        result = run_scenario(scenario.model_copy(update=_short(scenario)))

        assert 0 < result.admitted <= result.asked
        assert result.points[-1].seconds == result.seconds


def _short(scenario: Scenario) -> dict[str, Any]:
    """Less time for operations of the layer, and loads of fewer items."""
    items, seconds = (10_000, scenario.seconds) if scenario.layer is None else (800, 0.5)
    if scenario.layer is not None and scenario.layer.clocks_off:
        # In the first second a process may not know yet that its clock is right enough to write.
        seconds = 3.0
    demands = {
        name: each.model_copy(update={"items": each.items and items, "stored": min(each.stored, 20)})
        for name, each in scenario.demands.items()
    }
    return {"demands": demands, "seconds": seconds, "tick": min(seconds, scenario.tick)}


@pytest.mark.deep
def test_large_tenants_of_a_month_get_the_shards_that_they_need() -> None:
    quick = ["seconds=172800", "tick=3600", "demands.tenants.rate=24000", "growing.hottest=40"]
    warm = "table.warm_write_units=40000"
    found = {name: run_scenario(each) for name, each in load("growing-pains", [*quick, warm]).items()}

    stays, epochs = found["counts stay"], found["epochs"]
    declined, moved = found["calculated placement"], found["calculated placement, by an operator"]

    assert stays.growing is not None
    assert stays.growing.counts == {}
    for grows in (moved.growing, epochs.growing):
        assert grows is not None
        # The largest tenant has 13% of 33,600 writes a second.
        assert max(grows.counts) in {4, 8, 16}
        assert sum(grows.counts.values()) < 10
    assert moved.throttled < stays.throttled / 2
    assert epochs.throttled <= moved.throttled
    assert epochs.growing is not None
    assert (epochs.growing.moved, epochs.growing.declined) == (0, 0)
    assert moved.growing is not None
    assert moved.growing.moved > 1_000_000
    assert declined.growing is not None
    assert declined.growing.declined > 0
    assert declined.throttled > moved.throttled


def test_the_same_scenario_gives_the_same_result() -> None:
    first, second = (results("two-large-tenants", "seconds=700") for _ in range(2))

    assert first == second


def test_items_are_placed_by_the_layer() -> None:
    demand = DemandSpec(partition="user.v1.User:abc", shards=16, rate=1.0)

    placed = place(demand, 16_000, Random(1))

    assert {key for (key,) in placed} == set(shard_keys(CALCULATED, "user.v1.User:abc", ":", 16))
    assert all(850 < count < 1_150 for count in placed.values())


@pytest.mark.parametrize(
    ("changes", "units"),
    [
        ({}, 1),
        ({"item_bytes": 1_025}, 2),
        ({"item_bytes": 1_025, "transactional": True}, 4),
        ({"operation": "read", "item_bytes": 4_097}, 1),
        ({"operation": "read", "consistent": True}, 1),
        ({"operation": "read", "transactional": True}, 2),
    ],
)
def test_units_are_rounded_as_dynamodb_rounds_them(changes: dict[str, object], units: float) -> None:
    demand = DemandSpec.model_validate({"partition": "p", "rate": 1, **changes})

    assert units_of(demand, Settings()) == units


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("settings.no_such=1", "there is no setting no_such"),
        ("demands.tenant.shards=4096", "less than or equal to 1024"),
        ("settings.review_seconds=0", "review_seconds is 0.0; it must be above 0"),
        ("demands.tenant.rate=-1", "greater than or equal to 0"),
        ("demands.tenant.rate=[]", "at least 1 item"),
        ("seconds", "changes nothing"),
        ("seconds.more=1", "seconds is a value"),
        ("settings.burst_seconds='long'", "settings.burst_seconds"),
        ('demands.tenant.entries.GSI9={partition="x"}', "there is no index GSI9"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(change: str, message: str) -> None:
    with pytest.raises(CommandError, match=re.escape(message)):
        load("hot-tenant", [change])


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("hot-tenant", "demands.tenant.stored=5", "only a scenario with a section layer has stored"),
        ("layer-bulk-load", "demands.users.shares={list=1}", "a load creates items"),
        ("layer-mixed", "demands.tenant.stored=0", "stored is 0"),
        ("layer-mixed", "demands.tenant.shares={delete=1}", "shares.delete"),
    ],
)
def test_operations_that_a_scenario_cannot_have_are_refused(name: str, change: str, message: str) -> None:
    with pytest.raises(CommandError, match=re.escape(message)):
        load(name, [change])


def test_an_unknown_scenario_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(CommandError, match=r"there is no scenario hot;.*hot-tenant"):
        load("hot")


def test_the_command_prints_figures_json_and_a_picture(tmp_path: Path) -> None:
    file, short = tmp_path / "picture.png", ["--set", "seconds=30"]

    text = CliRunner().invoke(app, ["simulate", "two-large-tenants", *short, "--picture", str(file)])
    document = CliRunner().invoke(app, ["simulate", "two-large-tenants", *short, "--json"])
    listed = CliRunner().invoke(app, ["simulate"])

    assert "TableWriteKeyRangeThroughputExceeded" in text.output
    assert file.stat().st_size > 1_000
    assert json.loads(document.output)["variants"]["unsharded"]["settings"]["burst_seconds"] == 300
    assert [line.partition(":")[0] for line in listed.output.splitlines()] == names()


def test_a_clock_that_a_scenario_sets_wrong_is_counted_and_not_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    short = ["--set", "seconds=10", "--variant", "epochs, 50 processes"]

    ended = CliRunner().invoke(app, ["simulate", "layer-growth", *short])

    assert "operations failed with ClockOffError" in ended.output
    assert caplog.messages == []


def test_the_command_runs_only_the_variants_that_are_named() -> None:
    short = ["--set", "seconds=10"]

    one = CliRunner().invoke(app, ["simulate", "hot-tenant", *short, "--variant", "4 shards", "--json"])
    none = CliRunner().invoke(app, ["simulate", "hot-tenant", "--variant", "5 shards"])

    assert list(json.loads(one.output)["variants"]) == ["4 shards"]
    assert none.exit_code != 0
    assert "there is no variant 5 shards; name one of '1 shard', '4 shards'" in str(none.exception or none.output)


def test_prices_are_those_of_the_planner() -> None:
    document = json.loads((ROOT / "packages/lab/dynashard_lab/plan/prices.json").read_text("utf-8"))
    prices, settings = prices_of(document, REFERENCE), Settings()

    assert (prices.write_request_million, prices.read_request_million) == (
        settings.on_demand_write_price,
        settings.on_demand_read_price,
    )
    assert (prices.write_unit_hour, prices.read_unit_hour) == (
        settings.provisioned_write_price,
        settings.provisioned_read_price,
    )


def test_every_assumption_has_a_source_and_is_in_the_documentation() -> None:
    page = (ROOT / "docs" / "simulating.md").read_text("utf-8")
    described = re.split(r"\n        (?=[a-z_]+: )", Settings.__doc__ or "")[1:]

    assert [each.partition(":")[0] for each in described] == [each.name for each in fields(Settings)]
    assert [each.partition(":")[0] for each in described if "ource: " not in each] == []
    assert [each.name for each in fields(Settings) if f"`{each.name}`" not in page] == []
