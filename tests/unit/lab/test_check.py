"""The check against the committed figures: what counts as worse, and what is not compared."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from dynashard_lab.bench import __main__ as command
from dynashard_lab.bench.check import Fall, falls, in_both
from dynashard_lab.bench.clients.interface import DIRECT, FLOOR, PYDYNOX_MODELS, RAW
from dynashard_lab.bench.measure import Fact, Figure, Spread
from dynashard_lab.bench.page import Run
from dynashard_lab.bench.report import Result

pytestmark = pytest.mark.unit


def figure(contender: str, ratio: float, row: str = "get", limit: float | None = None) -> Figure:
    spread = Spread(ratio, ratio, ratio)
    return Figure(row, contender, "cpu", spread, spread, spread, limit=limit)


def result(*figures: Figure, facts: tuple[Fact, ...] = ()) -> dict[str, Result]:
    return {"items": Result(list(figures), list(facts))}


def fallen(committed: Mapping[str, Result], now: Mapping[str, Result]) -> list[str]:
    return [str(fall) for fall in falls(committed, now, list(committed))]


@pytest.mark.parametrize(
    ("now", "fell"), [(0.05, False), (0.1, False), (0.1149, False), (0.1151, True), (float("nan"), True)]
)
def test_a_ratio_falls_above_15_percent(now: float, *, fell: bool) -> None:
    found = falls(result(figure(DIRECT, 0.1)), result(figure(DIRECT, now)), ["items"])

    assert found == ([Fall("items", f"get, {DIRECT}", f"is {now:g}; 0.1 is committed")] if fell else [])


def test_ratios_of_peers_are_not_compared() -> None:
    committed = result(figure(RAW, 1.0), figure("pynamodb models", 1.0), figure(FLOOR, 0.01))

    assert fallen(committed, result(figure(RAW, 9.0), figure("pynamodb models", 9.0), figure(FLOOR, 9.0))) == []


def test_contenders_of_our_own_rows_are_compared() -> None:
    committed, now = (result(figure("256 shards", ratio)) for ratio in (1.0, 2.0))

    assert fallen(committed, now) == ["items: get, 256 shards is 2; 1 is committed"]


@pytest.mark.parametrize("now", [figure(DIRECT, 0.1, "fetch"), figure(PYDYNOX_MODELS, 0.1)])
def test_a_row_or_contender_that_is_gone_or_renamed_is_a_fall(now: Figure) -> None:
    committed = result(figure(DIRECT, 0.1))

    assert fallen(committed, result(now)) == [f"items: get, {DIRECT} was not measured"]


def test_a_peer_that_is_gone_is_a_fall_because_limits_refer_to_it() -> None:
    committed = result(figure(RAW, 1.0), figure(PYDYNOX_MODELS, 0.3))

    assert fallen(committed, result(figure(RAW, 1.0))) == [f"items: get, {PYDYNOX_MODELS} was not measured"]


def test_a_subject_that_is_gone_is_a_fall_unless_others_were_asked_for() -> None:
    committed = {**result(figure(DIRECT, 0.1)), "lists": Result([figure(DIRECT, 0.1, "list")])}
    now = result(figure(DIRECT, 0.1))

    assert fallen(committed, now) == [f"lists: list, {DIRECT} was not measured"]
    assert falls(committed, now, ["items"]) == []


def test_what_is_not_committed_is_not_compared() -> None:
    now = result(figure(DIRECT, 0.1), figure(DIRECT, 9.0, "a new row"))

    assert falls(result(figure(DIRECT, 0.1)), {**now, "new": Result()}, ["items", "new"]) == []


@pytest.mark.parametrize("limit", [0.5, None])
def test_a_limit_that_was_raised_or_removed_is_a_fall(limit: float | None) -> None:
    committed = result(figure(DIRECT, 0.1, limit=0.13), facts=(Fact("pages", "cursor", 1.0, "bytes", 2.0),))
    now = result(figure(DIRECT, 0.1, limit=limit), facts=(Fact("pages", "cursor", 1.0, "bytes", limit and 3.0),))

    text = "none" if limit is None else "0.5"
    assert fallen(committed, now) == [
        f"items: get, {DIRECT} has the limit {text}; 0.13 is committed",
        f"items: pages, cursor has the limit {'none' if limit is None else 3}; 2 is committed",
    ]


def test_a_lower_limit_is_no_fall() -> None:
    assert fallen(result(figure(DIRECT, 0.1, limit=0.13)), result(figure(DIRECT, 0.1, limit=0.12))) == []


def test_a_limit_of_memory_that_was_raised_is_a_fall() -> None:
    committed, now = (result(replace(figure(DIRECT, 0.1, limit=1.0), most_megabytes=most)) for most in (200.0, 300.0))

    assert fallen(committed, now) == [f"items: get, {DIRECT} has the limit of MB 300; 200 is committed"]


def test_a_ratio_to_another_baseline_or_on_another_clock_is_a_fall() -> None:
    committed = result(figure(RAW, 1.0), figure(DIRECT, 0.1))
    other_baseline = result(figure("boto3 Table", 1.0), figure(RAW, 1.0), figure(DIRECT, 0.1))
    other_clock = result(figure(RAW, 1.0), replace(figure(DIRECT, 0.1), clock="wall"))

    assert [line.partition(" is the ratio")[0] for line in fallen(committed, other_baseline)] == [
        f"items: get, {RAW}",
        f"items: get, {DIRECT}",
    ]
    [line] = fallen(committed, other_clock)
    assert line.startswith(f"items: get, {DIRECT} is the ratio of wall to {RAW}")


def test_a_limit_to_another_contender_is_a_fall() -> None:
    committed, now = (
        result(figure(RAW, 1.0), replace(figure(DIRECT, 0.1, limit=0.3), limit_to=to)) for to in (PYDYNOX_MODELS, None)
    )

    assert len(fallen(committed, now)) == 1


@pytest.mark.parametrize(("unit", "fell"), [("Queries", True), ("bytes", True), ("us", False), ("bytes each", False)])
def test_counts_are_compared_and_times_and_memory_are_not(unit: str, *, fell: bool) -> None:
    committed, now = (result(facts=(Fact("pages", "what", value, unit),)) for value in (10, 20))

    assert bool(fallen(committed, now)) is fell


def test_a_count_in_another_unit_is_a_fall() -> None:
    committed, now = (result(facts=(Fact("pages", "what", 10, unit),)) for unit in ("units", "us"))

    assert fallen(committed, now) == [
        "items: pages, what is us; units is committed",
        "items: pages, what is none; 10 is committed",
    ]


@pytest.mark.parametrize(("before", "now", "fell"), [(20.5, 20.9, False), (20.5, 21.1, True), (22, 22.5, False)])
def test_a_count_that_met_its_limit_must_meet_it_whatever_the_tolerance(
    before: float, now: float, *, fell: bool
) -> None:
    committed, current = (result(facts=(Fact("pages", "units", value, "units", 21),)) for value in (before, now))

    line = f"items: pages, units is {now:g}; {before:g} is committed; its limit is 21"
    assert fallen(committed, current) == ([line] if fell else [])


def test_a_count_above_none_is_a_fall() -> None:
    committed, now = (result(facts=(Fact("pages", "items missed", value, "items"),)) for value in (0, 1))

    assert fallen(committed, now) == ["items: pages, items missed is 1; 0 is committed"]


def test_what_fell_must_fall_in_both_runs_of_its_own_subject() -> None:
    first = [Fall("items", "get", "is 2"), Fall("items", "put", "is 2")]
    second = [Fall("items", "get", "is 3"), Fall("lists", "put", "is 3")]

    assert in_both(first, second) == [Fall("items", "get", "is 3")]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--write", "--check"], "--write replaces the figures that --check compares with"),
        (["--write", "items"], "--write needs all subjects"),
    ],
)
def test_figures_are_not_compared_with_themselves_or_written_in_part(
    arguments: list[str], says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["bench", *arguments])

    with pytest.raises(SystemExit):
        command.main()

    assert says in capsys.readouterr().err


def test_a_run_that_lacks_subjects_is_not_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    part = tmp_path / "part.json"
    Run({}, "python -m dynashard_lab.bench items", "2026-11-22", result(figure(DIRECT, 0.1))).write(part)
    monkeypatch.setattr("sys.argv", ["bench", "--write", "--read", str(part)])
    monkeypatch.setattr(command, "write_page", lambda run: pytest.fail(f"written: {run}"))

    with pytest.raises(SystemExit, match=r"part\.json has no figures of .*scans"):
        command.main()
