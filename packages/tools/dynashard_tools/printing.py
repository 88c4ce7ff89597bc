"""Prints what a command has found: for people, or as JSON."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import typer
from rich.console import Console
from rich.table import Table


def show(summary: Mapping[str, Any], *lines: str, as_json: bool) -> None:
    """Print a summary: as one JSON object, or as lines for people."""
    for line in (json.dumps(summary),) if as_json else lines:
        typer.echo(line)


def print_table(table: Table, *, err: bool = False) -> None:
    """Print a table, with its cells as they are: rich would take `:abc:` for an emoji, and `[abc]` for a style."""
    Console(stderr=err, emoji=False, markup=False, highlight=False).print(table)


def utc_text(epoch: float) -> str:
    """Return a time in UTC, to the second, from epoch seconds."""
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
