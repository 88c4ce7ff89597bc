"""The version, `-h` and shell completion."""

import os
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from tests.command_tree import command_tree, paths
from tests.engine.command_line import ROOT, CommandLine

pytestmark = pytest.mark.engine


def test_the_version_is_the_projects(command_line: CommandLine) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    ended = command_line.run("--version")

    assert (ended.status, ended.out, ended.err) == (0, f"dynashard {project['version']}\n", "")


@pytest.mark.parametrize("names", list(paths(command_tree())), ids=" ".join)
def test_every_command_takes_h_for_help(command_line: CommandLine, names: tuple[str, ...]) -> None:
    short, long = command_line.run(*names, "-h"), command_line.run(*names, "--help")

    assert (short.status, short.err) == (0, "")
    assert " ".join(["Usage: dynashard", *names]) in short.out
    assert short.out == long.out


def completed(command_line: CommandLine, shell: str, line: str) -> list[str]:
    """Return the completions that a shell gets for the last word of a line."""
    words = line.split(" ")
    asked = {
        "bash": {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": line},
        "fish": {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    variables = {"_DYNASHARD_COMPLETE": f"complete_{shell}", **asked}
    return replace(command_line, environment={**command_line.environment, **variables}).run().out.split("\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("dynashard top", "topology"),
        ("dynashard get us", "users"),
        ("dynashard reshard sta", "start"),
        ("dynashard reshard start inc", "incidents"),
        ("dynashard list users --dir", "--direction"),
        ("dynashard list users --order or", "ordered"),
    ],
)
def test_a_shell_is_offered_commands_entities_options_and_choices(
    command_line: CommandLine, shell: str, line: str, offered: str
) -> None:
    found = completed(command_line, shell, line)

    assert any(offered in each for each in found)
    assert not any("articles" in each for each in found)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_script(command_line: CommandLine, shell: str) -> None:
    variables = {**command_line.environment, "_DYNASHARD_COMPLETE": f"source_{shell}"}

    script = replace(command_line, environment=variables).run()

    assert script.status == 0
    assert f"complete_{shell}" in script.out


def test_bash_completes_with_the_script(tmp_path: Path) -> None:
    program = tmp_path / "dynashard"
    program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c 'from dynashard_tools.cli import main; main()' \"$@\"\n")
    program.chmod(0o755)
    typed = """
        eval "$(_DYNASHARD_COMPLETE=source_bash dynashard)"
        COMP_WORDS=(dynashard get us) COMP_CWORD=2
        _dynashard_completion dynashard
        echo "${COMPREPLY[@]}"
    """

    ended = subprocess.run(  # noqa: S603 - our own program
        ["/bin/bash", "--norc", "-c", typed],
        cwd=ROOT,
        env={**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert ended.stdout == "users\n", ended.stderr


@pytest.mark.parametrize(
    ("redirection", "arguments", "status", "out"),
    [
        ("<&-", ("load", "users", "-", "--format", "jsonl", "--tenant", "abc"), 0, "loaded 0 users"),
        (">&-", ("list", "users", "tenant_id=nobody"), 0, ""),
        ("2>&-", ("list", "nothing"), 1, ""),
    ],
    ids=["input", "output", "errors"],
)
def test_a_stream_that_the_shell_has_closed_is_empty(
    command_line: CommandLine, redirection: str, arguments: tuple[str, ...], status: int, out: str
) -> None:
    ended = command_line.in_a_shell(redirection, *arguments)

    assert (ended.returncode, ended.stderr) == (status, "")
    assert ended.stdout.startswith(out)
    assert out or not ended.stdout
