"""Metrics carry the name of the environment, so that environments of one purpose in one account do not share alarms."""

import json
import subprocess
import sys
from typing import Any

import pytest

from domain.samples.users import User
from dynashard import Dynashard
from dynashard.transport import Transport
from tests.engine.api.api_on_engine import KEYS, TOPOLOGY
from tests.infra.templates import ROOT
from tests.waiting import HANG_SECONDS

pytestmark = pytest.mark.engine

PROGRAM = """
import json
from dynashard_serving.api import handler as api
from dynashard_serving.changes import handler as changes
from dynashard_serving.commands import handler as commands
from dynashard_serving.reshard import handler as reshard
from dynashard_serving.writer import handler as writer
api.handler(json.load(open("tests/events/get_user.json")), None)
commands.handler({"operation": "list", "entity": "users", "tenant_id": "abc"}, None)
changes.handler({"Records": []}, None)
writer.handler({"Records": []}, None)
reshard.watch({}, None)
"""


def metrics_with(variables: dict[str, str], table: str, engine_url: str) -> list[dict[str, Any]]:
    """Return the lines with metrics that the functions of this environment write about a run of each."""
    queues = ("QUEUE", "OPERATIONS_QUEUE", "QUEUE_DEAD_LETTERS", "OPERATIONS_QUEUE_DEAD_LETTERS")
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env={
            "TABLE_NAME": table,
            "TOPOLOGY_TABLE": TOPOLOGY,
            "IDEMPOTENCY_TABLE": "unused",
            "CURSOR_KEYS": json.dumps(KEYS),
            "DYNAMODB_ENDPOINT": engine_url,
            "DEAD_LETTER_QUEUE": "http://127.0.0.1:1/dead",
            "STATE_MACHINE_ARN": "arn:aws:states:us-east-1:111122223333:stateMachine:reshard",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            **{f"{name}_URL": f"http://127.0.0.1:1/{name}" for name in queues},
            **variables,
        },
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_SECONDS,
    )
    return [json.loads(line) for line in done.stdout.splitlines() if '"_aws"' in line]


@pytest.mark.parametrize(
    ("variables", "environment"),
    [({"ENVIRONMENT": "prod", "ENVIRONMENT_NAME": "stage"}, "stage"), ({"ENVIRONMENT": "prod"}, "prod")],
)
def test_every_function_writes_its_metrics_under_the_name_of_the_environment(
    variables: dict[str, str], environment: str, transport: Transport, table: str, engine_url: str
) -> None:
    db = Dynashard(transport, table=table, topology_table=TOPOLOGY, cursor_keys=KEYS)
    db.collection(User).put(User(tenant_id="abc", id="1", display_name="Ada", email="ada@example.com"))
    # Direct invocation counts errors alone.
    [item] = [each for each in transport.call("Scan", {"TableName": table})["Items"] if {"S": "Ada"} in each.values()]
    wrong = {name: {"BOOL": True} if value == {"S": "Ada"} else value for name, value in item.items()}
    transport.call("PutItem", {"TableName": table, "Item": wrong})

    written = metrics_with(variables, table, engine_url)

    directives = [made for each in written for made in each["_aws"]["CloudWatchMetrics"]]
    of_requests = {
        metric["Name"] for made in directives if "service" in made["Dimensions"][0] for metric in made["Metrics"]
    }
    others = {
        metric["Name"] for made in directives if "service" not in made["Dimensions"][0] for metric in made["Metrics"]
    }
    assert "Latency" in of_requests
    assert {"UndecodableItems", "ChangesHandled", "WriterStored", "ReshardsRunning"} <= others
    assert {each["environment"] for each in written} == {environment}
