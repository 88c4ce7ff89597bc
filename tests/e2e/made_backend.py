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
    for empty in ("node_modules/.bin", ".venv-node"):
        (root / empty).mkdir(parents=True)
    # Each program by itself: what npm does in the backend must not reach the folder of the checkout.
    for kind in ("node_modules", "node_modules/.bin"):
        for each in (ROOT / kind).iterdir():
            if not each.name.startswith("."):
                (root / kind / each.name).symlink_to(each)
    touch_stamps(root)
    return root


def touch_stamps(root: Path) -> None:
    """Say that everything is installed, after a file has changed that names what is."""
    for stamp in STAMPS:
        (root / stamp).touch()
