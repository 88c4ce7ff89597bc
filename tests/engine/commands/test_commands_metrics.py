"""Refusals of direct invocation that an alarm watches are counted, and nothing else is."""

import json
from typing import Any

import pytest

from dynashard_serving.commands.handler import write_metrics

pytestmark = pytest.mark.engine


def refused(code: str) -> dict[str, Any]:
    return {"ok": False, "error": {"code": code, "message": ""}}


@pytest.mark.parametrize(("code", "name"), [("outcome_unknown", "OutcomeUnknown"), ("overloaded", "Shed")])
def test_an_unknown_outcome_and_a_shed_request_are_counted(
    code: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_metrics("dev", refused(code))

    line = json.loads(capsys.readouterr().out)
    assert (line[name], line["environment"]) == ([1.0], "dev")
    assert line["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["environment"]]


@pytest.mark.parametrize(
    ("environment", "answer"),
    [("dev", {"ok": True, "result": None}), ("dev", refused("not_found")), ("local", refused("overloaded"))],
)
def test_other_answers_and_local_ones_are_not_counted(
    environment: str, answer: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    write_metrics(environment, answer)

    assert capsys.readouterr().out == ""
