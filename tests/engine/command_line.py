"""The command line on the engine of the session: in this process, and as a process of its own."""

import functools
import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import orjson
import pytest
import typer.main

from domain.samples.users import User
from dynashard import Dynashard
from dynashard.service import Collection
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from dynashard_tools.cli import main
from tests.processes import signals_as_by_default
from tests.waiting import HANG_SECONDS

ROOT = Path(__file__).resolve().parents[2]
CURSOR_KEYS = ["only-ever-in-these-tests"]
# Typer builds all commands again for each call, which takes longer than most commands here. These are not for other
# tests: a command keeps the help option of its first context, which has another name outside the root command.
_COMMANDS = functools.cache(typer.main.get_command)
_PROGRAM = "from dynashard_tools.cli import main; main()"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The output of a command, and its exit status."""

    status: int
    out: str
    err: str

    @property
    def summary(self) -> dict[str, Any]:
        """The standard output, parsed as one JSON value."""
        found: dict[str, Any] = orjson.loads(self.out)
        return found


@dataclass(frozen=True, slots=True)
class CommandLine:
    """Runs commands on the tables of `make run` in the session's engine.

    An environment variable that is empty here is unset for the command.
    """

    folder: Path
    environment: Mapping[str, str]
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    def with_long_operations(self) -> "CommandLine":
        """Allow a minute for each operation, because a batch may take the engine long on a busy machine."""
        return replace(self, environment={**self.environment, "TOPOLOGY_OPERATION_SECONDS": "60"})

    def run(self, *arguments: str | Path, stdin: bytes = b"") -> Outcome:
        """Run a command in this process."""
        self.capsys.readouterr()
        with self.monkeypatch.context() as patch:
            for name, value in self.environment.items():
                patch.setenv(name, value)
                if not value:
                    patch.delenv(name)
            patch.setattr(typer.main, "get_command", _COMMANDS)
            patch.setattr(sys, "argv", ["dynashard", *map(str, arguments)])
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
            with pytest.raises(SystemExit) as ended:
                main()
        captured = self.capsys.readouterr()
        assert "Traceback" not in captured.err
        return Outcome(int(ended.value.code or 0), captured.out, captured.err)

    def on_a_terminal(self, *arguments: str | Path) -> tuple[int, str]:
        """Run a command whose standard error is a terminal; return its exit status and the terminal's content."""
        ours, theirs = os.openpty()
        process = self.start(*arguments, stderr=theirs, TERM="xterm", COLUMNS="120")
        os.close(theirs)
        shown = b"".join(iter(lambda: _read(ours), b""))
        os.close(ours)
        with process:
            process.communicate()
        return process.returncode, shown.decode()

    def start(
        self,
        *arguments: str | Path,
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.PIPE,
        **environment: str,
    ) -> "subprocess.Popen[str]":
        """Start a command as a process that reads a pipe."""
        with signals_as_by_default():
            return subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-c", _PROGRAM, *map(str, arguments)],
                cwd=ROOT,
                env={**os.environ, **self.environment, **environment},
                stdin=subprocess.PIPE,
                stdout=stdout,
                stderr=stderr,
                text=True,
            )

    def in_a_shell(self, redirection: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run a command as a process whose streams a shell redirects, such as `<&-`."""
        return subprocess.run(  # noqa: S603 - our own program
            ["/bin/sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-c", _PROGRAM, *arguments],
            cwd=ROOT,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            check=False,
        )

    def file(self, name: str, *lines: str | Mapping[str, Any]) -> Path:
        """Write a file of these lines, with mappings as JSON."""
        path = self.folder / name
        path.write_text("".join(f"{text(line)}\n" for line in lines))
        return path

    def end_in_the_middle(self, lines: Iterable[str], state: Path, number: int, *arguments: str | Path) -> Outcome:
        """Feed a load from a pipe that never ends, and send it a signal once it has kept a checkpoint.

        Args:
            lines: what it may read.
            state: where it keeps its checkpoint.
            number: the signal.
            arguments: of `dynashard load`, without file and state.
        """
        process = self.start("load", "users", "-", "--state", state, *arguments)
        assert process.stdin is not None
        process.stdin.write("".join(f"{line}\n" for line in lines))
        process.stdin.flush()
        deadline, pause = monotonic() + HANG_SECONDS, Event()
        while line_of(state) == 0 and process.poll() is None and monotonic() < deadline:
            pause.wait(0.01)
        assert process.poll() is None, process.communicate()
        process.send_signal(signal.Signals(number))
        status = process.wait(HANG_SECONDS)
        with process:
            out, err = process.communicate()
        return Outcome(status, out, err)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux raises this when the other side is closed.
        return b""


def line_of(state: Path) -> int:
    """Return the line of a load's checkpoint, 0 without one."""
    return int(orjson.loads(state.read_bytes())["line"]) if state.exists() else 0


def text(line: str | Mapping[str, Any]) -> str:
    return line if isinstance(line, str) else orjson.dumps(line).decode()


def user(number: int, **fields: Any) -> dict[str, Any]:
    """Return a row without an id."""
    return {"email": f"u{number}@example.com", "display_name": f"User {number}", **fields}


def users_of(wire: Transport, table: str) -> Collection[User]:
    return Dynashard(wire, table=table, topology=DeclaredTopology(), cursor_keys=CURSOR_KEYS).collection(User)


def emails_of(users: Collection[User], tenant: str) -> list[str]:
    """Return the sorted addresses of a tenant's users."""
    return sorted(item.email for item in users.scan({"tenant_id": tenant}))


def expected(count: int) -> list[str]:
    return sorted(f"u{number}@example.com" for number in range(count))
