"""Watching changes: their progress, and the hint about a missing worker."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from dynashard.errors import DynashardError, EngineUnavailableError, UndecodableItemError
from dynashard.resharding import Status, Timing
from dynashard.resharding.status import EpochStatus
from dynashard_tools.failure import CommandError
from dynashard_tools.reshard.description import GRACE, amounts, left, line, overdue
from dynashard_tools.reshard.watch import Watch, bar_of, watch_until

pytestmark = pytest.mark.unit

TIMING = Timing(lease=30.0, operation=4.0, skew=0.0)
WAIT = TIMING.wait(TIMING.lease)
BEGUN = 1_000_000.0
MOVING = Status(
    key="user.v1.User:abc", entity="user.v1.User", partition="user.v1.User:abc", index=None, phase="move",
    stage="move", count=16, target=32, swept=True, since=BEGUN, moved=300, total=1200, begun=True, write_units=2400.4,
    read_units=8, wait=WAIT,
)  # fmt: skip
PENDING = replace(
    MOVING, phase="stable", stage="pending", moved=0, total=None, begun=False, write_units=0.0, read_units=0.0
)
SWEEPING = replace(MOVING, phase="stable", stage="sweep", count=32, target=None, swept=False, moved=1200, swept_marks=5)
DONE = replace(SWEEPING, stage="stable", swept=True)
EPOCHS = (
    EpochStatus("", None, 1, "confirmed"),
    EpochStatus("2001-09-09T01:46:40.000000Z", 1e9, 4, "confirmed"),
    EpochStatus("2001-09-09T01:50:00.000000Z", 1e9 + 200, 8, "void"),
)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (MOVING, "16 shards -> 32; moves; 300 of 1,200 moved, 2,400 write and 8 read units"),
        (replace(MOVING, total=None), "16 shards -> 32; moves; 300 moved, 2,400 write and 8 read units"),
        (replace(PENDING, count=0, target=1), "unsharded -> 1; waits to begin"),
        (replace(PENDING, paused=True), "16 shards -> 32; waits to begin, paused"),
        (replace(PENDING, paused=True, error="Two."), "16 shards -> 32; waits to begin, failed; Two."),
        (replace(PENDING, back_to=16), "16 shards -> 32; waits to begin; will be changed back to 16 shards"),
        (
            replace(DONE, count=4, moved=0, epochs=EPOCHS),
            "4 shards; stable; 2 epochs, the newest for keys since 2001-09-09 01:46:40Z; 2,400 write and 8 read units",
        ),
        (replace(PENDING, seconds_left=3661.4), "16 shards -> 32; waits to begin; about 1:01:01 left"),
    ],
)
def test_a_resize_is_shown_in_one_line(status: Status, said: str) -> None:
    assert line(status) == f"user.v1.User abc: {said}"


def test_a_resize_is_named_as_commands_name_it() -> None:
    everything = replace(PENDING, key="user.v1.User", partition=None)
    index = replace(everything, key="user.v1.User|GSI2", index="GSI2")

    assert line(everything).startswith("user.v1.User: ")
    assert line(index).startswith("user.v1.User --index by_department: ")


def test_a_name_that_a_shell_would_divide_is_quoted() -> None:
    spaced = replace(PENDING, key="user.v1.User:a file", partition="user.v1.User:a file")

    assert line(spaced).startswith("user.v1.User 'a file': ")


def test_unknown_figures_are_not_shown() -> None:
    assert (amounts(PENDING), left(PENDING)) == ("", "")


@pytest.mark.parametrize(
    ("status", "bar"),
    [
        (PENDING, (None, 0)),
        (MOVING, (1200, 300)),
        (replace(MOVING, total=None), (None, 0)),
        (replace(MOVING, stage="settle"), (1200, 1200)),
        (SWEEPING, (1200, 5)),
        (replace(SWEEPING, moved=3), (3, 3)),
        (DONE, (1, 1)),
    ],
)
def test_a_bar_is_as_long_as_the_work(status: Status, bar: tuple[int | None, int]) -> None:
    assert bar_of(status) == bar


LATE = BEGUN + WAIT + GRACE + 1


@pytest.mark.parametrize(
    ("status", "now", "late"),
    [
        (PENDING, LATE, True),
        (PENDING, LATE - 2, False),
        (replace(PENDING, since=BEGUN - 3600, started=BEGUN), BEGUN + 1, False),
        (replace(PENDING, since=BEGUN - 3600, started=BEGUN), LATE, True),
        (replace(PENDING, paused=True), LATE, False),
        (replace(PENDING, updated=LATE - 5), LATE, False),
        (replace(MOVING, phase="prepare", stage="prepare", begun=False), LATE, True),
        (replace(MOVING, stage="settle", begun=False), LATE, True),
        (replace(MOVING, stage="settle"), LATE, False),
        (MOVING, LATE, False),
        (replace(MOVING, begun=False), LATE, True),
        (SWEEPING, LATE, False),
        (replace(SWEEPING, begun=False), LATE, True),
        (replace(PENDING, wait=3 * WAIT), LATE, False),
        (replace(PENDING, wait=3 * WAIT), LATE + 2 * WAIT, True),
        (DONE, LATE, False),
    ],
)
def test_a_step_is_overdue_when_it_should_have_been_taken_long_ago(status: Status, now: float, late: bool) -> None:  # noqa: FBT001
    assert overdue(status, now) is late


class Screen:
    """A fixed sequence of statuses and errors. Each poll takes one second."""

    def __init__(self, *statuses: Status | DynashardError) -> None:
        self.statuses = list(statuses)
        self.now = BEGUN
        self.shown: list[list[Status]] = []

    def watch(self) -> Watch:
        def sleep(seconds: float) -> None:
            self.now += seconds

        def poll() -> list[Status]:
            polled = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
            if isinstance(polled, DynashardError):
                raise polled
            return [polled]

        return Watch(
            poll,
            lambda seen: self.shown.append(list(seen)),
            worker="its log is here",
            clock=lambda: self.now,
            sleep=sleep,
        )


def test_watching_shows_every_status_and_ends_with_the_last(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(PENDING, MOVING, SWEEPING)

    seen = screen.watch().until(lambda seen: seen[0].target is None)

    assert seen == [SWEEPING]
    assert screen.shown == [[PENDING], [MOVING], [SWEEPING]]
    assert capsys.readouterr().err == ""


def test_watching_goes_on_after_polls_without_an_answer() -> None:
    screen = Screen(PENDING, *[EngineUnavailableError("No answer.", operation="BatchGetItem")] * 30, SWEEPING)

    assert screen.watch().until(lambda seen: seen[0].target is None) == [SWEEPING]


def test_watching_ends_when_no_poll_is_answered_any_more() -> None:
    screen = Screen(PENDING, EngineUnavailableError("No answer.", operation="BatchGetItem"))

    with pytest.raises(EngineUnavailableError):
        screen.watch().until(lambda seen: seen[0].target is None)

    assert screen.now == BEGUN + 31


def test_a_watch_that_ends_without_an_answer_says_that_the_resizes_continue(monkeypatch: pytest.MonkeyPatch) -> None:
    def unanswered() -> list[Status]:
        raise EngineUnavailableError("DynamoDB cannot be reached. Try again.")

    monkeypatch.setattr("dynashard_tools.reshard.watch._FAILURES", 0)
    backend: Any = SimpleNamespace(drives=False, worker="start one")

    with pytest.raises(CommandError) as ended:
        watch_until(backend, unanswered, lambda _: True)

    assert str(ended.value) == (
        "DynamoDB cannot be reached. Try again; the resizes continue. `dynashard reshard status --watch` watches them "
        "(engine_unavailable)"
    )


def test_watching_ends_at_once_when_a_record_cannot_be_used() -> None:
    screen = Screen(PENDING, UndecodableItemError("The record is damaged."), SWEEPING)

    with pytest.raises(UndecodableItemError):
        screen.watch().until(lambda seen: seen[0].target is None)

    assert screen.shown == [[PENDING]]


@pytest.mark.parametrize("status", [PENDING, MOVING, SWEEPING])
def test_a_resize_without_progress_is_reported_once(status: Status, capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(status)

    screen.watch().until(lambda _: screen.now > BEGUN + 3 * (WAIT + GRACE))

    said = capsys.readouterr().err
    assert said == "no worker seems to run: the next step is overdue. Its log is here\n"


@pytest.mark.parametrize("quiet", [replace(MOVING, paused=True), DONE])
def test_an_expected_pause_is_not_reported(quiet: Status, capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(quiet)

    screen.watch().until(lambda _: screen.now > BEGUN + 3 * (WAIT + GRACE))

    assert capsys.readouterr().err == ""


def test_slow_work_counts_as_progress(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(*(replace(MOVING, moved=300 + number // 30) for number in range(200)))

    screen.watch().until(lambda seen: seen[0].moved == 306)

    assert capsys.readouterr().err == ""
