"""The page of the figures: what a run replaces, its tables and pictures, and that the committed page is of one run."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynashard_lab.bench.clients.interface import DIRECT, RAW
from dynashard_lab.bench.measure import Fact, Figure, Spread
from dynashard_lab.bench.page import COMMITTED, DOCS, Run, by_row, filled, picture_of, write_page
from dynashard_lab.bench.pictures import bars
from dynashard_lab.bench.report import Result

pytestmark = pytest.mark.unit

MACHINE = {"processor": "A processor", "processors": 2, "system": "Linux x86_64", "python": "3.13.1"}
PAGE = """# Title

<!-- measured: machine -->
<!-- end -->
Written by people.

<!-- measured: items -->
old
<!-- end -->
<!-- measured: pages -->
kept
<!-- end -->
"""


def figure(
    row: str, contender: str, ratio: float, limit: float | None = None, megabytes: float | None = None
) -> Figure:
    times = Spread(ratio * 645.0, 0.0, 0.0)
    spread = Spread(ratio, ratio * 0.9, ratio * 1.1)
    return Figure(row, contender, "cpu", times, times, spread, limit, None, ratio if limit else None, megabytes)


ITEMS = Result(
    [
        figure("get", RAW, 1.0),
        figure("get", DIRECT, 0.1234, 0.13),
        figure("put", RAW, 1.0),
        figure("put", DIRECT, 0.25, 0.16),
    ]
)
RUN = Run(MACHINE, "make bench", "2026-11-22", {"items": ITEMS})


def test_a_run_replaces_its_parts_and_keeps_the_rest() -> None:
    text = filled(PAGE, RUN)

    assert "2 processors (A processor), Linux x86_64, Python 3.13.1." in text
    assert "Written by people." in text
    assert "kept" in text
    assert "old" not in text
    assert filled(text, RUN) == text


def test_a_table_has_the_medians_and_quartiles_of_all_rows() -> None:
    text = filled(PAGE, RUN)

    assert "| | get | put |" in text
    assert f"| {RAW} | 1.00 (645 us) | 1.00 (645 us) |" in text
    assert f"| {DIRECT} | 0.12 (0.11 to 0.14) | 0.25 (0.23 to 0.28) |" in text


def test_the_limits_of_all_subjects_are_one_table() -> None:
    facts = Result(facts=[Fact("round-robin", "bytes of a cursor", 1234, "bytes", 2048)])

    text = filled(
        "<!-- measured: limits -->\n<!-- end -->", Run(MACHINE, "make", "2026-11-22", {"items": ITEMS, "pages": facts})
    )

    assert f"| get, {DIRECT} | 0.12 | 0.13 | met |" in text
    assert f"| put, {DIRECT} | 0.25 | 0.16 | missed |" in text
    assert "| round-robin: bytes of a cursor | 1,234 bytes | 2048 | met |" in text


def test_rows_with_other_contenders_and_memory_have_tables_of_their_own() -> None:
    result = Result([figure("a", RAW, 1.0, megabytes=50.4), figure("b", "1 shard", 1.0), figure("b", "4 shards", 1.5)])

    text = filled(PAGE, Run(MACHINE, "make", "2026-11-22", {"items": result}))

    assert f"| | a | MB, a |\n|---|---|---|\n| {RAW} | 1.00 (645 us) | 50 |\n\n| | b |" in text


def test_a_run_reads_what_it_wrote(tmp_path: Path) -> None:
    RUN.write(tmp_path / "run.json")

    assert Run.read(tmp_path / "run.json") == RUN


def test_the_page_its_pictures_and_figures_are_written_together(tmp_path: Path) -> None:
    (tmp_path / "performance.md").write_text(PAGE)

    write_page(RUN, tmp_path)

    assert (tmp_path / picture_of("items")).read_text() == bars(by_row(ITEMS.figures))
    assert picture_of("items") in (tmp_path / "performance.md").read_text()
    assert Run.read(tmp_path / COMMITTED.name) == RUN


ratios = st.floats(min_value=1e-4, max_value=1e4)


@given(st.lists(st.tuples(st.text("ab<&'\" ", max_size=9), ratios), min_size=1, max_size=5))
def test_a_picture_is_valid_and_its_bars_are_in_proportion(measured: list[tuple[str, float]]) -> None:
    figures = [figure("row <1> & 'more'", name, ratio) for name, ratio in measured]

    root = ET.fromstring(bars({"row <1> & 'more'": figures}))  # noqa: S314 - our own picture

    widths = [float(bar.attrib["width"]) for bar in root if bar.tag.endswith("rect")][1:]
    longest = max(ratio for _, ratio in measured)
    assert len(widths) == len(measured)
    for width, (_, ratio) in zip(widths, measured, strict=True):
        assert width == pytest.approx(max(1.0, max(widths) * ratio / longest), abs=0.2)
    assert all(float(each.attrib["x"]) >= 0 for each in root.iter() if "x" in each.attrib)


def test_the_committed_page_has_the_committed_figures() -> None:
    run = Run.read(COMMITTED)
    page = DOCS / "performance.md"

    remedy = "Run `make bench BENCH_ARGS=--write`, which also takes `--read docs/performance.json --write`."
    assert page.read_text("utf-8") == filled(page.read_text("utf-8"), run), remedy
    for subject, result in run.results.items():
        if result.figures:
            assert (DOCS / picture_of(subject)).read_text("utf-8") == bars(by_row(result.figures)), remedy
