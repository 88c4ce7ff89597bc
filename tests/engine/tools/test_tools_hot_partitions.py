"""`dynashard hot` on a backend: from what CloudWatch reports to a command that can be typed, and works."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from domain.samples.users import User
from dynashard import definition
from dynashard.resharding import Scope
from dynashard_tools.connection import open_backend
from dynashard_tools.hot.throttles import CAUSES, SLOTS, WAYS
from tests.engine.tools.reshard_world import ReshardWorld, reshard_world

pytestmark = pytest.mark.engine

TENANT = "abc"


@pytest.fixture
def world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[ReshardWorld]:
    with reshard_world(tmp_path, monkeypatch, capsys) as made:
        made.layer().collection(User).batch_write(
            put=[User(tenant_id=TENANT, id=f"u{n}", email=f"u{n}@example.com", display_name="U") for n in range(9)]
        )
        yield made


class Aws:
    """What DynamoDB and CloudWatch answer while sixteen shards of a tenant are throttled."""

    def __init__(self, *, status: str = "ENABLED") -> None:
        self.status = status

    def describe_contributor_insights(self, *, IndexName: str = "", **_: Any) -> dict[str, Any]:  # noqa: N803 - AWS's
        rules = [] if IndexName else ["DynamoDBContributorInsights-PKT-t-1", "DynamoDBContributorInsights-SKT-t-1"]
        return {"ContributorInsightsStatus": self.status, "ContributorInsightsRuleList": rules}

    def get_insight_rule_report(self, *, RuleName: str, **_: Any) -> dict[str, Any]:  # noqa: N803 - AWS's name
        sort = [["u1"]] if "-SKT-" in RuleName else [[]]
        keys = [[f"user.v1.User:{TENANT}:{shard}", *more] for shard in range(16) for more in sort]
        return {"Contributors": [{"Keys": each, "ApproximateAggregateValue": 100.0 - len(each)} for each in keys]}

    def get_metric_data(self, *, MetricDataQueries: list[Any], **_: Any) -> dict[str, Any]:  # noqa: N803 - AWS's name
        wanted = [(slot, way, cause) for slot in SLOTS for way in WAYS for cause in CAUSES]
        hot = wanted.index((None, "Write", "KeyRangeThroughput"))
        return {
            "MetricDataResults": [
                {"Id": each["Id"], "Values": [1584.0] if number == hot else [], "StatusCode": "Complete"}
                for number, each in enumerate(MetricDataQueries)
            ]
        }


@dataclass(frozen=True)
class Place:
    """A deployed environment, all of whose services answer as one."""

    aws: Aws

    def client(self, _: str) -> Aws:
        return self.aws


@pytest.fixture
def deployed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `--env dev` mean the engine of the test, with the answers of `Aws`."""
    monkeypatch.setattr("dynashard_tools.hot.command.open_backend", lambda _: open_backend(None))
    monkeypatch.setattr("dynashard_tools.hot.command.environment_named", lambda _: Place(Aws()))


@pytest.mark.usefixtures("deployed")
def test_the_printed_command_is_the_remedy(world: ReshardWorld) -> None:
    hot = world.run("hot", "--env", "dev")
    [command] = [line.strip() for line in hot.out.splitlines() if line.startswith("    dynashard ")]
    begun = world.run(*command.removesuffix(" --env dev").split()[1:])
    growing = world.run("hot", "--env", "dev", "--json").summary

    assert hot.status == begun.status == 0
    assert hot.out.splitlines() == [
        "throttles in the last 15 minutes:",
        "  table writes: 1,584, hot key range (docs/runbooks/throttled-key.md)",
        f"user.v1.User {TENANT}: 1,584 throttles on 16 of 16 shards; it has too few shards for its traffic",
        f"    dynashard reshard start users {TENANT} --to 32 --env dev",
    ]
    [found] = growing["hot"]
    assert found["cause"] == "it is growing from 16 to 32 shards (pending)"
    assert found["command"] == f"dynashard reshard status users {TENANT} --watch --env dev"


@pytest.mark.usefixtures("deployed")
def test_without_contributor_insights_the_throttles_are_shown_and_the_command_fails(
    world: ReshardWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dynashard_tools.hot.command.environment_named", lambda _: Place(Aws(status="DISABLED")))

    ended = world.run("hot", "--env", "dev")

    assert ended.status == 1
    assert "table writes: 1,584, hot key range" in ended.out
    assert "contributor insights of" in ended.err


def test_the_local_stack_shows_what_changes(world: ReshardWorld) -> None:
    still = world.run("hot")
    world.run("reshard", "start", "users", TENANT, "--to", "32")
    changing = partial(world.run, "hot", "--json")()

    assert still.out.splitlines()[-1] == "no shard count is changing"
    assert [each["target"] for each in json.loads(changing.out)["changing"]] == [32]


def test_the_local_stack_shows_what_has_grown_because_of_throttles(world: ReshardWorld) -> None:
    scope = Scope(definition(User), f"user.v1.User:{TENANT}")
    world.resharder().start(scope, 32, cause="throttle", survey=False)
    world.bring_to(scope, "stable")

    shown = world.run("hot").out.splitlines()

    assert shown[1] == "no shard count is changing"
    assert shown[2].startswith(f"user.v1.User {TENANT}: 32 shards; stable")
    assert shown[2].endswith("Z because of throttles")


def test_the_local_stack_shows_no_growth_that_was_taken_back(world: ReshardWorld) -> None:
    scope = Scope(definition(User), f"user.v1.User:{TENANT}")
    world.resharder().start(scope, 32, cause="throttle", survey=False)
    world.resharder().abort(scope)

    shown = world.run("hot").out.splitlines()

    assert shown[1:] == ["no shard count is changing"]
