"""A generator of another project makes a Python client from the OpenAPI document, and the local stack serves it."""

import json
from pathlib import Path

import pytest

from tests.e2e.local_process import LocalProcess
from tests.typescript import ROOT, run

pytestmark = [pytest.mark.e2e, pytest.mark.deep]

TOOLS = ROOT / ".venv-clients" / "bin"


def test_a_generated_python_client_has_every_operation_and_creates_lists_and_patches(
    local_stack: LocalProcess, tmp_path: Path
) -> None:
    place = tmp_path / "generated"
    document = ROOT / "docs" / "openapi.json"
    token = local_stack.client(None).post("/local/tokens", json={"tenant_id": "generated"}).json()["token"]

    printed = run(
        TOOLS / "openapi-python-client",
        *("generate", "--path", document, "--output-path", place, "--meta", "none"),
        environment={"PATH": str(TOOLS)},
    )
    used = json.loads(
        run(TOOLS / "python", Path(__file__).parent / "generated_use.py", tmp_path, local_stack.url, token)
    )

    paths = json.loads(document.read_text())["paths"].values()
    operations = [each["operationId"] for path in paths for method, each in path.items() if method != "parameters"]
    modules = [path for path in place.glob("api/*/*.py") if path.name != "__init__.py"]
    assert "WARNING" not in printed
    assert len(modules) == len(operations)
    assert used == {"created": "Ada", "listed": [True], "patched": "engines", "type": "User"}
