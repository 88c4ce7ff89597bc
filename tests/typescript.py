"""Compile and run the TypeScript client."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.waiting import HANG_SECONDS

ROOT = Path(__file__).resolve().parents[1]
CLIENT = ROOT / "clients" / "typescript"
BIN = ROOT / "node_modules" / ".bin"


def run(*command: str | Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a command that must succeed, and return its output."""
    done = subprocess.run(  # noqa: S603 - our own command lines
        [str(part) for part in command],
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def compiled(folder: Path) -> Path:
    """Type-check the client and its tour, compile them into a folder, and return the folder of `src` and `examples`."""
    (folder / "node_modules").symlink_to(ROOT / "node_modules")
    shutil.copy(CLIENT / "package.json", folder)
    run(BIN / "tsc", "-p", CLIENT / "tsconfig.all.json", "--outDir", folder / "dist")
    return folder / "dist"
