"""Prints what a command has found: for people, or as JSON."""

import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from io import TextIOWrapper
from typing import Any, Final

import typer
from rich.console import Console
from rich.table import Table

_UNBOUNDED: Final = 1_000_000
"""Columns, more than any table has: rich measures a table within the width that it is given."""


def show(summary: Mapping[str, Any], *lines: str, as_json: bool) -> None:
    """Print a summary: as one JSON object, or as lines for people."""
    for line in (json.dumps(summary),) if as_json else lines:
        typer.echo(line)


def print_table(table: Table, *, err: bool = False) -> None:
    """Print a table, with its cells as they are: rich would take `:abc:` for an emoji, and `[abc]` for a style.

    Cells that are too long go on in further lines, because the ends of keys and names are what differs.
    """
    for column in table.columns:
        if column.overflow == "ellipsis":
            column.overflow = "fold"
    _console(err=err).print(table)


def fits(table: Table) -> bool:
    """Whether a table can be printed without cutting or dividing its cells; 80 columns are taken without a terminal."""
    console = _console()
    unbounded = console.options.update(width=_UNBOUNDED)
    return console.measure(table, options=unbounded).maximum <= console.width


def blocks(count: int) -> str:
    """Return a bar of so many cells, of characters that standard output can encode."""
    return ("#" if _console().options.ascii_only else "█") * count


def _console(*, err: bool = False) -> Console:
    stream = sys.stderr if err else sys.stdout
    if isinstance(stream, TextIOWrapper):
        # A cell may have characters that the locale of a script does not.
        stream.reconfigure(errors="replace")
    return Console(stderr=err, emoji=False, markup=False, highlight=False)


def utc_text(epoch: float) -> str:
    """Return a time in UTC, to the second, from epoch seconds."""
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
