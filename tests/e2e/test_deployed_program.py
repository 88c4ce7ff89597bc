"""`make deploy-local`: the printed command calls the API, and Ctrl-C ends the program."""

import json
import subprocess
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from local.deploy.__main__ import banner, main
from tests.e2e.deployment import TENANT_CLAIM, Deployment

pytestmark = pytest.mark.e2e


def test_the_printed_command_calls_the_api(deployment: Deployment) -> None:
    _, commands = banner(deployment, TENANT_CLAIM).split("Try:\n")

    done = subprocess.run(["/bin/sh", "-ec", commands], capture_output=True, check=True)  # noqa: S603 - our own

    assert json.loads(done.stdout) == {"items": [], "cursor": None}


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
