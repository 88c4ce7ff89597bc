"""Refusals of direct invocation that an alarm watches are counted, and nothing else is."""

import json
from typing import Any

import pytest

from dynashard_serving.commands.handler import metrics

pytestmark = pytest.mark.engine


def refused(code: str) -> dict[str, Any]:
    return {"ok": False, "error": {"code": code, "message": ""}}


@pytest.mark.parametrize(("code", "name"), [("outcome_unknown", "OutcomeUnknown"), ("overloaded", "Shed")])
def test_an_unknown_outcome_and_a_shed_request_are_counted(code: str, name: str) -> None:
    line = json.loads(metrics("dev", refused(code), 1.0) or "")

    assert (line[name], line["environment"]) == (1, "dev")
    assert line["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["environment"]]


@pytest.mark.parametrize(
    ("environment", "answer"),
    [("dev", {"ok": True, "result": None}), ("dev", refused("not_found")), ("local", refused("overloaded"))],
)
def test_other_answers_and_local_ones_are_not_counted(environment: str, answer: dict[str, Any]) -> None:
    assert metrics(environment, answer, 1.0) is None
