"""The command line with a wrong domain."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

DOMAIN = """
from dynashard import Entity, Key, Shards


class Thing(Entity, name="thing.v1.Thing", key=Key("{tenant}", "{id}"), shards=Shards(7)):
    tenant: str
    id: str
"""


@pytest.mark.parametrize("arguments", [["topology"], ["load", "things", "x.csv"], ["--help"]])
def test_a_wrong_declaration_is_one_line(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "domain.py").write_text(DOMAIN)

    ended = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", "from dynashard_tools.cli import main; main()", *arguments],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ended.returncode, ended.stdout) == (1, "")
    [line] = ended.stderr.splitlines()
    assert line.startswith("error: the domain cannot be used: thing.v1.Thing")
    assert "7" in line
