"""Starting and stopping the local stack: an obstacle is reported in one line, and no process is left behind."""

import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.local_process import LocalProcess
from tests.ports import reserved_ports

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes through /proc"),
]

Start = Callable[..., LocalProcess]


def assert_one_line(stack: LocalProcess, *parts: str) -> None:
    assert stack.ended() == 1, stack.text
    assert len(stack.output) == 1, stack.text
    assert stack.output[0].startswith("dynashard: ")
    for part in parts:
        assert part in stack.output[0]
    assert stack.all_gone()


@pytest.mark.parametrize("variable", ["PORT", "DYNAMODB_PORT"])
def test_a_port_in_use_is_reported_in_one_line(start_local: Start, variable: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])

        stack = start_local(**{variable: port})

        assert_one_line(stack, f"Port {port} cannot be used", f"set {variable}")


def test_a_wrong_setting_is_reported_in_one_line(start_local: Start) -> None:
    assert_one_line(start_local(PORT="eighty"), "PORT=eighty cannot be used")


def test_an_impossible_data_folder_is_reported_in_one_line(start_local: Start, tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert_one_line(start_local(tmp_path / "file" / "data"), "DATA_DIR=", "cannot be written", "set another")


def test_a_damaged_data_folder_is_reported_in_one_line(start_local: Start, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "dynamodb.sqlite").write_bytes(os.urandom(8192))

    assert_one_line(start_local(), "dynamodb.sqlite is damaged", "restore it from a copy, or move it away")


def test_a_missing_engine_is_reported_in_one_line(start_local: Start) -> None:
    assert_one_line(start_local(DYNOXIDE_BIN="/nowhere/dynoxide"), "DYNOXIDE_BIN=/nowhere/dynoxide is not a file")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda stop: stop.name)
def test_stopping_the_stack_stops_its_processes_and_frees_its_ports(start_local: Start, stop: int) -> None:
    with reserved_ports(2) as (port, engine_port):
        ports = {"PORT": str(port), "DYNAMODB_PORT": str(engine_port)}
        stack = start_local(**ports).ready()
        stack.client().get("/v1/users").raise_for_status()
        before = stack.processes()

        os.kill(stack.process.pid, stop)

        assert stack.ended() == (-signal.SIGKILL if stop == signal.SIGKILL else 0)
        assert len(before) >= 3
        again = start_local(**ports).ready()
        again.client().get("/v1/users").raise_for_status()
        assert again.interrupt() == 0
    assert "Traceback" not in stack.text + again.text
    assert stack.all_gone()


def test_a_second_start_on_the_same_data_is_refused_and_a_crash_of_the_engine_ends_the_first(
    start_local: Start,
) -> None:
    stack = start_local().ready()

    second = start_local()

    assert second.ended() == 1
    assert f"in use by another local stack (process {stack.process.pid})" in second.text
    assert "Traceback" not in second.text
    assert stack.client(None).get("/v1/health").status_code == 200

    os.kill(stack.engine_process(), signal.SIGKILL)

    assert stack.ended() == 1
    assert "dynashard: The DynamoDB engine ended (status -9)" in stack.text
    assert "Dynoxide listening on" in stack.text
    assert stack.all_gone()
