"""The committed OpenAPI document passes the linters that its readers use."""

import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
NODE = ROOT / "node_modules" / ".bin"
DOCUMENT = "docs/openapi.json"


def run(*command: str | Path) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - pinned tools
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_redocly_finds_nothing() -> None:
    told = run(NODE / "redocly", "lint", DOCUMENT)

    assert "Your API description is valid." in told
    assert "You have" not in told, told  # it counts its warnings so


def test_spectral_finds_nothing() -> None:
    run(NODE / "spectral", "lint", "--fail-severity", "hint", "--ruleset", ".spectral.yaml", DOCUMENT)


def test_a_document_with_a_fault_does_not_pass(tmp_path: Path) -> None:
    faulty = tmp_path / "openapi.json"
    text = (ROOT / DOCUMENT).read_text()
    faulty.write_text(text.replace('"operationId": "listUser"', '"operationId": "createUser"', 1))

    for command in (["redocly", "lint"], ["spectral", "lint", "--ruleset", ".spectral.yaml"]):
        name, *rest = command
        done = subprocess.run(  # noqa: S603 - pinned tools
            [NODE / name, *rest, faulty], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode != 0, name
