"""The local stack ends on Ctrl-C and SIGTERM at every stage of its start, and leaves no process."""

import os
import signal
import socket
import stat
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import pytest

from tests.e2e.local_process import LocalProcess
from tests.processes import STOPS
from tests.waiting import HANG_SECONDS

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes through /proc"),
]

Stage = Callable[[Collection[signal.Signals]], LocalProcess]
STAGES = ("imports", "engine", "tables", "functions", "serving")
HANGS = """
import pathlib, time
pathlib.Path({mark!r}).touch()
while True:
    time.sleep(60)
"""


class Stages:
    """Bring a local stack to a stage of its start, in which it stays until it is stopped."""

    def __init__(self, start: Callable[..., LocalProcess], folder: Path, listener: socket.socket) -> None:
        self._start = start
        self._folder = folder
        self._mark = folder / "reached"
        self._listener = listener

    def imports(self, ignoring: Collection[signal.Signals]) -> LocalProcess:
        """It imports its modules, and has started no process."""
        return self._hanging_import("uvicorn", ignoring)

    def engine(self, ignoring: Collection[signal.Signals]) -> LocalProcess:
        """It has started an engine that does not answer."""
        program = self._folder / "dynoxide"
        program.write_text(f"#!/bin/sh\ntouch '{self._mark}'\nexec sleep 3600\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return self._start(ignoring=ignoring, DYNOXIDE_BIN=str(program)).once(self._mark.exists)

    def tables(self, ignoring: Collection[signal.Signals]) -> LocalProcess:
        """It waits for the answer of an engine that takes requests and never answers."""
        endpoint = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        stack = self._start(ignoring=ignoring, DYNAMODB_ENDPOINT=endpoint)
        self._connection, _ = self._listener.accept()
        assert self._connection.recv(1)
        return stack

    def functions(self, ignoring: Collection[signal.Signals]) -> LocalProcess:
        """Its engine runs, and a function is being imported."""
        return self._hanging_import("xxhash", ignoring)

    def serving(self, ignoring: Collection[signal.Signals]) -> LocalProcess:
        """It serves, and its workers are starting."""
        return self._start(ignoring=ignoring).ready()

    def _hanging_import(self, module: str, ignoring: Collection[signal.Signals]) -> LocalProcess:
        folder = self._folder / "modules"
        folder.mkdir()
        (folder / f"{module}.py").write_text(HANGS.format(mark=str(self._mark)))
        return self._start(ignoring=ignoring, PYTHONPATH=str(folder)).once(self._mark.exists)


@pytest.fixture
def stages(start_local: Callable[..., LocalProcess], tmp_path: Path) -> Iterator[Stages]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(HANG_SECONDS)
        yield Stages(start_local, tmp_path, listener)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("ignoring", [(), STOPS], ids=["in the foreground", "as a background job"])
@pytest.mark.parametrize("number", STOPS, ids=lambda number: number.name)
@pytest.mark.parametrize("stage", STAGES)
def test_the_stack_stops_at_every_stage_of_its_start(
    stages: Stages, stage: str, number: signal.Signals, ignoring: Collection[signal.Signals]
) -> None:
    stack = getattr(stages, stage)(ignoring)

    os.kill(stack.process.pid, number)

    assert stack.ended() == 0, stack.text
    assert "Stopped." in stack.text
    assert "Traceback" not in stack.text
    assert stack.all_gone()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("stage", STAGES)
def test_control_c_reaches_its_whole_process_group(stages: Stages, stage: str) -> None:
    stack = getattr(stages, stage)(())

    assert stack.interrupt() == 0, stack.text
    assert "Traceback" not in stack.text
    assert stack.all_gone()
