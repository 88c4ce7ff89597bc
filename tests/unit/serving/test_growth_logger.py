"""Events of growth in Python's log: those for which somebody has to do something are warnings."""

import logging

import pytest

from dynashard.growth.logger import GrowthLogger
from dynashard.growth.terms import GrowthEvent, Report

pytestmark = pytest.mark.unit

ROUTINE = {"asked", "kept", "lost", "would_ask", "withdrawn"}


@pytest.mark.parametrize("event", GrowthEvent)
def test_only_events_that_need_somebody_are_warnings(event: GrowthEvent, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "dynashard.growth")

    GrowthLogger().grew(Report(event, "e.v1.E", "e.v1.E:abc", None, "a reason"))

    [line] = caplog.records
    assert (line.levelname, line.getMessage()) == ("INFO" if event in ROUTINE else "WARNING", f"{event}: a reason")


def test_an_error_of_the_policy_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    GrowthLogger().growth_failed(ValueError("a mistake"))

    assert (caplog.records[0].levelname, "ValueError: a mistake" in caplog.text) == ("ERROR", True)
