"""Settings and hooks for all tests."""

import functools
import gc
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Final

import botocore.session
import pytest

from dynashard_checks.processors import pin, unpin
from tests.depth import left_out, load_profile
from tests.unchanged import Unchanged

load_profile()
# Where `make setup` has installed a Node, because the machine has no supported one.
_NODE: Final = Path(__file__).parents[1] / ".venv-node" / "bin"
if _NODE.is_dir():
    os.environ["PATH"] = f"{_NODE}{os.pathsep}{os.environ['PATH']}"
# The synthesiser reads this when it is imported.
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")
# Its own check of a template takes eight seconds. One test in tests/infra/test_app.py turns it on.
os.environ.setdefault("CDK_VALIDATION", "false")
# It unpacks the construct library into each new home, which takes seconds. A shared cache makes it do so once.
os.environ.setdefault("JSII_RUNTIME_PACKAGE_CACHE_ROOT", str(Path(__file__).parents[1] / "build" / "jsii"))
# An engine of one thread needs less time for tests, which mostly send one request at a time.
os.environ.setdefault("TOKIO_WORKER_THREADS", "1")
# Without this, each session of botocore reads the descriptions of services and endpoints again, a tenth of a second.
botocore.session.create_loader = functools.cache(botocore.session.create_loader)

RUN_FIRST: Final = (
    ("tests/e2e/test_deployed_reshard.py", "tests/e2e/test_deployed_"),
    (
        "tests/e2e/test_local_reshard.py",
        "tests/e2e/test_readme_tour.py",
        "tests/e2e/test_local_releases.py",
        "tests/e2e/test_local_firehose.py",
    ),
    ("tests/e2e/test_docs_typed.py",),
)
"""Beginnings of the ids of tests that run first, because they mostly wait for processes and leases.

Each group is begun by a worker of its own, in this order, while the others use the processors. At the end of a run they
would leave a processor idle. Tests of a deployment stay together, because each worker that runs one of them makes its
own.
"""


def pytest_configure(config: pytest.Config) -> None:
    """Leave tests of what has not changed out."""
    config.pluginmanager.register(Unchanged(config))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Remove tests that only `make test-deep` runs, unless they are named, and move waiting tests to the front."""
    if not any("::" in argument for argument in config.args):
        dropped = left_out(items)
        config.hook.pytest_deselected(items=dropped)
        kept = set(items).difference(dropped)
        items[:] = [item for item in items if item in kept]
    items[:] = in_order(items, workers=int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def pytest_collection_finish() -> None:
    """Refuse modules of tests that load CDK, a second of each process: see tests/infra/templates.py."""
    if "aws_cdk" in sys.modules:
        raise pytest.UsageError("a module that was collected imports aws_cdk: import it where it is used")


def in_order(items: list[pytest.Item], *, workers: int) -> list[pytest.Item]:
    """Return the tests with each group of `RUN_FIRST` where the share of another worker begins, if there are enough."""
    # An id is put together each time that it is asked for.
    named = [(item.nodeid, item) for item in items]
    groups = [[item for start in starts for name, item in named if name.startswith(start)] for starts in RUN_FIRST]
    waiting = {item for group in groups for item in group}
    ordered = [item for item in items if item not in waiting]
    for number, group in enumerate(groups):
        begin = len(items) // workers * (number % workers)
        ordered[begin:begin] = dict.fromkeys(group)
    return ordered


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Run a test and its engine on one processor, but the processes of an end-to-end test on all of them."""
    if worker := os.environ.get("PYTEST_XDIST_WORKER"):
        if item.get_closest_marker("e2e"):
            unpin()
        else:
            pin(int(worker.removeprefix("gw")))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector from scanning modules and tests, which stay until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        # Most of what a test leaves behind is freed without the collector.
        gc.set_threshold(50_000, 20, 50)
        gc.enable()
