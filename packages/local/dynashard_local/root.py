"""Finds the backend that the local stack and the commands work for."""

import os
import sys
from pathlib import Path
from typing import Final

MARK: Final = "cdk.json"
"""The file that makes a folder a backend."""
PYTHON: Final = ("", "layers/domain/python")
"""The folders of a backend that packages are imported from: `functions` and `stacks`, and `domain`."""


def backend_root() -> Path:
    """Return the nearest folder at or above the working directory that has a `cdk.json`.

    If there is none, it is the working directory: commands that need no file of a backend work anywhere.
    """
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / MARK).is_file()), here)


def python_path(root: Path) -> list[str]:
    """Return the folders of a backend that its packages are imported from."""
    return [str(root / place) for place in PYTHON]


def importable(root: Path) -> None:
    """Let this process import the packages of a backend, after what is on the path already."""
    sys.path += [folder for folder in python_path(root) if folder not in sys.path]


def environment_for(root: Path) -> dict[str, str]:
    """Return the variables by which another process imports them, after what this one was given, as here."""
    given = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([*filter(None, [given]), *python_path(root)])}
