"""The commands as the help lists them: from their summaries, so that a command imports only itself."""

import ast
import os
import subprocess
import sys
from inspect import cleandoc
from pathlib import Path

import pytest

from dynashard_tools.app import Listed
from dynashard_tools.catalog import COMMANDS

pytestmark = pytest.mark.unit

PACKAGES = Path(__file__).resolve().parents[3] / "packages"
PROGRAM = """
import sys
from dynashard_tools.cli import main
try:
    main()
finally:
    print("\\n" + " ".join(sys.modules))
"""


def imported_by(*arguments: str, **environment: str) -> set[str]:
    """Return the modules that a call of the command line imports."""
    ended = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", PROGRAM, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(ended.stdout.splitlines()[-1].split())


def commands_among(modules: set[str]) -> set[str]:
    """Return the modules of commands."""
    return modules & {each.place.partition(":")[0] for each in COMMANDS.values()}


def imported_in(code: str) -> set[str | None]:
    """Return the modules that code imports."""
    nodes = list(ast.walk(ast.parse(code)))
    whole = {each.name for node in nodes if isinstance(node, ast.Import) for each in node.names}
    return whole | {node.module for node in nodes if isinstance(node, ast.ImportFrom)}


@pytest.mark.parametrize("listed", COMMANDS.values(), ids=lambda listed: listed.name)
def test_a_command_is_listed_with_the_first_paragraph_of_its_help(listed: Listed) -> None:
    command = listed.load()

    paragraph, *_ = cleandoc(command.help).split("\n\n")
    assert (command.name, " ".join(paragraph.split())) == (listed.name, listed.summary)


def test_every_command_is_listed() -> None:
    files = PACKAGES.glob("*/dynashard_*/*/command.py")
    modules = {".".join(file.relative_to(PACKAGES).with_suffix("").parts[1:]) for file in files}

    assert modules - {each.place.partition(":")[0] for each in COMMANDS.values()} == set()


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (["--version"], {}),
        (["--help"], {}),
        (["--help"], {"DYNASHARD_DB": "shop:db"}),
        ([], {"_DYNASHARD_COMPLETE": "complete_bash", "COMP_WORDS": "dynashard re", "COMP_CWORD": "1"}),
    ],
    ids=["version", "help", "help of a program", "completion"],
)
def test_a_call_of_no_command_imports_neither_commands_nor_the_domain(
    arguments: list[str], environment: dict[str, str]
) -> None:
    modules = imported_by(*arguments, **environment)

    assert commands_among(modules) == set()
    assert modules & {"domain", "botocore", "dynashard.entity"} == set()


def test_a_command_imports_no_other() -> None:
    modules = imported_by("topology", "--help")

    assert commands_among(modules) == {"dynashard_tools.topology.command"}
    assert modules & {"boto3", "dynashard_lab", "dynashard_checks", "matplotlib", "aws_lambda_powertools"} == set()


def test_no_module_imports_that_of_a_command() -> None:
    places = {each.place.partition(":")[0] for each in COMMANDS.values()}
    found = {
        str(file.relative_to(PACKAGES)): names & places
        for file in PACKAGES.glob("*/dynashard_*/**/*.py")
        if (names := imported_in(file.read_text())) & places
    }

    assert found == {}
