"""Generators of other projects make clients from the OpenAPI document, and the local stack serves them."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.local_process import LocalProcess
from tests.typescript import BIN, ROOT, STRICTLY, run, types_of_document

pytestmark = [pytest.mark.e2e, pytest.mark.deep]

TOOLS = ROOT / ".venv-clients" / "bin"
DOCUMENT = ROOT / "docs" / "openapi.json"
HERE = Path(__file__).parent
WITHOUT_JSON_PATCH = '{"content_type_overrides": {"application/json-patch+json": "text/plain"}}'
"""The generator's configuration of docs/clients.md: what it makes for a body that is a list, Python refuses to run."""


def operations() -> list[str]:
    """Return the ids of the operations of the document."""
    paths: Any = json.loads(DOCUMENT.read_text())["paths"].values()
    return [each["operationId"] for path in paths for method, each in path.items() if method != "parameters"]


def token_of(stack: LocalProcess, tenant: str) -> str:
    return str(stack.client(None).post("/local/tokens", json={"tenant_id": tenant}).json()["token"])


def test_a_generated_python_client_has_every_operation_and_creates_lists_and_patches(
    local_stack: LocalProcess, tmp_path: Path
) -> None:
    place = tmp_path / "generated"
    token = token_of(local_stack, "generated")
    configuration = tmp_path / "generator.json"
    configuration.write_text(WITHOUT_JSON_PATCH)

    printed = run(
        TOOLS / "openapi-python-client",
        *("generate", "--path", DOCUMENT, "--config", configuration, "--output-path", place, "--meta", "none"),
        environment={"PATH": str(TOOLS)},
    )
    used = json.loads(run(TOOLS / "python", HERE / "generated_use.py", tmp_path, local_stack.url, token))

    modules = [path for path in place.glob("api/*/*.py") if path.name != "__init__.py"]
    assert "ERROR" not in printed
    assert printed.count("WARNING") == printed.count("Unsupported content type text/plain")
    assert len(modules) == len(operations())
    assert used == {
        "created": "Ada",
        "listed": [True],
        "patched": "engines",
        "type": "User",
        "read": "User",
        "part": {"type": "UserPart", "department": "engines"},
    }


def test_generated_typescript_types_have_every_operation_and_create_list_and_patch(
    local_stack: LocalProcess, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    types = tmp_path / "generated.ts"
    token = token_of(local_stack, "generated-typescript")
    (tmp_path / "node_modules").symlink_to(ROOT / "node_modules")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    shutil.copy(HERE / "generated_use.ts", tmp_path)
    shutil.copy(types_of_document(tmp_path_factory), types)

    run(BIN / "tsc", *STRICTLY, "generated_use.ts", cwd=tmp_path)
    used = json.loads(run("node", "generated_use.js", local_stack.url, token, cwd=tmp_path))

    _, _, described = types.read_text().partition("export interface operations {")
    assert sorted(re.findall(r"^    (\w+): \{$", described, re.MULTILINE)) == sorted(operations())
    assert used == {
        "created": "Ada",
        "listed": [True],
        "patched": "engines",
        "part": {"department": "engines"},
        "refused": "not_found",
    }
