"""The checks of `dynashard verify-aws` whose answers the local engine gives as AWS does."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.config import Config
from botocore.session import get_session

from dynashard_checks.verify_aws.check import Check, Verdict
from dynashard_checks.verify_aws.checks import CHECKS, api, items, queues, streams
from dynashard_checks.verify_aws.context import Clock, Context
from dynashard_checks.verify_aws.environment import Environment
from dynashard_checks.verify_aws.scratch import PREFIX, Scratch

pytestmark = pytest.mark.engine

ELSEWHERE = frozenset(check.name for check in (*api.CHECKS, *queues.CHECKS))
"""Checks of services that this engine does not have; tests of a whole deployment run them."""
ON_ENGINE = [check for check in CHECKS if check.local and check.name not in ELSEWHERE]


class EngineClients:
    """Clients of the engine; other services do not answer."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._clients: dict[str, Any] = {}

    def __call__(self, service: str, *, retries: bool = True) -> Any:
        assert isinstance(retries, bool)
        if service not in self._clients:
            self._clients[service] = get_session().create_client(
                service,
                region_name="us-east-1",
                endpoint_url=self._url,
                aws_access_key_id="any",
                aws_secret_access_key="any",  # noqa: S106 - of a local engine
                config=Config(parameter_validation=False, max_pool_connections=64),
            )
        return self._clients[service]


@pytest.fixture
def context(engine_url: str) -> Iterator[Context]:
    clients, clock = EngineClients(engine_url), Clock(sleep=lambda _seconds: None)
    scratch = Scratch(clients, "engine", clock.now, clock.sleep)

    def no_outputs(stack: str) -> dict[str, str]:
        raise AssertionError(f"{stack} is not deployed")

    yield Context(clients, scratch, Environment("dev", no_outputs), clock)
    assert scratch.remove_all() == []
    names = clients("dynamodb").list_tables()["TableNames"]
    assert [name for name in names if name.startswith(PREFIX)] == []


@pytest.mark.parametrize("check", ON_ENGINE, ids=lambda check: check.name)
def test_a_fact_holds_on_the_engine(check: Check, context: Context) -> None:
    outcome = check.run(context)

    assert outcome.verdict is Verdict.HOLDS, outcome.seen


def test_an_expired_item_that_stays_shows_nothing(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_EXPIRY_SECONDS", 0)

    outcome = streams.expired(context)

    assert outcome.verdict is Verdict.UNCLEAR
    assert "was not deleted" in outcome.seen


def test_an_expired_item_that_somebody_else_deletes_is_a_difference(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = streams.records

    def deleting(context: Context, table: str, **options: Any) -> Any:
        context.client("dynamodb").delete_item(TableName=table, Key=items.key("expired"))
        return records(context, table, **options)

    monkeypatch.setattr(streams, "records", deleting)

    outcome = streams.expired(context)

    assert outcome.verdict is Verdict.DIFFERS
    assert "principal is None" in outcome.seen
