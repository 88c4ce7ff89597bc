"""Settings of the table's capacity: bounds, steps and indexes, and one line for each mistake."""

from typing import Any

import pytest

from dynashard_cdk.settings import SettingsError, load
from dynashard_cdk.table_settings import RESOURCES, TABLE, TableSettings

pytestmark = pytest.mark.infra

SIGN_IN = {"issuer": "https://login.example.com/", "audience": ["api"], "tenant_claim": "tenant"}
BOUNDS = {"min_read_units": 100, "max_read_units": 4000, "min_write_units": 50, "max_write_units": 2000}
EVENING = {"at": "17:00", "min_write_units": 1500, "max_write_units": 3000}
NIGHT = {"at": "23:00", "max_write_units": 500}


def provisioned(**changes: Any) -> TableSettings:
    return TableSettings.model_validate({"mode": "provisioned", **BOUNDS, **changes})


def test_a_table_is_on_demand_unless_its_mode_says_otherwise() -> None:
    table = TableSettings()

    assert not table.provisioned


def test_indexes_have_the_bounds_and_the_target_of_the_table() -> None:
    table = provisioned(target_percent=50)

    assert {(*table.bounds("read", name), *table.bounds("write", name)) for name in RESOURCES} == {
        (100, 4000, 50, 2000)
    }
    assert {table.target(name) for name in RESOURCES} == {50}
    assert provisioned().target() == 70


def test_an_index_may_have_bounds_and_a_target_of_its_own() -> None:
    table = provisioned(indexes={"GSI2": {"min_write_units": 5, "max_write_units": 10, "target_percent": 90}})

    assert table.bounds("write", "GSI2") == (5, 10)
    assert table.bounds("read", "GSI2") == (100, 4000)
    assert (table.target("GSI2"), table.target("GSI1")) == (90, 70)


def test_a_table_that_was_on_demand_starts_with_the_least_units_or_with_those_it_names() -> None:
    table = provisioned(start_write_units=1000, indexes={"GSI1": {"max_write_units": 200}})

    assert (table.start("write"), table.start("write", "GSI1"), table.start("write", "GSI2")) == (1000, 200, 1000)
    assert table.start("read") == 100


def test_a_step_names_what_changes_and_the_rest_is_as_without_a_schedule() -> None:
    table = provisioned(schedule=[EVENING, NIGHT])

    assert [(step.at, bounds) for step, bounds in table.steps("write", TABLE)] == [
        ("cron(0 17 * * ? *)", (1500, 3000)),
        ("cron(0 23 * * ? *)", (50, 500)),
    ]
    assert table.steps("read", TABLE) == []


def test_a_step_applies_to_indexes_unless_they_have_bounds_of_their_own() -> None:
    table = provisioned(
        indexes={"GSI2": {"max_write_units": 100}, "GSI3": {"max_write_units": 100}},
        schedule=[{**EVENING, "indexes": {"GSI3": {"min_write_units": 80}}}],
    )

    found = {name: [tuple(bounds) for _, bounds in table.steps("write", name)] for name in RESOURCES}

    assert found == {TABLE: [(1500, 3000)], "GSI1": [(1500, 3000)], "GSI2": [], "GSI3": [(80, 100)]}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"mode": "auto"}, "environments.dev.table.mode: Input should be 'on_demand' or 'provisioned'"),
        (
            {"min_write_units": 5, "schedule": [EVENING]},
            'dev.table: min_write_units, schedule: only for provisioned capacity. Remove it, or add "mode"',
        ),
        (
            {"mode": "provisioned", "max_read_units": 1, "max_write_units": 1},
            "environments.dev.table: provisioned capacity needs min_read_units and min_write_units: the least and",
        ),
        ({**BOUNDS, "min_write_units": 2001}, "environments.dev.table: min_write_units 2001 is above max_write_units"),
        ({**BOUNDS, "min_read_units": 0}, "environments.dev.table.min_read_units: Input should be greater than or"),
        ({**BOUNDS, "target_percent": 19}, "environments.dev.table.target_percent: Input should be greater than or"),
        ({**BOUNDS, "target_percent": 91}, "environments.dev.table.target_percent: Input should be less than or"),
        (
            {**BOUNDS, "start_write_units": 49},
            "start_write_units 49 must be between min_write_units 50 and max_write_units 2000",
        ),
        ({**BOUNDS, "indexes": {"GSI4": {}}}, "there is no index GSI4; there are GSI1, GSI2, GSI3"),
        (
            {**BOUNDS, "indexes": {"GSI1": {"max_write_units": 10}}},
            "environments.dev.table: indexes.GSI1: min_write_units 50 is above max_write_units 10",
        ),
        ({**BOUNDS, "indexes": {"GSI1": {"max": 10}}}, "table.indexes.GSI1.max: there is no such setting"),
        ({**BOUNDS, "time_zone": "Europe/Berlin"}, "time_zone has no effect without a schedule"),
        ({**BOUNDS, "time_zone": "CET5", "schedule": [EVENING]}, "environments.dev.table.time_zone: 'CET5' is not a"),
        ({**BOUNDS, "schedule": [{"at": "17.00"}]}, "environments.dev.table.schedule.0.at: '17.00' is not a time"),
        ({**BOUNDS, "schedule": [{"at": "17:00"}]}, "schedule.0: names no units; write what changes"),
        ({**BOUNDS, "schedule": [{"min_write_units": 60}]}, "environments.dev.table.schedule.0.at: is required"),
        (
            {**BOUNDS, "schedule": [EVENING, {"at": "cron(0 17 * * ? *)", "min_read_units": 200}]},
            "schedule.1: is at the time of schedule.0 too (cron(0 17 * * ? *)); join both steps",
        ),
        (
            {**BOUNDS, "schedule": [{"at": "17:00", "min_write_units": 2500}]},
            "schedule.0: min_write_units 2500 is above max_write_units 2000; lower the one or raise the other",
        ),
        (
            {
                **BOUNDS,
                "schedule": [{"at": "17:00", "min_read_units": 200, "indexes": {"GSI2": {"max_write_units": 7}}}],
            },
            "schedule.0: for GSI2, min_write_units 50 is above max_write_units 7",
        ),
        (
            {**BOUNDS, "schedule": [{"at": f"{n:02}:{n:02}", "min_read_units": 200} for n in range(24)] + [EVENING]},
            "environments.dev.table.schedule: Tuple should have at most 24 items",
        ),
    ],
)
def test_a_wrong_capacity_is_refused_in_one_line_that_names_it(table: dict[str, Any], message: str) -> None:
    mode = {} if table.keys().isdisjoint(BOUNDS.keys() - {"min_write_units"}) else {"mode": "provisioned"}

    with pytest.raises(SettingsError) as caught:
        load({"dev": {"purpose": "development", "auth": SIGN_IN, "table": {**mode, **table}}}, "dev")

    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_provisioned_way_to_pre_warm_is_refused_for_a_provisioned_table() -> None:
    prewarm = {"way": "provisioned", "write_units": 1000, "ceiling_write_units": 1000}
    given = {"purpose": "development", "auth": SIGN_IN, "table": {"mode": "provisioned", **BOUNDS}}

    with pytest.raises(SettingsError, match=r"set prewarm\.way to native, which warms the table in either mode"):
        load({"dev": {**given, "prewarm": prewarm}}, "dev")

    assert load({"dev": {**given, "prewarm": {**prewarm, "way": "native"}}}, "dev").table.provisioned
