"""The README's tour: each printed command has the printed answer."""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.local_process import ROOT, LocalProcess, checkout_for_loads

pytestmark = pytest.mark.e2e

SECTIONS = ("## Two commands", "## Five-minute tour")
COMMAND = re.compile(r"(curl |for |TOKEN=|API=|MINE=|\.venv/bin/)")
MARK = "----- {} -----"
PRINTED_URL = "http://127.0.0.1:8000"
SECONDS = 600
AGAIN = (
    "for n in 1 2 3; do until curl -s -o /dev/null -D - $API/incidents/i$n -H \"$AUTH\" -H 'Prefer: wait=10' \\",
    "  | grep -qi '^preference-applied: wait=10'; do :; done; done",
)
"""Requests that wait for copies are sent again, because on a busy machine copies may take longer than one wait."""


@dataclass
class Step:
    """A command, and what is printed below it."""

    command: list[str] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether the command is complete."""
        last = self.command[-1].split(" #")[0].rstrip()
        opened = sum(line.startswith("for ") for line in self.command)
        closed = sum(line.rstrip().endswith("done") for line in self.command)
        return not last.endswith("\\") and opened == closed

    @property
    def waits(self) -> bool:
        """Whether the command waits for copies."""
        return any("Prefer: wait=" in line for line in self.command)

    @property
    def document(self) -> object:
        """The printed JSON, or None if there is none or parts of it are left out."""
        text = "\n".join(self.printed)
        return json.loads(text) if text.startswith("{") and "..." not in text else None


def tour() -> list[Step]:
    """Return the steps of the README except the one that starts the stack."""
    text = (ROOT / "README.md").read_text()
    steps: list[Step] = []
    for section in SECTIONS:
        body = text.split(f"\n{section}\n")[1].split("\n## ")[0]
        for block in re.findall(r"^```\n(.*?)^```$", body, re.MULTILINE | re.DOTALL):
            steps += steps_of(block)
    return [step for step in steps if step.command]


def steps_of(block: str) -> Iterator[Step]:
    step = Step()
    for line in block.splitlines():
        if step.command and not step.complete:
            step.command.append(line)
        elif COMMAND.match(line):
            yield step
            step = Step([line])
        elif line.strip():
            step.printed.append(line)
    yield step


def test_each_command_of_the_readmes_tour_has_its_printed_answer(
    start_local: Callable[..., LocalProcess], tmp_path: Path
) -> None:
    lease = {"TOPOLOGY_LEASE_SECONDS": "1"}
    stack = start_local(**lease).ready()
    ports = {"PORT": str(urlsplit(stack.url).port), "DYNAMODB_PORT": str(urlsplit(stack.engine_url).port)}
    steps = tour()
    script = "\n".join(
        line
        for number, step in enumerate(steps)
        for line in (*step.command, *(AGAIN if step.waits else ()), f"echo; echo '{MARK.format(number)}'")
    )

    ran = subprocess.run(  # noqa: S603 - the README's own commands
        ["/bin/bash", "-euc", script.replace(PRINTED_URL, stack.url)],
        cwd=checkout_for_loads(tmp_path / "checkout"),
        env={**os.environ, **lease, **ports, "DATA_DIR": str(stack.data_dir), "NO_PROXY": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    outputs = re.split(r"----- \d+ -----\n", ran.stdout)
    documents = [(step, output) for step, output in zip(steps, outputs, strict=False) if step.document is not None]
    assert len(documents) >= 3
    for step, output in documents:
        assert json.loads(output) == step.document, "\n".join(step.command)
    assert stack.interrupt() == 0
