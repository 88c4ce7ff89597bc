"""Tables are printed whole, whatever the width of the terminal."""

from io import BytesIO, TextIOWrapper

import pytest
from rich.table import Table

from dynashard_tools.printing import blocks, fits, print_table

pytestmark = pytest.mark.unit

NAME = "user.v1.User:tenant-with-a-long-name:11"


def table() -> Table:
    made = Table("partition key", "items")
    made.add_row(NAME, "1,000")
    return made


def test_a_cell_that_is_too_long_goes_on_in_the_next_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "30")

    print_table(table())

    rows = [line.split("│")[1].strip() for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    assert len(rows) > 1
    assert "".join(rows) == NAME


@pytest.mark.parametrize(("columns", "fitting"), [("50", False), ("51", True), ("200", True)])
def test_a_table_fits_if_no_cell_has_to_go_on(monkeypatch: pytest.MonkeyPatch, columns: str, *, fitting: bool) -> None:
    monkeypatch.setenv("COLUMNS", columns)

    assert fits(table()) is fitting


def test_a_table_is_printed_where_the_locale_has_few_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = BytesIO()
    monkeypatch.setattr("sys.stdout", TextIOWrapper(printed, encoding="ascii", write_through=True))
    made = Table("name", "")
    made.add_row("Søren", blocks(3))

    print_table(made)

    assert b"| S?ren | ### |" in printed.getvalue()


def test_bars_are_blocks_where_they_can_be_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", TextIOWrapper(BytesIO(), encoding="utf-8"))

    assert blocks(3) == "███"
