"""What functions load that serve requests over the direct transport: in a process of its own, on the engine."""

import json
import subprocess
import sys

import pytest

from domain.samples.users import User
from dynashard import Dynashard
from dynashard.transport import Transport
from tests.engine.api.api_on_engine import KEYS, TOPOLOGY
from tests.infra.templates import ROOT
from tests.waiting import HANG_SECONDS

pytestmark = pytest.mark.engine

PROGRAM = """
import json, sys
def sdk():
    return sorted(name for name in sys.modules if name.split(".")[0] in {"boto3", "botocore", "s3transfer", "urllib3"})
from dynashard_serving.api import handler as api
answer = api.handler(json.load(open("tests/events/get_user.json")), None)
of_api = sdk()
from dynashard_serving.changes import handler as changes
from dynashard_serving.commands import handler as commands
from dynashard_serving.reshard import handler as reshard
from dynashard_serving.writer import handler as writer
key = {"operation": "get", "entity": "users", "tenant_id": "abc", "key": {"id": "1"}}
invoked = commands.handler(key, None)
changes._dispatcher(), reshard._steps(), writer._writer()
print(json.dumps([invoked["ok"], answer["statusCode"], json.loads(answer["body"])["display_name"], of_api, sdk()]))
"""


def test_requests_are_served_without_the_sdk(transport: Transport, table: str, engine_url: str) -> None:
    db = Dynashard(transport, table=table, topology_table=TOPOLOGY, cursor_keys=KEYS)
    db.collection(User).put(User(tenant_id="abc", id="1", display_name="Ada", email="ada@example.com"))
    queues = ("QUEUE", "OPERATIONS_QUEUE", "QUEUE_DEAD_LETTERS", "OPERATIONS_QUEUE_DEAD_LETTERS")
    variables = {
        "TABLE_NAME": table,
        "TOPOLOGY_TABLE": TOPOLOGY,
        "IDEMPOTENCY_TABLE": "unused",
        "CURSOR_KEYS": json.dumps(KEYS),
        "ENVIRONMENT": "local",
        "DYNAMODB_ENDPOINT": engine_url,
        "DEAD_LETTER_QUEUE": "http://127.0.0.1:1/dead",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        **{f"{name}_URL": f"http://127.0.0.1:1/{name}" for name in queues},
    }

    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env=variables,
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_SECONDS,
    )

    # Powertools imports the package `botocore` itself, which takes 1 ms, and none of its modules.
    assert json.loads(done.stdout.splitlines()[-1]) == [True, 200, "Ada", [], ["botocore"]]
