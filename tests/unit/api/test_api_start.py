"""The start of the function: imports, settings, and the first event."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.waiting import HANG_SECONDS

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[3]
LATE = (
    "boto3",
    "botocore.session",
    "botocore.client",
    "aws_lambda_powertools",
    "aws_xray_sdk",
    "dynashard_serving.api.openapi",
    "dynashard_serving.api.item_writes",
    "httpx",
)
"""Modules that a first read does not need."""


def _in_a_new_process(program: str, environment: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=environment or {},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_import_reads_no_environment_and_loads_no_heavy_packages() -> None:
    program = f"import sys, dynashard_serving.api.handler; print([name for name in {LATE} if name in sys.modules])"

    assert _in_a_new_process(program).strip() == "[]"


def test_the_first_event_builds_the_api_once_and_a_missing_setting_is_named() -> None:
    program = (
        "from dynashard_serving.api.handler import handler\n"
        "try:\n"
        "    handler({}, None)\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error)\n"
    )

    assert _in_a_new_process(program).startswith("ConfigurationError TABLE_NAME is not set")


def test_handler_answers_events_with_the_settings_of_its_environment() -> None:
    program = (
        "import os, json\n"
        "os.environ.update(TABLE_NAME='t', TOPOLOGY_TABLE='u', IDEMPOTENCY_TABLE='v', ENVIRONMENT='prod',\n"
        "                  CURSOR_SECRET_ARN='arn:aws:secretsmanager:eu-west-1:123456789012:secret:x')\n"
        "from dynashard_serving.api.handler import handler\n"
        "event = json.load(open('tests/events/health.json'))\n"
        "first, second = handler(event, None), handler(event, None)\n"
        "assert first == second, (first, second)\n"
        "event['rawPath'] = '/v1/docs'\n"
        "print(first['statusCode'], handler(event, None)['statusCode'])\n"
    )

    assert _in_a_new_process(program).splitlines()[-1] == "200 404"


def test_an_entity_that_cannot_be_served_ends_the_function_of_a_checkout_at_its_start(tmp_path: Path) -> None:
    (tmp_path / "domain.py").write_text(
        "from dynashard import Entity, Key\n"
        "from dynashard_serving.declare import serve\n"
        "@serve(path='users', filters=('colour',))\n"
        "class User(Entity, name='user.v1.User', key=Key('{tenant_id}', '{id}')):\n"
        "    tenant_id: str\n"
        "    id: str\n"
    )
    program = "try:\n    import dynashard_serving.api.handler\nexcept Exception as error:\n    print(error)\n"

    refused = _in_a_new_process(program, {"PYTHONPATH": str(tmp_path)})

    assert refused.startswith("user.v1.User: cannot be exposed as /users: filters names 'colour'")


GROWTH = ("dynashard.resharding", "dynashard_serving.table_load", "botocore.session", "botocore.client")
"""Modules that only a throttle needs."""


def test_growth_is_loaded_at_the_first_throttle() -> None:
    program = (
        "import json, sys\n"
        "from dynashard.errors import EngineUnavailableError\n"
        "from dynashard_serving.api import handler\n"
        "from dynashard_serving.api.app import build_app\n"
        "from dynashard_serving.api.settings import Settings\n"
        "class Wire:\n"
        "    hot = False\n"
        "    def call(self, operation, request, *, resend=None):\n"
        "        if operation == 'GetItem' and self.hot:\n"
        "            from dynashard.testing.faults import throttled\n"
        "            throttled(operation).strike(dict, request)\n"
        "        if operation == 'BatchGetItem':\n"
        "            keys = request['RequestItems']['u']['Keys']\n"
        "            items = [{**key, 'number_of_shards': {'N': '1'}} for key in keys]\n"
        "            return {'Responses': {'u': items}}\n"
        "        raise EngineUnavailableError('down', operation=operation)\n"
        "    def call_all(self, calls, *, concurrency=16):\n"
        "        return [self.call(call.operation, call.request) for call in calls]\n"
        "    def close(self): pass\n"
        "wire = Wire()\n"
        "settings = Settings(table='t', topology_table='u', idempotency_table='v', cursor_keys=('k' * 16,))\n"
        "app = build_app(settings, wire)\n"
        "event = json.load(open('tests/events/health.json'))\n"
        "served = app.handle(event)['statusCode']\n"
        "missing = app.handle(json.load(open('tests/events/get_user.json')))['statusCode']\n"
        f"loaded = [name for name in {GROWTH} if name in sys.modules]\n"
        "wire.hot = True\n"
        "refused = app.handle(json.load(open('tests/events/get_user.json')))['statusCode']\n"
        f"print(served, missing, loaded, refused, [name for name in {GROWTH} if name in sys.modules])\n"
    )

    said = _in_a_new_process(program).splitlines()[-1]

    assert said == "200 503 [] 429 ['dynashard.resharding', 'dynashard_serving.table_load']"


def test_imports_are_not_searched_for_cycles_and_the_collector_works_afterwards() -> None:
    program = "import gc, dynashard_serving.api.handler; print(gc.isenabled(), gc.get_freeze_count() > 10_000)"

    assert _in_a_new_process(program).strip() == "True True"


SNAPSHOT = """
import os, random, stat, threading
from domain.samples.users import User
import dynashard_serving.api.handler as function

