"""The command line with a wrong domain, and without one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import signals_as_by_default

pytestmark = pytest.mark.unit

Ended = subprocess.CompletedProcess[str]
DOMAIN = """
from dynashard import Entity, Key, Shards


class Thing(Entity, name="thing.v1.Thing", key=Key("{tenant}", "{id}"), shards=Shards(7)):
    tenant: str
    id: str
"""


OUTSIDE = "import dynashard_tools.cli as cli; cli.find_spec = lambda name: None; cli.main()"
"""A checkout always has a domain."""


def run(*arguments: str, program: str = "from dynashard_tools.cli import main; main()", **environment: str) -> Ended:
    return subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("arguments", [["topology"], ["load", "things", "x.csv"], ["get", "--help"]])
def test_a_wrong_declaration_is_one_line(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "domain.py").write_text(DOMAIN)

    ended = run(*arguments, PYTHONPATH=str(tmp_path))

    assert (ended.returncode, ended.stdout) == (1, "")
    [line] = ended.stderr.splitlines()
    assert line.startswith("error: the domain cannot be used: thing.v1.Thing")
    assert "7" in line


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_needs_no_domain(tmp_path: Path, argument: str) -> None:
    (tmp_path / "domain.py").write_text(DOMAIN)

    ended = run(argument, PYTHONPATH=str(tmp_path))

    assert (ended.returncode, ended.stderr) == (0, "")


def test_help_of_plan_does_not_promise_a_plan_of_all_entities() -> None:
    shown = " ".join(run("plan", "--help").stdout.split())

    assert "An entity; none with --item-bytes: " in shown
    assert "all if left out" not in shown


@pytest.mark.parametrize(
    "around", ["if True:", "with suppress(BaseException):"], ids=["raised", "ignored by an import"]
)
def test_an_interrupt_before_a_command_has_begun_is_one_line(tmp_path: Path, around: str) -> None:
    imports = "import signal\nfrom contextlib import suppress\n\n"
    (tmp_path / "domain.py").write_text(f"{imports}{around}\n    signal.raise_signal(signal.SIGINT)\n")

    with signals_as_by_default():
        ended = run("topology", PYTHONPATH=str(tmp_path))

    assert (ended.returncode, ended.stdout) == (130, "")
    assert ended.stderr == "error: interrupted; nothing was done\n"


def test_a_command_outside_of_a_backend_says_where_it_works() -> None:
    ended = run("reshard", "start", "orders", "--to", "8", program=OUTSIDE)

    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("error: there is no backend here, and reshard needs one: run it in its folder.")
    assert ended.stderr.endswith("DYNASHARD_DB=shop:db dynashard reshard start orders --to 8\n")


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_help_outside_of_a_backend_names_both_ways_to_more_commands(arguments: list[str]) -> None:
    shown = " ".join(run(*arguments, program=OUTSIDE).stdout.split())

    assert "In the folder of one, dynashard has many more commands" in shown
    assert "DYNASHARD_DB" in shown
