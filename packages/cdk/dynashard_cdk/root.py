"""Finds the backend that commands of this package work for."""

from pathlib import Path
from typing import Final

MARK: Final = "cdk.json"
"""The file that makes a folder a backend."""


def backend_root() -> Path:
    """Return the nearest folder at or above the working directory that has a `cdk.json`, or the working directory."""
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / MARK).is_file()), here)
