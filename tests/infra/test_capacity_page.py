"""The examples of docs/capacity.md are settings that are accepted, and its plan is that of the simulator."""

import json
import re
import tomllib

import pytest

from dynashard_cdk.table_settings import RESOURCES, TABLE, ScheduleStep, TableSettings
from tests.markdown import ROOT, snippets

pytestmark = pytest.mark.infra

PAGE = ROOT / "docs/capacity.md"
EXAMPLES = [each.text for each in snippets(PAGE, PAGE.read_text("utf-8")) if each.language == "json"]
SCENARIO = tomllib.loads((ROOT / "packages/lab/dynashard_lab/simulate/scenarios/prime-time.toml").read_text("utf-8"))
DAILY = re.compile(r"cron\((\d+) (\d+) \* \* \? \*\)")


def tables() -> list[TableSettings]:
    """The settings that the page shows, in its order."""
    return [TableSettings.model_validate(json.loads(f"{{{text}}}")["table"]) for text in EXAMPLES if '"table"' in text]


def test_every_example_is_accepted() -> None:
    on_demand, tracked, prime_time = tables()

    assert not on_demand.provisioned
    assert not tracked.schedule
    assert prime_time.zone == "America/New_York"


def test_the_steps_of_a_pre_warm_are_accepted() -> None:
    (text,) = [text for text in EXAMPLES if '"table"' not in text]

    steps = [ScheduleStep.model_validate(each) for each in json.loads(f"[{text}]")]

    assert [step.at[:3] for step in steps] == ["at(", "at("]


def test_the_prime_time_plan_is_that_of_the_simulator() -> None:
    prime_time = tables()[-1]
    steps = prime_time.steps("write", TABLE)

    seconds = []
    for step, bounds in steps:
        assert bounds.lowest == bounds.highest
        at = DAILY.fullmatch(step.at)
        assert at is not None
        seconds.append([int(at[2]) * 3600 + int(at[1]) * 60, bounds.lowest])

    assert seconds == SCENARIO["variants"]["scheduled"]["table.schedule"]
    assert prime_time.bounds("write").highest == SCENARIO["table"]["write_units"]
    assert [name for name in RESOURCES if prime_time.steps("write", name)] == [TABLE]


def test_the_prime_time_plan_costs_37_percent_of_flat_capacity_at_the_peak() -> None:
    times = SCENARIO["variants"]["scheduled"]["table.schedule"]
    ends = [*(second for second, _ in times[1:]), 86_400]

    used = sum(units * (end - begin) for (begin, units), end in zip(times, ends, strict=True))

    assert round(used / (SCENARIO["table"]["write_units"] * 86_400), 2) == 0.37
