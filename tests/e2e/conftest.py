"""Local stacks and a deployment for end-to-end tests."""

import signal
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import pytest

from tests.e2e.deployment import Deployment, deployed
from tests.e2e.local_process import LocalProcess

Start = Callable[..., LocalProcess]


@pytest.fixture
def start_local(tmp_path: Path) -> Iterator[Start]:
    """Start local stacks, by default all on one data folder. Processes that are left are killed at the end."""
    started: list[LocalProcess] = []

    def start(
        data_dir: Path | None = None, ignoring: Collection[signal.Signals] = (), **environment: str
    ) -> LocalProcess:
        stack = LocalProcess(data_dir or tmp_path / "data", environment, ignoring)
        started.append(stack)
        return stack

    yield start
    for stack in started:
        if stack.process.poll() is None:
            stack.kill_everything()
    # Not before, because several stacks may share one data folder, by which their processes are found.
    assert all(stack.all_gone() for stack in started)


@pytest.fixture(scope="session")
def local_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalProcess]:
    """One local stack for all tests of a process that need no other; every test uses tenants of its own."""
    stack = LocalProcess(tmp_path_factory.mktemp("local"))
    yield stack.ready()
    assert stack.interrupt() == 0
    assert stack.all_gone()


@pytest.fixture(scope="session")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """The backend as it is deployed, on a local AWS; every test takes tenants of its own."""
    with deployed(tmp_path_factory.mktemp("deployed")) as deployment:
        yield deployment
