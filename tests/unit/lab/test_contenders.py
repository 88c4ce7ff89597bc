"""The clients as contenders: those that are not installed, fresh processes, and the processors they may use."""

import os
import sys
from collections.abc import Iterator
from threading import Event, Thread, get_native_id

import pytest

from dynashard_lab.bench import contenders
from dynashard_lab.bench.canned import CannedAnswers, canned_server
from dynashard_lab.bench.clients import interface
from dynashard_lab.bench.clients.interface import CLIENTS, DIRECT, RAW
from dynashard_lab.bench.measure import Apart
from dynashard_lab.bench.processors import available, processors
from dynashard_lab.bench.stored import PAGE, SHARDS

pytestmark = pytest.mark.unit


def test_a_client_that_is_not_installed_is_left_out_and_named_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(interface, "CLIENTS", {**CLIENTS, "lost": ("no_such_module", "Lost")})

    found = [contenders.installed([RAW, "lost", DIRECT]) for _ in range(2)]

    assert found == [[RAW, DIRECT]] * 2
    assert (
        capsys.readouterr().err.count(
            "left out: lost (dynashard_lab.bench.clients.no_such_module is not installed here"
        )
        == 1
    )


@pytest.mark.parametrize(("work", "items"), [("cold", 1), ("scan", SHARDS * PAGE)])
def test_a_client_in_a_fresh_process_reports_what_it_cost(work: str, items: int) -> None:
    with canned_server(CannedAnswers()) as url:
        sample = Apart(DIRECT, ["-m", "dynashard_lab.bench.apart", work, ":".join(CLIENTS[DIRECT]), url]).sample(
            1, items
        )

    assert sample.cpu > 0
    assert sample.megabytes is not None
    assert 5 < sample.megabytes < 1000


@pytest.fixture
def waiting() -> Iterator[int]:
    """A thread that waits, by its number in the system."""
    over = Event()
    thread = Thread(target=over.wait)
    thread.start()
    assert thread.native_id is not None
    yield thread.native_id
    over.set()
    thread.join()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux restricts processors")
def test_all_threads_use_so_many_processors_until_the_block_ends(waiting: int) -> None:
    def allowed() -> list[set[int]]:
        return [os.sched_getaffinity(thread) for thread in (get_native_id(), waiting)]

    before = allowed()
    with processors(1):
        restricted = allowed()
    with processors(None):
        unrestricted = allowed()

    assert restricted == [{min(before[0])}] * 2
    assert allowed() == unrestricted == before
    assert available() == len(before[0])
