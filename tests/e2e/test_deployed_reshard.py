"""A shard count changes in a deployment, by a direct invocation, while users are written and read over HTTP."""

import json
from collections import Counter
from collections.abc import Iterator
from threading import Event, Thread
from time import monotonic
from typing import Any, Self

import httpx
import pytest

from dynashard import schema
from tests.e2e.deployment import Deployment
from tests.waiting import HANG_SECONDS

pytestmark = pytest.mark.e2e

TENANT = "resharded"
ASKED = {"entity": "users", "partition": {"tenant_id": TENANT}}
QUICK = {"TOPOLOGY_LEASE_SECONDS": "1", "TOPOLOGY_OPERATION_SECONDS": "2", "TOPOLOGY_SKEW_SECONDS": "0"}
"""A lease that makes waits of 3 seconds between phases. No request takes longer here."""


@pytest.fixture(scope="module")
def quick(deployment: Deployment) -> Iterator[Deployment]:
    """The deployment, with short leases in all of its functions for as long as these tests take."""
    client = deployment.aws.client("lambda")
    functions = [
        name for stack in ("Api", "Reshard") for name in deployment.resources(stack, "AWS::Lambda::Function").values()
    ]
    before = {name: client.get_function_configuration(FunctionName=name)["Environment"] for name in functions}
    for name, environment in before.items():
        changed = {"Variables": {**environment["Variables"], **QUICK}}
        deployment.configure(name, Environment=changed)
    yield deployment
    for name, environment in before.items():
        deployment.configure(name, Environment=environment)


def operate(deployment: Deployment, operation: str, **asked: Any) -> Any:
    """Invoke the operator's function."""
    function = deployment.outputs["Dynashard-dev-Reshard"]["OperatorFunction"]
    answer = deployment.aws.client("lambda").invoke(
        FunctionName=function, Payload=json.dumps({"operation": operation, **asked}).encode()
    )
    return json.loads(answer["Payload"].read())


def user(number: int) -> dict[str, str]:
    return {"id": f"{number:04}", "email": f"u{number}@example.com", "display_name": f"User {number}"}


def listed(client: httpx.Client) -> list[tuple[str, str]]:
    """Ids and names of all users, page by page."""
    found: list[tuple[str, str]] = []
    cursor: dict[str, str] = {}
    while True:
        answer = client.get("/v1/users", params={"limit": "40", **cursor})
        assert answer.status_code == 200, answer.text
        found += [(item["id"], item["display_name"]) for item in answer.json()["items"]]
        if answer.json()["cursor"] is None:
            return found
        cursor = {"cursor": answer.json()["cursor"]}


class Traffic:
    """A client that creates, changes, reads and deletes until it is stopped."""

    def __init__(self, client: httpx.Client, first: int) -> None:
        self._client = client
        self._stop = Event()
        self._thread = Thread(target=self._work, args=(first,))
        self.living: list[str] = []
        self.troubles: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _work(self, number: int) -> None:
        # With pauses, so that the resize gets its share of the machine.
        while not self._stop.wait(2.0):
            number += 1
            name = user(number)["id"]
            if not self._answers(201, "POST", "/v1/users", json=user(number)):
                continue
            self.living.append(name)
            self._answers(200, "PATCH", f"/v1/users/{name}", json={"display_name": "Changed"})
            self._answers(200, "GET", f"/v1/users/{name}")
            if number % 4 == 0 and self._answers(204, "DELETE", f"/v1/users/{name}"):
                self.living.remove(name)

    def _answers(self, status: int, method: str, path: str, **request: Any) -> bool:
        answer = self._client.request(method, path, **request)
        if answer.status_code != status:
            self.troubles.append(f"{method} {path}: {answer.status_code} {answer.text}")
        return answer.status_code == status


def until_over(deployment: Deployment) -> dict[str, Any]:
    """Wait for the end of the resize, and return its status."""
    deadline, pause = monotonic() + HANG_SECONDS, Event()
    while True:
        status: dict[str, Any] = operate(deployment, "reshard.status", **ASKED)["result"]
        if status["stage"] == "stable" and status["target"] is None:
            return status
        assert not status["paused"], status
        assert monotonic() < deadline, (status, deployment.aws.log_tail())
        pause.wait(3.0)


def shards_in(deployment: Deployment) -> Counter[str]:
    """Return the tenant's users by shard, and the relocation markers."""
    pages = deployment.aws.client("dynamodb").get_paginator("scan").paginate(TableName=deployment.table)
    items = [item for page in pages for item in page["Items"] if f":{TENANT}" in item[schema.PK]["S"]]
    return Counter("marks" if schema.MOVED_TO in item else item[schema.PK]["S"].rpartition(":")[2] for item in items)


def test_a_count_changes_under_traffic_and_every_user_is_there_exactly_once(quick: Deployment) -> None:
    client = quick.tenant(TENANT)
    for number in range(24):
        assert client.post("/v1/users", json=user(number)).status_code == 201

    with Traffic(quick.tenant(TENANT), first=1000) as traffic:
        asked = operate(quick, "reshard.start", **ASKED, to=32, survey=False)
        status = until_over(quick)

    before = [(user(number)["id"], user(number)["display_name"]) for number in range(24)]
    assert asked["ok"], asked
    assert (asked["result"]["count"], asked["result"]["target"]) == (16, 32)
    assert traffic.troubles == []
    assert len(traffic.living) > 5
    assert (status["count"], status["swept"], status["error"]) == (32, True, None)
    assert sorted(listed(client)) == sorted([*before, *((name, "Changed") for name in traffic.living)])
    assert "marks" not in shards_in(quick)
    assert any(int(shard) >= 16 for shard in shards_in(quick))


def test_an_impossible_resize_is_refused_with_its_reason(quick: Deployment) -> None:
    odd = operate(quick, "reshard.start", **ASKED, to=24)
    unknown = operate(quick, "reshard.start", entity="people", partition=None, to=32)

    assert (odd["ok"], odd["error"]["code"], odd["error"]["details"]) == (
        False,
        "reshard_refused",
        {"reason": "not_power_of_two"},
    )
    assert (unknown["ok"], unknown["error"]["details"]) == (False, {"field": "entity"})


def test_one_execution_finished_the_resize(quick: Deployment) -> None:
    machine = quick.outputs["Dynashard-dev-Reshard"]["StateMachine"]
    executions = quick.aws.client("stepfunctions").list_executions(stateMachineArn=machine)["executions"]

    assert [execution["status"] for execution in executions] == ["SUCCEEDED"]
    assert executions[0]["name"].startswith(f"user-v1-User-{TENANT}-")
