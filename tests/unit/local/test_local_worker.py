"""A worker process is restarted, and ends with the process that started it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import pytest

from dynashard_local.root import backend_root
from dynashard_local.workers.worker import FIRST_PAUSE, LONGEST_PAUSE, STEADY, Worker, WorkerSpec, pause_after
from tests.processes import signals_as_by_default
from tests.waiting import HANG_SECONDS

pytestmark = pytest.mark.unit

MODULE = "tests.unit.local.local_probe"
_PARENT = """
import subprocess
import sys
from pathlib import Path
from dynashard_local.workers.worker import Worker, WorkerSpec
folder = Path(sys.argv[1])
worker = Worker(WorkerSpec("tests.unit.local.local_probe", {"FOLDER": str(folder)}, folder / "log"), report=print)
worker.start()
sys.stdin.read()
"""


def until(true: Callable[[], Any]) -> Any:
    """Return the result of `true` once it is not empty."""
    deadline, pause = monotonic() + HANG_SECONDS, Event()
    while not (found := true()) and monotonic() < deadline:
        pause.wait(0.01)
    assert found
    return found


def begun(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in folder.glob("begun-*")]


def gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., tuple[Worker, list[str]]]]:
    """Return a function that starts a worker and returns it with its reports. All workers are closed at the end."""
    started: list[Worker] = []

    def starting(**environment: str) -> tuple[Worker, list[str]]:
        reports: list[str] = []
        spec = WorkerSpec(MODULE, {"FOLDER": str(tmp_path), **environment}, tmp_path / "log")
        worker = Worker(spec, report=reports.append)
        worker.start()
        started.append(worker)
        return worker, reports

    yield starting
    for worker in started:
        worker.close()


Start = Callable[..., tuple[Worker, list[str]]]


def test_a_worker_has_its_own_variables_and_a_log(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "mine")

    start(GIVEN="yes")

    [probe] = until(lambda: begun(tmp_path))
    assert probe["environment"]["GIVEN"] == "yes"
    assert "AWS_PROFILE" not in probe["environment"]
    assert (tmp_path / "log").read_text() == "begun\n"


def test_a_worker_that_is_killed_is_started_again(start: Start, tmp_path: Path) -> None:
    _, reports = start()
    [probe] = until(lambda: begun(tmp_path))

    os.kill(probe["process"], signal.SIGKILL)

    until(lambda: len(begun(tmp_path)) == 2)
    assert reports == [f"{MODULE} ended (status -9), and is restarted: see {tmp_path / 'log'}"]


def test_a_worker_that_fails_is_tried_again(start: Start, tmp_path: Path) -> None:
    _, reports = start(FAIL="yes")

    until(lambda: len(begun(tmp_path)) >= 2)

    assert "(status 3)" in reports[0]


def test_a_closed_worker_is_not_restarted(start: Start, tmp_path: Path) -> None:
    worker, reports = start()
    [probe] = until(lambda: begun(tmp_path))

    worker.close()

    assert gone(probe["process"])
    assert (tmp_path / f"ended-{probe['process']}").exists()
    assert (reports, len(begun(tmp_path))) == ([], 1)


def test_a_worker_that_was_never_started_can_be_closed(tmp_path: Path) -> None:
    Worker(WorkerSpec(MODULE, {}, tmp_path / "log"), report=print).close()

    assert not (tmp_path / "log").exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_ends_with_the_process_that_started_it(tmp_path: Path, number: int) -> None:
    program = [sys.executable, "-c", _PARENT, str(tmp_path)]
    with signals_as_by_default():
        parent = subprocess.Popen(program, cwd=backend_root(), stdin=subprocess.PIPE)  # noqa: S603 - our own program
    [probe] = until(lambda: begun(tmp_path))

    parent.send_signal(number)

    with parent:
        pass
    until((tmp_path / f"ended-{probe['process']}").exists)


def test_the_pause_doubles_while_a_worker_ends_early() -> None:
    pauses = [0.0]
    while pauses[-1] < LONGEST_PAUSE:
        pauses.append(pause_after(pauses[-1], 0.1))

    assert pauses[1:5] == [FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE, 8 * FIRST_PAUSE]
    assert pause_after(LONGEST_PAUSE, 0.1) == LONGEST_PAUSE
    assert pause_after(LONGEST_PAUSE, STEADY) == FIRST_PAUSE


FAILING = """
from dynashard_local.workers.lifecycle import end_with_input
end_with_input()
raise ValueError("a wrong declaration")
"""


def test_a_worker_that_fails_ends_with_its_error_and_does_not_abort() -> None:
    with subprocess.Popen(  # noqa: S603 - the program above
        [sys.executable, "-c", FAILING], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as worker:
        assert worker.stderr is not None
        said = worker.stderr.read().decode()
        status = worker.wait()

    assert status == 1
    assert said.rstrip().endswith("ValueError: a wrong declaration")
