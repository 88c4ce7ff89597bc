"""The committed OpenAPI document passes the linters that its readers use, and one with a fault does not.

Each linter is started once, for both documents: what it takes is mostly its start.
"""

import json
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[3]
NODE = ROOT / "node_modules" / ".bin"
DOCUMENT = "docs/openapi.json"


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    """Return the path of a document with two operations of one id."""
    file = tmp_path / "faulty.json"
    text = (ROOT / DOCUMENT).read_text()
    file.write_text(text.replace('"operationId": "listUser"', '"operationId": "createUser"', 1))
    return file


def lint(*command: str | Path) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - pinned tools
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def test_redocly_finds_no_problems_and_detects_a_faulty_document(faulty: Path) -> None:
    printed = lint(NODE / "redocly", "lint", "--format=json", DOCUMENT, faulty)

    good, end = json.JSONDecoder().raw_decode(printed)
    bad = json.loads(printed[end:])
    assert good["problems"] == []
    assert [(each["ruleId"], each["severity"]) for each in bad["problems"]] == [
        ("operation-operationId-unique", "error")
    ]


@pytest.mark.deep
def test_spectral_finds_no_problems_and_detects_a_faulty_document(faulty: Path) -> None:
    printed = lint(NODE / "spectral", "lint", "--ruleset", ".spectral.yaml", "--format=json", DOCUMENT, faulty)

    found = json.loads(printed)
    assert [each["code"] for each in found] == ["operation-operationId-unique"]
    assert [Path(each["source"]) for each in found] == [faulty]
