"""The commands of the README's tour, and what they print."""

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.local_process import ROOT

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


def run_tour(url: str, checkout: Path, environment: Mapping[str, str]) -> list[tuple[Step, str]]:
    """Run the tour on a local stack in a checkout, and return each step with its output."""
    steps = tour()
    script = "\n".join(
        line
        for number, step in enumerate(steps)
        for line in (*step.command, *(AGAIN if step.waits else ()), f"echo; echo '{MARK.format(number)}'")
    )
    ran = subprocess.run(  # noqa: S603 - the README's own commands
        ["/bin/bash", "-euc", script.replace(PRINTED_URL, url)],
        cwd=checkout,
        env={**os.environ, **environment, "NO_PROXY": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return list(zip(steps, re.split(r"----- \d+ -----\n", ran.stdout), strict=False))
