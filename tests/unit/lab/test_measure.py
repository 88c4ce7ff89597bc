"""Measuring: fair order of contenders, ratios within a round, limits, and answers that are checked."""

import asyncio
import gc
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import pytest

from dynashard_lab.bench.measure import (
    Apart,
    Fact,
    Here,
    Limit,
    Row,
    Sample,
    Spread,
    WrongAnswerError,
    how_many,
    measure,
)

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def quick_collections() -> None:
    """Each sample begins with a garbage collection, which would look at the objects of all tests before.

    Measuring ends by including them again, so every test leaves them out anew.
    """
    gc.freeze()


@dataclass
class Scripted:
    """A contender whose samples are given: the first is that of the unmeasured run."""

    name: str
    samples: list[Sample]
    taken: Iterator[Sample] = field(init=False)

    def __post_init__(self) -> None:
        self.taken = iter(self.samples)

    def sample(self, repeat: int, items: int | None) -> Sample:
        assert (repeat, items) in {(1, 7), (3, 7)}
        return next(self.taken)


def scripted(name: str, *seconds: float, wall: float = 1.0, megabytes: float | None = None) -> Scripted:
    return Scripted(name, [Sample(each, wall * each, megabytes) for each in (99.0, *seconds)])


def test_contenders_run_once_unmeasured_and_then_take_turns_at_being_first() -> None:
    turns: list[str] = []
    contenders = [Here(name, partial(turns.append, name), seconds=0.0) for name in ("a", "b", "c")]

    figures = measure(Row("turns", contenders, repeat=2), rounds=3)

    assert "".join(turns) == "abc" + "aabbcc" + "bbccaa" + "ccaabb"
    assert [figure.contender for figure in figures] == ["a", "b", "c"]


def test_a_ratio_is_the_median_of_the_ratios_of_the_rounds() -> None:
    # The second round was on a machine ten times slower, for both.
    row = Row("row", [scripted("base", 1.0, 10.0, 1.0), scripted("other", 0.5, 4.0, 0.3)], repeat=3, items=7)

    base, other = measure(row, rounds=3)

    assert base.ratio == Spread(1.0, 1.0, 1.0)
    assert other.ratio == Spread(0.4, 0.35, 0.45)
    assert other.cpu_us == Spread(500_000.0, 400_000.0, 2_250_000.0)


def test_ratios_are_of_the_clock_of_the_row() -> None:
    contenders = [scripted("base", 1.0), scripted("other", 0.5, wall=4.0)]

    other = measure(Row("row", contenders, repeat=3, clock="wall", items=7), rounds=1)[1]

    assert (other.ratio.median, other.cpu_us.median, other.wall_us.median) == (2.0, 500_000.0, 2_000_000.0)


def test_a_limit_is_about_the_baseline_or_another_contender() -> None:
    contenders = [scripted("base", 1.0), scripted("peer", 0.4), scripted("near", 0.2), scripted("far", 0.2)]
    limits = {"near": Limit(0.2), "far": Limit(1 / 3, to="peer")}

    figures = measure(Row("row", contenders, repeat=3, limits=limits, items=7), rounds=1)

    assert [figure.met for figure in figures] == [None, None, True, False]
    assert [figure.limited for figure in figures] == [None, None, 0.2, 0.5]
    assert figures[3].as_json()["met"] is False


@pytest.mark.parametrize(("megabytes", "met"), [(200.0, True), (200.1, False)])
def test_a_limit_may_be_about_memory_as_well(megabytes: float, *, met: bool) -> None:
    contender = scripted("a", 1.0, megabytes=megabytes)

    [figure] = measure(Row("row", [contender], repeat=3, limits={"a": Limit(1.0, megabytes=200.0)}, items=7), rounds=1)

    assert figure.met is met


def test_a_limit_to_a_contender_that_is_not_installed_is_neither_met_nor_missed() -> None:
    row = Row("row", [scripted("a", 1.0)], repeat=3, limits={"a": Limit(0.1, to="missing")}, items=7)

    assert measure(row, rounds=1)[0].met is None


