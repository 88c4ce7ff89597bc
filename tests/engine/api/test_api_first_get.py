"""A new function answers its first GET without what the GET does not need; see docs/cold-starts.md."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from domain.samples.users import User
from dynashard import Collection
from tests.domain_served import bundle_in
from tests.waiting import HANG_SECONDS

pytestmark = pytest.mark.engine

ROOT = Path(__file__).parents[3]
OWN = ("dynashard", "dynashard_patterns", "dynashard_serving", "domain", "functions")
MOST_OWN = 150
"""How many modules of ours the first GET may import."""
MOST = 357
"""How many modules it may import in all, the interpreter's own included."""
UNNEEDED = (
    "asyncio", "aws_lambda_powertools", "aws_xray_sdk", "boto3", "botocore", "concurrent.futures", "difflib",
    "dynashard_patterns", "dynashard.reads.listing", "dynashard.transactions.steps", "dynashard.resharding",
    "dynashard.growth.policy", "dynashard_serving.idempotency", "encodings.idna", "dynashard_serving.api.item_writes",
    "dynashard_serving.discovery", "dynashard.entity.tolerance",
    "dynashard_serving.api.listings", "dynashard_serving.api.openapi", "gzip", "httpx",
    "itsdangerous",
    "logging", "pydantic.type_adapter", "requests", "unicodedata", "urllib3",
)  # fmt: skip
PROGRAM = """
import json, sys
from dynashard_serving.api.handler import handler

answer = handler(json.load(sys.stdin), None)
print(json.dumps([answer["statusCode"], answer["body"], sorted(sys.modules)]))
"""


def modules_of_a_first_get(environ: dict[str, str], identity: str, tenant: str) -> list[str]:
    """Return the modules that a new process has imported after it answered a GET of a user."""
    event = json.loads((ROOT / "tests/events/get_user.json").read_text("utf-8"))
    event["rawPath"] = event["requestContext"]["http"]["path"] = f"/v1/users/{identity}"
    event["requestContext"]["authorizer"]["jwt"]["claims"]["tenant_id"] = tenant
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env=environ,
        input=json.dumps(event),
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    status, body, modules = json.loads(done.stdout.splitlines()[-1])
    assert (status, json.loads(body)["id"]) == (200, identity)
    found: list[str] = modules
    return found


def test_a_first_get_imports_what_it_needs(  # noqa: PLR0917 - a process of its own needs all places
    users: Collection[User], engine_url: str, local_table: str, topology_table: str, tenant: str, tmp_path: Path
) -> None:
    user = users.create(User(tenant_id=tenant, email="ada@example.com", display_name="Ada"))
    environ = {
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_REGION": "eu-west-1",
        "CURSOR_KEYS": '["a-key-of-16-bytes"]',
        "DYNAMODB_ENDPOINT": engine_url,
        "IDEMPOTENCY_TABLE": "unused",
        "PYTHONPATH": str(bundle_in(tmp_path)),
        "TABLE_NAME": local_table,
        "TOPOLOGY_TABLE": topology_table,
        **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
    }

    modules = modules_of_a_first_get(environ, user.id, tenant)

    assert [name for name in modules if name in UNNEEDED] == []
    samples = ["domain.samples", "domain.samples.fields", "domain.samples.users"]
    assert [name for name in modules if name.startswith("domain")] == ["domain", *samples]
    own = [name for name in modules if name.split(".")[0] in OWN]
    assert len(own) <= MOST_OWN, (len(own), len(modules), own)
    assert len(modules) <= MOST, modules
