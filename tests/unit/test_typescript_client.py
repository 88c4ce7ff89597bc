"""The TypeScript client: generated from the committed OpenAPI document, strictly typed, and tested in node."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "typescript"
BIN = ROOT / "node_modules" / ".bin"


def run(*command: str | Path, environment: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(  # noqa: S603 - our own command lines
        [str(part) for part in command],
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_its_types_are_those_of_the_openapi_document(tmp_path: Path) -> None:
    generated = tmp_path / "schema.ts"

    run(BIN / "openapi-typescript", "docs/openapi.json", "--default-non-nullable", "false", "--output", generated)

    assert generated.read_text() == (CLIENT / "src" / "schema.ts").read_text(), "the API has changed: run `make client`"


def test_it_and_its_tour_are_typed_strictly() -> None:
    run(BIN / "tsc", "-p", CLIENT / "tsconfig.all.json", "--noEmit")


def test_it_does_what_its_tests_say(tmp_path: Path) -> None:
    (tmp_path / "node_modules").symlink_to(ROOT / "node_modules")
    shutil.copy(CLIENT / "package.json", tmp_path)
    run(BIN / "tsc", "-p", CLIENT, "--outDir", tmp_path / "dist")

    told = run("node", "--test", CLIENT / "tests" / "client.test.mjs", environment={"DIST": str(tmp_path / "dist")})

    assert "# fail 0" in told
    assert "# pass 0" not in told
