"""The wheels of the checkout, and an environment in which they are installed."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from packages.wheels import DISTRIBUTIONS, build
from tests.shared import made_once


def built(temporary: pytest.TempPathFactory) -> Path:
    """Return a folder with the wheels of all distributions, built once in a run."""
    return made_once(temporary, "wheels", build)


def wheel_of(name: str, folder: Path) -> Path:
    """Return the wheel of a distribution."""
    (found,) = folder.glob(f"{name.replace('-', '_')}-*.whl")
    return found


def installed(wheels: Path, folder: Path) -> Path:
    """Make an environment with the wheels, and return its folder of programs.

    What they depend on comes from this interpreter's own packages, so it needs no network. The checkout is not there:
    the line by which these packages are found reads no `.pth` file of theirs.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)  # noqa: S603
    python = folder / "bin" / "python"
    names = [each.name for each in DISTRIBUTIONS]
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "install", "--quiet"]
    # Most modules are never imported. Those that are compile at their first import.
    options = ["--no-index", "--no-deps", "--no-compile", f"--find-links={wheels}"]
    subprocess.run([*pip, *options, *names], check=True)  # noqa: S603
    site = subprocess.run(  # noqa: S603
        [python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    Path(site, "others.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n")
    return folder / "bin"
