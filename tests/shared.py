"""Make slow fixtures once for all workers of a run."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock


def made_once(temporary: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder that one worker of this run has made; the others wait for it. Tests must not change it.

    Args:
        temporary: the temporary folders of the run.
        name: the name of the folder.
        make: fills the folder, which is empty. If it fails, the next worker tries again.
    """
    base = temporary.getbasetemp()
    # Workers of one run have base folders side by side; two runs never share the folder above them.
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, done = shared / name, shared / f"{name}.done"
    with FileLock(shared / f"{name}.lock"):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            done.touch()
    return folder