def is_socket(descriptor):
    try:
        return stat.S_ISSOCK(os.fstat(descriptor).st_mode)
    except OSError:
        return False

print(threading.active_count(), [number for number in range(256) if is_socket(number)], flush=True)
for _ in range(2):
    if not (child := os.fork()):
        function.handler({}, None)
        user = User(tenant_id="abc", email="ada@example.com", display_name="Ada")
        print(random.random(), random.random(), user.id, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def test_environments_from_one_snapshot_share_no_thread_connection_random_number_or_id() -> None:
    variables = {
        "TABLE_NAME": "items",
        "TOPOLOGY_TABLE": "topology",
        "IDEMPOTENCY_TABLE": "idempotency",
        "CURSOR_KEYS": '["a-key-of-16-bytes"]',
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
    }

    imported, one, other = _in_a_new_process(SNAPSHOT, variables).splitlines()

    assert imported == "1 []"
    assert not set(one.split()) & set(other.split())


@pytest.mark.parametrize(("disabled", "loaded"), [(None, "False"), ("another", "True")])
def test_plugins_of_pydantic_are_not_looked_for_unless_the_setting_names_some(
    disabled: str | None, loaded: str, tmp_path: Path
) -> None:
    (tmp_path / "a_plugin.py").write_text("def new_schema_validator(*_, **__):\n    return None, None, None\n")
    about = tmp_path / "a_plugin-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: a-plugin\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[pydantic]\nmine = a_plugin\n")
    program = "import sys, dynashard_serving.api.handler, domain.samples.users; print('a_plugin' in sys.modules)"
    environment = {"PYTHONPATH": str(tmp_path)}
    if disabled is not None:
        environment["PYDANTIC_DISABLE_PLUGINS"] = disabled

    assert _in_a_new_process(program, environment).strip() == loaded


REPLACED = """
import sys
from importlib import import_module
import dynashard_serving.api.handler, domain.samples.users

replaced = sys.modules.pop("pydantic.plugin._loader")
print(hasattr(replaced, "__file__"), "importlib.metadata" in sys.modules)
search = import_module("pydantic.plugin._loader")
print(list(search.get_plugins()), "importlib.metadata" in sys.modules)
"""


def test_what_is_replaced_is_the_module_with_which_pydantic_looks_for_plugins() -> None:
    without, with_it = _in_a_new_process(REPLACED).splitlines()

    assert without == "False False"
    assert with_it == "[] True"