def test_a_slow_row_has_fewer_rounds() -> None:
    figures = measure(Row("row", [scripted("a", 1.0, 2.0)], repeat=3, items=7, rounds=2), rounds=50)

    assert figures[0].cpu_us.median == 1_500_000.0


def test_a_row_of_fresh_processes_needs_no_unmeasured_run() -> None:
    [figure] = measure(Row("row", [scripted("a")], repeat=3, items=7, warmed=False), rounds=1)

    assert figure.cpu_us.median == 99e6


def test_memory_is_the_median_of_the_rounds() -> None:
    contender = Scripted("a", [Sample(1.0, 1.0, megabytes) for megabytes in (500.0, 30.0, 10.0, 20.0)])

    [figure] = measure(Row("row", [contender], repeat=3, items=7), rounds=3)

    assert figure.megabytes == 20.0


def test_an_awaited_contender_is_awaited_in_its_own_loop() -> None:
    loop, loops = asyncio.new_event_loop(), list[asyncio.AbstractEventLoop]()

    async def run() -> int:
        loops.append(asyncio.get_running_loop())
        return 5

    Here("a", run, loop, seconds=0.0).sample(3, 5)
    loop.close()

    assert loops == [loop] * 3


@pytest.mark.parametrize("awaited", [False, True])
def test_a_short_sample_is_taken_again_for_a_time_and_its_first_runs_do_not_count(*, awaited: bool) -> None:
    now = [0.0]

    def run() -> None:
        # The first two runs are slow, as they are after the caches were emptied.
        now[0] += 0.02 if now[0] > 0.07 else 0.04

    async def run_awaited() -> None:
        run()

    loop = asyncio.new_event_loop()
    work = run_awaited if awaited else run
    sample = Here("a", work, loop if awaited else None, seconds=0.1, clock=lambda: now[0]).sample(2, None)
    loop.close()

    # Three times two runs: after the second two the sample had lasted for 0.08 seconds.
    assert sample.wall == pytest.approx(0.02)
    assert now[0] == pytest.approx(0.2)


def test_a_sample_that_lasts_long_enough_is_taken_once() -> None:
    now = [0.0]

    def run() -> None:
        now[0] += 0.5

    sample = Here("a", run, seconds=0.9, clock=lambda: now[0]).sample(2, None)

    assert sample.wall == pytest.approx(0.5)
    assert now[0] == pytest.approx(1.0)


@pytest.mark.parametrize("awaited", [False, True])
def test_a_wrong_number_of_items_is_no_measurement(*, awaited: bool) -> None:
    loop = asyncio.new_event_loop()
    contender = Here("a", partial(asyncio.sleep, 0, 99), loop) if awaited else Here("a", lambda: 99)

    with pytest.raises(WrongAnswerError, match="a answered 99 items; 100 were expected"):
        contender.sample(1, 100)
    contender.sample(1, None)
    loop.close()


@pytest.mark.parametrize(
    ("answer", "items"), [(None, 0), (0, 0), (7, 7), (True, 1), ([], 0), ([{}, {}], 2), ({"id": "a", "email": "b"}, 1)]
)
def test_an_answer_is_an_item_a_list_of_items_or_their_number(answer: object, items: int) -> None:
    assert how_many(answer) == items


@pytest.mark.parametrize("answer", [None, []])
def test_an_answer_without_an_item_is_no_measurement(answer: object) -> None:
    with pytest.raises(WrongAnswerError, match="a answered 0 items; 1 were expected"):
        Here("a", lambda: answer).sample(1, 1)


def test_a_contender_of_its_own_process_reports_what_it_measured() -> None:
    program = """print('{"items": 3, "cpu": 0.25, "wall": 0.5, "megabytes": 12.5}')"""

    assert Apart("a", ["-c", program]).sample(1, 3) == Sample(0.25, 0.5, 12.5)
    with pytest.raises(WrongAnswerError):
        Apart("a", ["-c", program]).sample(1, 4)


@pytest.mark.parametrize(("limit", "met"), [(1.0, True), (0.9, False), (None, None), (0, False)])
def test_a_fact_is_met_up_to_its_limit(limit: float | None, met: object) -> None:
    assert Fact("subject", "name", 1.0, "units", limit).met is met
