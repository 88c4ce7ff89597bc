"""The check against the committed figures: what counts as worse, and what is not compared."""

import pytest

from bench.check import Fall, falls
from bench.clients.interface import DIRECT, FLOOR, RAW
from bench.measure import Fact, Figure, Spread
from bench.report import Result

pytestmark = pytest.mark.unit


def figure(contender: str, ratio: float, row: str = "get") -> Figure:
    spread = Spread(ratio, ratio, ratio)
    return Figure(row, contender, "cpu", spread, spread, spread)


def result(*figures: Figure, facts: tuple[Fact, ...] = ()) -> dict[str, Result]:
    return {"items": Result(list(figures), list(facts))}


@pytest.mark.parametrize(("now", "fell"), [(0.05, False), (0.1, False), (0.1149, False), (0.1151, True)])
def test_a_ratio_falls_above_15_percent(now: float, *, fell: bool) -> None:
    found = falls(result(figure(DIRECT, 0.1)), result(figure(DIRECT, now)))

    assert found == ([Fall("items", f"get, {DIRECT}", 0.1, now)] if fell else [])


def test_ratios_of_peers_are_not_compared() -> None:
    committed = result(figure(RAW, 1.0), figure("pynamodb models", 1.0), figure(FLOOR, 0.01))

    assert falls(committed, result(figure(RAW, 9.0), figure("pynamodb models", 9.0), figure(FLOOR, 9.0))) == []


def test_contenders_of_our_own_rows_are_compared() -> None:
    [fall] = falls(result(figure("256 shards", 1.0)), result(figure("256 shards", 2.0)))

    assert str(fall) == "items: get, 256 shards is 2; 1 is committed (+100%)"


def test_what_was_not_measured_is_a_fall() -> None:
    [fall] = falls(result(figure(DIRECT, 0.1), figure(DIRECT, 0.2, "put")), result(figure(DIRECT, 0.1)))

    assert str(fall) == f"items: put, {DIRECT} was not measured; 0.2 is committed"


def test_subjects_of_only_one_side_are_not_compared() -> None:
    assert falls({"lists": Result([figure(DIRECT, 0.1)])}, result(figure(DIRECT, 0.2))) == []


@pytest.mark.parametrize(("unit", "fell"), [("Queries", True), ("bytes", True), ("us", False), ("MB", False)])
def test_counts_are_compared_and_times_are_not(unit: str, *, fell: bool) -> None:
    committed, now = (result(facts=(Fact("pages", "what", value, unit),)) for value in (10, 20))

    assert bool(falls(committed, now)) is fell


def test_a_count_above_none_is_a_fall() -> None:
    committed, now = (result(facts=(Fact("pages", "items missed", value, "items"),)) for value in (0, 1))

    assert [str(fall) for fall in falls(committed, now)] == [
        "items: pages, items missed is 1; 0 is committed (more than none)"
    ]
