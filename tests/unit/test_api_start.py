"""What the function's start costs and does."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
LATE = (
    "boto3",
    "botocore.session",
    "botocore.client",
    "aws_lambda_powertools.utilities.idempotency",
    "aws_lambda_powertools.event_handler.openapi.models",
    "aws_xray_sdk",
    "functions.api.openapi",
    "functions.api.schemas",
    "httpx",
)
"""Nothing that a first read needs."""


def _in_a_new_process(program: str) -> str:
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", program], cwd=ROOT, env={}, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_reads_no_environment_and_leaves_heavy_packages_for_later() -> None:
    program = f"import sys, functions.api.handler; print([name for name in {LATE} if name in sys.modules])"

    assert _in_a_new_process(program).strip() == "[]"


def test_first_event_builds_the_api_once_and_a_missing_setting_is_named() -> None:
    program = (
        "from functions.api.handler import handler\n"
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
        "from functions.api.handler import handler\n"
        "event = json.load(open('tests/events/health.json'))\n"
        "first, second = handler(event, None), handler(event, None)\n"
        "assert first == second, (first, second)\n"
        "event['rawPath'] = '/v1/docs'\n"
        "print(first['statusCode'], handler(event, None)['statusCode'])\n"
    )

    assert _in_a_new_process(program).splitlines()[-1] == "200 404"
