"""Checks on a running system: an error of an actor ends the check, and one that has checked nothing has failed."""

from contextlib import nullcontext
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest

import dynashard_checks
from dynashard_checks import firehose
from dynashard_checks.hostile import Neighbour
from dynashard_checks.late_writes import right
from dynashard_checks.soak import soak
from dynashard_checks.threads import at_work
from dynashard_checks.truth.epochs import Verdict

pytestmark = pytest.mark.unit

SCHEDULER = "schedules/scheduler.py"
"""Its actors hand their errors to the schedule."""


def test_an_error_of_an_actor_is_raised_after_all_have_ended() -> None:
    ended, over = list[str](), Event()

    def fail() -> None:
        raise ValueError("a bug")

    def work() -> None:
        over.wait()
        ended.append("work")

    with pytest.raises(ValueError, match="a bug"), at_work(fail, work):
        over.set()

    assert ended == ["work"]


def test_no_check_starts_a_thread_whose_error_is_only_printed() -> None:
    root = Path(dynashard_checks.__file__).parent

    bare = [path.relative_to(root).as_posix() for path in root.rglob("*.py") if "Thread(" in path.read_text()]

    assert bare == [SCHEDULER]


def test_a_neighbour_that_is_refused_ends_the_measurement() -> None:
    over = Event()

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            return httpx.Response(201, headers={"location": "/v1/users/ada"})
        over.set()
        return httpx.Response(503)

    client = httpx.Client(transport=httpx.MockTransport(answer), base_url="http://stack")

    def work() -> None:
        over.wait()

    with pytest.raises(httpx.HTTPStatusError, match="503"):
        Neighbour(client).median_while(work)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"violations": ["one"]}, ["one"]),
        ({"strange": ["two"]}, ["two"]),
        ({"off_accepted": 3}, ["3 writes by a clock that is far off were accepted"]),
        ({"off_refused": 0}, ["no write by a clock that is far off was refused, so none was judged"]),
        ({"epochs": {}}, ["no epoch was published, so no count has grown"]),
    ],
)
def test_epochs_are_right_only_if_what_was_to_be_judged_has_happened(more: dict[str, Any], said: list[str]) -> None:
    whole: dict[str, Any] = {"off_refused": 5, "epochs": {"confirmed": 1}}

    assert Verdict(**whole).failures == []
    assert Verdict(**{**whole, **more}).failures == said


@pytest.mark.parametrize(
    "more", [{"changes": 0}, {"acknowledged creates": 0}, {"wrong": ["x"]}, {"verify": {"away": 1}}]
)
def test_late_writes_are_right_only_if_there_were_some(more: dict[str, Any]) -> None:
    whole = {"changes": 1, "acknowledged creates": 1, "wrong": [], "verify": {}}

    assert right(whole)
    assert not right({**whole, **more})


@pytest.mark.parametrize(("killed", "status"), [(3, 0), (2, 1)])
def test_a_firehose_fails_if_its_workers_were_killed_too_seldom(
    monkeypatch: pytest.MonkeyPatch, killed: int, status: int
) -> None:
    report = firehose.Report(1, 1, 0, stored=1, writers_killed=3, consumers_killed=killed)
    monkeypatch.setattr(firehose, "running_stack", lambda *_, **__: nullcontext())
    monkeypatch.setattr(firehose, "run", lambda *_: report)

    assert firehose.main(["--kills", "3"]) == status


@pytest.mark.parametrize(("listers", "listings", "status"), [(1, 1, 0), (1, 0, 1), (0, 0, 0)])
def test_a_soak_fails_if_it_has_compared_no_listing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, listers: int, listings: int, status: int
) -> None:
    class Done(soak.Soak):
        def __init__(self) -> None:
            """Do nothing: it has no stack."""

        def run(self) -> dict[str, object]:
            return {"client_errors": 0, "anomalies": 0, "p99_ratio": 1.0, "listings": listings}

        def _changes(self) -> list[Any]:
            return []

    monkeypatch.setattr(soak, "running_stack", lambda *_, **__: nullcontext())
    plan = soak.Plan(items=1, before=0, lease=1, workers=1, listers=listers, pause=0, list_pause=0, seed=1)

    assert soak.run_soak(lambda _: Done(), plan, tmp_path / "report.json", {}) == status
