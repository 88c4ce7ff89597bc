"""What the local AWS does not know can be deployed to it, and what it knows is created."""

from typing import Any

import pytest

from dynashard_local.deploy.placeholders import ALARM, POOL, QUERY, add

pytestmark = pytest.mark.unit


def real(*_: Any, **_named: Any) -> tuple[str, dict[str, str]]:
    return "real", {"Arn": "arn"}


HANDLED = ("create", "update", "delete")


def pool(*_: Any, **_named: Any) -> tuple[str, dict[str, str]]:
    return "pool", {"ProviderName": "cognito-idp.us-east-1.amazonaws.com/pool"}


@pytest.fixture
def handlers() -> dict[str, dict[str, Any]]:
    made = {ALARM: {"create": real, "update": real, "delete": real}, POOL: dict.fromkeys(HANDLED, pool)}
    add(made)
    return made


def test_a_saved_query_is_deployed_updated_and_deleted_as_nothing(handlers: dict[str, dict[str, Any]]) -> None:
    query = handlers[QUERY]

    assert query["create"]("Query", {"QueryString": "fields @message"}, "Stack") == ("Stack-Query", {})
    assert query["update"]("Stack-Query", {}, {}, "Stack") == ("Stack-Query", {})
    assert query["delete"]("Stack-Query", {}) is None


def test_only_an_alarm_on_an_expression_is_nothing(handlers: dict[str, dict[str, Any]]) -> None:
    create = handlers[ALARM]["create"]

    assert create("Idle", {"AlarmName": "idle", "Metrics": [{"Id": "a"}]}, "Stack") == ("idle", {})
    assert create("Late", {"AlarmName": "late", "MetricName": "Age"}, "Stack") == real()
    assert handlers[ALARM]["update"]("idle", {}, {"Metrics": [{"Id": "a"}]}, "Stack") == ("idle", {})
    assert handlers[ALARM]["update"]("late", {}, {"MetricName": "Age"}, "Stack", logical_id="Late") == real()
    assert handlers[ALARM]["delete"] is real


@pytest.mark.parametrize("change", ["create", "update"])
def test_a_user_pool_has_its_url(handlers: dict[str, dict[str, Any]], change: str) -> None:
    made, attributes = handlers[POOL][change]("Pool", {}, "Stack", logical_id="Pool")

    assert (made, attributes) == (
        "pool",
        {**pool()[1], "ProviderURL": "https://cognito-idp.us-east-1.amazonaws.com/pool"},
    )
    assert handlers[POOL]["delete"] is pool
