"""The writer's log, as its function writes it."""

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dynashard.transport import Transport
from dynashard_local.workers.queue_worker import poll
from tests.api_caller import a_user
from tests.engine.api.api_on_engine import TOPOLOGY
from tests.engine.raw_dynamodb import RawDynamoDB
from tests.engine.writer.queue_world import OPERATIONS, QueueWorld
from tests.infra.templates import ROOT
from tests.waiting import HANG_SECONDS

pytestmark = pytest.mark.engine

PROGRAM = """
import json, sys
from dynashard_serving.writer import handler as writer
answer = writer.handler(json.load(sys.stdin), None)
assert answer == {"batchItemFailures": []}, answer
"""


def lines(event: Mapping[str, Any], table: str, engine_url: str, **variables: str) -> list[dict[str, Any]]:
    """Return the lines of the function's log about a batch, without those of metrics."""
    queues = ("QUEUE", "OPERATIONS_QUEUE", "QUEUE_DEAD_LETTERS", "OPERATIONS_QUEUE_DEAD_LETTERS")
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env={
            "TABLE_NAME": table,
            "TOPOLOGY_TABLE": TOPOLOGY,
            "DYNAMODB_ENDPOINT": engine_url,
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            **{f"{name}_URL": f"http://127.0.0.1:1/{name}" for name in queues},
            **variables,
        },
        input=json.dumps(event),
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return [line for text in done.stdout.splitlines() if "_aws" not in (line := json.loads(text))]


def test_a_write_that_is_given_up_without_a_mistake_of_its_caller_is_logged_at_every_level(
    transport: Transport, table: str, tmp_path: Path, dynamodb: RawDynamoDB, engine_url: str
) -> None:
    world = QueueWorld(transport, table, tmp_path)
    # The function has the clock of this machine, and records of operations expire.
    world.clock.now = time.time()
    world.caller.post("/v1/users", a_user(id="1"))
    [row] = [each for each in dynamodb.call("Scan", TableName=table)["Items"] if each["SK"]["S"] == "1"]
    dynamodb.call("PutItem", TableName=table, Item={**row, "display_name": {"BOOL": True}})
    world.caller.patch("/v1/users/1", {"department": "new"}, headers={"prefer": "respond-async"})
    world.caller.patch("/v1/users/2", {"department": "new"}, headers={"prefer": "respond-async"})
    logged: list[dict[str, Any]] = []

    def handle(event: Mapping[str, Any], _context: Any) -> Mapping[str, Any]:
        logged.extend(lines(event, table, engine_url, LOG_LEVEL="WARNING", LOG_ITEM_KEYS="false"))
        return {"batchItemFailures": []}

    assert poll(world.store, OPERATIONS, handle, world.clock) == 2

    [line] = logged
    assert (line["level"], line["message"], line["code"]) == ("WARNING", "write", "undecodable_item")
    assert line["error"].startswith("UndecodableItemError: ")
    assert "item" not in line
