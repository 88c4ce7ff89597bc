"""`make deploy-local`: the printed command calls the API, and Ctrl-C ends the program."""

import json
import os
import subprocess
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dynashard_local.deploy.__main__ import banner, main
from tests.e2e.deployment import TENANT_CLAIM, Deployment, dynashard
from tests.e2e.local_process import ROOT
from tests.e2e.systems import soon

pytestmark = pytest.mark.e2e


def test_the_printed_commands_work_as_they_are_typed(deployment: Deployment, tmp_path: Path) -> None:
    _, commands = banner(deployment, TENANT_CLAIM).split("Try:\n")
    calling, operating = commands.split("Commands, in another terminal:\n")
    exported, *typed = [line.strip() for line in operating.splitlines()]

    called = typing(calling, tmp_path)
    done = {line: typing(f"{exported}\n{line}\n", tmp_path) for line in typed}

    assert json.loads(called.stdout) == {"items": [], "cursor": None}
    assert {line: ended.stderr for line, ended in done.items() if ended.returncode} == {}
    assert "stream: unknown, because a local AWS has no metrics" in next(
        ended.stdout for line, ended in done.items() if "queue status" in line
    )
    # The call of the API above, through the log of its function, which answers do not wait for.
    of_tenant = ("logs", "tenant", "abc", "--env=dev", "--json")
    soon(lambda: "dynashard-api" in dynashard(deployment.aws, *of_tenant), wanted=True)
    assert json.loads(done[next(line for line in typed if "dynashard get " in line)].stdout)["display_name"] == "Ada"
    assert len(typed) >= len({line.split()[1] for line in typed}) >= 5


def test_a_restore_finds_the_tables_and_ends_in_one_line_without_recovery(
    deployment: Deployment, tmp_path: Path
) -> None:
    exported = " ".join(f"{name}={value}" for name, value in deployment.aws.variables.items())

    ended = typing(f"export {exported}\n.venv/bin/dynashard restore --env dev --to 2026-11-20T10:15:00Z", tmp_path)

    # The local AWS has no point-in-time recovery.
    assert ended.returncode == 1
    assert (ended.stdout, len(ended.stderr.splitlines())) == ("", 1)
    assert f"error: {deployment.table}" in ended.stderr


def typing(commands: str, home: Path) -> "subprocess.CompletedProcess[str]":
    """Run commands in a new shell, whose user has no configuration of AWS."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    return subprocess.run(  # noqa: S603 - our own
        ["/bin/sh", "-ec", commands], capture_output=True, check=False, text=True, cwd=ROOT, env=environment
    )


def interrupted() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(("wait", "status", "said"), [(interrupted, 0, "Stopped"), (lambda: 1, 1, "ended by itself")])
def test_the_program_serves_until_ctrl_c_or_the_end_of_the_local_aws(
    deployment: Deployment, wait: Any, status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    aws = deployment.aws
    seen = SimpleNamespace(
        url=aws.url, variables=aws.variables, process=SimpleNamespace(wait=wait), log_tail=aws.log_tail
    )
    ending = replace(deployment, aws=seen)  # type: ignore[arg-type]

    assert main(lambda *_: nullcontext(ending), TENANT_CLAIM) == status

    shown = capsys.readouterr()
    assert f"API       {aws.url}/v1" in shown.out
    assert said in shown.err
