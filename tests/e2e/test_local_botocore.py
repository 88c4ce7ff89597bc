"""The local stack and the command line over botocore, which is not the default: all systems and a reshard."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.local_process import ROOT, LocalProcess
from tests.e2e.systems import SYSTEMS, listed
from tests.waiting import HANG_SECONDS

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.deep,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes through /proc"),
]

Start = Callable[..., LocalProcess]
TIMES = {"TOPOLOGY_LEASE_SECONDS": "1", "TOPOLOGY_OPERATION_SECONDS": "2"}
BOTOCORE = {"TRANSPORT": "botocore", **TIMES}


def uses_botocore(process: int) -> bool:
    return b"TRANSPORT=botocore\0" in Path(f"/proc/{process}/environ").read_bytes() + b"\0"


def dynashard(stack: LocalProcess, *arguments: str) -> str:
    """Run a command on the stack over botocore, and return what it prints."""
    place = {"DATA_DIR": str(stack.data_dir), "DYNAMODB_ENDPOINT": stack.engine_url}
    done = subprocess.run(  # noqa: S603 - our own program
        [str(Path(sys.executable).with_name("dynashard")), *arguments],
        cwd=ROOT,
        env={**os.environ, **place, **BOTOCORE},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_system_and_a_reshard_work_over_botocore(start_local: Start) -> None:
    stack = start_local(**BOTOCORE).ready()
    for system in SYSTEMS:
        system(stack.client(f"tenant-of-{system.__name__}"))
    tenant = f"tenant-of-{SYSTEMS[0].__name__}"
    client = stack.client(tenant)
    before = sorted(listed(client, "users?limit=2", "id"))

    said = dynashard(stack, "reshard", "start", "users", tenant, "--to", "32", "--wait")

    assert "32 shards, in force everywhere" in said
    assert uses_botocore(stack.worker_process())
    assert len(before) > 3
    assert sorted(listed(client, "users?limit=2", "id")) == before
    assert stack.interrupt() == 0
