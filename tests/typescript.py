"""Compile and run the TypeScript client."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.shared import made_once
from tests.waiting import HANG_SECONDS

ROOT = Path(__file__).resolve().parents[1]
CLIENT = ROOT / "packages" / "client-typescript"
BIN = ROOT / "node_modules" / ".bin"
STRICTLY = ("--strict", "--skipDefaultLibCheck", "--module", "NodeNext", "--target", "ES2022")
"""How a program of an adopter is compiled. The declarations that TypeScript itself ships are not checked again."""


def run(*command: str | Path, environment: Mapping[str, str] | None = None, cwd: Path = ROOT) -> str:
    """Run a command that must succeed, and return its output."""
    done = subprocess.run(  # noqa: S603 - our own command lines
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def compiled(temporary: pytest.TempPathFactory) -> Path:
    """Return the folder of `src` and `examples`: the client and its tour, type-checked and compiled once in a run."""
    return made_once(temporary, "typescript", _compile) / "dist"


def types_of_document(temporary: pytest.TempPathFactory) -> Path:
    """Return the types that are generated from the committed OpenAPI document, once in a run."""
    return made_once(temporary, "openapi-types", _generate) / "schema.ts"


def _generate(folder: Path) -> None:
    output = ("--output", folder / "schema.ts")
    run(BIN / "openapi-typescript", "docs/openapi.json", "--default-non-nullable", "false", *output)


def _compile(folder: Path) -> None:
    (folder / "node_modules").symlink_to(ROOT / "node_modules")
    shutil.copy(CLIENT / "package.json", folder)
    run(BIN / "tsc", "-p", CLIENT / "tsconfig.all.json", "--outDir", folder / "dist")
