"""Schemathesis finds no answer that the OpenAPI document does not describe."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.served import ServedApi, served_api
from tests.depth import profile
from tests.engine.api.api_on_engine import engine_transport, idempotency_table
from tests.engine.raw_dynamodb import RawDynamoDB

pytestmark = pytest.mark.engine

ROOT = Path(__file__).parents[3]
COMMITTED = ROOT / "docs" / "openapi.json"
CONFORMANCE = ROOT / "tests" / "conformance"
DEEP = profile() == "deep"
EXAMPLES = 14 if DEEP else 1
"""Requests of each kind for each operation: more than 10,000 in all with the profile `deep`."""
PHASES = "examples,coverage,fuzzing" if DEEP else "fuzzing"
"""By default the linters of the document alone compare its examples with its schemas."""
SEED = "1"


@pytest.fixture
def api(engine_url: str, dynamodb: RawDynamoDB, local_table: str, tmp_path: Path) -> Iterator[ServedApi]:
    with (
        engine_transport(engine_url) as transport,
        idempotency_table(dynamodb) as idempotency,
        served_api(transport, local_table, idempotency, tmp_path) as served,
    ):
        yield served


def run_schemathesis(api: ServedApi, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run every check of Schemathesis over every operation."""
    return subprocess.run(  # noqa: S603 - the project's own tool
        [
            *(Path(sys.executable).with_name("schemathesis"), "--config-file", CONFORMANCE / "schemathesis.toml"),
            *("run", f"{api.url}/v1/openapi.json", "--header", f"Authorization: Bearer {api.token}"),
            *("--checks", "all", "--phases", PHASES, "--max-examples", str(EXAMPLES), "--seed", SEED),
            *("--continue-on-failure", "--no-color", "--warnings", "off", "--request-timeout", "60"),
            # Its own limit of 10 s would report a busy machine.
            *("--max-response-time", "60"),
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT), "SCHEMATHESIS_HOOKS": "tests.conformance.coherent"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def operations_of(document: Path) -> int:
    paths = json.loads(document.read_text())["paths"].values()
    return sum(method != "parameters" for methods in paths for method in methods)


@pytest.mark.timeout(3600)
def test_schemathesis_finds_no_violation(api: ServedApi, tmp_path: Path) -> None:
    run = run_schemathesis(api, tmp_path)

    assert run.returncode == 0, run.stdout + run.stderr
    counted = re.search(r"Tested: (\d+)", run.stdout)
    assert counted is not None
    assert int(counted[1]) == operations_of(COMMITTED)
    assert api.faults == []
