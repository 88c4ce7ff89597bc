"""A backend that `dynashard new` has made, with what `make setup` would install from registries."""

import subprocess
from pathlib import Path

import pytest

from tests.markdown import ROOT
from tests.wheels import built, installed

STAMPS = (".venv/.done", ".venv/.synth", ".venv-node/.done", "node_modules/.done")
"""The files by which make sees that nothing is to be installed."""


def made_backend(temporary: pytest.TempPathFactory, name: str) -> Path:
    """Make a backend of this name in a fresh folder, with an environment that has the wheels alone."""
    folder = temporary.mktemp("adopter")
    programs = installed(built(temporary), folder / "environment")
    subprocess.run([programs / "dynashard", "new", name], cwd=folder, check=True)  # noqa: S603
    root = folder / name
    (root / ".venv").symlink_to(programs.parent)
    for made in ("node_modules", ".venv-node"):
        (root / made).mkdir()
    for each in (ROOT / "node_modules").iterdir():
        if not each.name.startswith(".") or each.name == ".bin":
            (root / "node_modules" / each.name).symlink_to(each)
    touch_stamps(root)
    return root


def touch_stamps(root: Path) -> None:
    """Say that everything is installed, after a file has changed that names what is."""
    for stamp in STAMPS:
        (root / stamp).touch()
