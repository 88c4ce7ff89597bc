"""Prints items: as JSON, or as a table on a terminal."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import typer
from rich.table import Table

from dynashard_tools.printing import print_table


def print_item(item: Mapping[str, Any]) -> None:
    """Print an item as JSON: indented on a terminal, one line elsewhere."""
    typer.echo(json.dumps(item, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None))


def print_page(page: Mapping[str, Any], columns: Sequence[str], *, as_json: bool) -> None:
    """Print a page: as one JSON object, or on a terminal as a table of those `columns` that an item has."""
    if as_json or not sys.stdout.isatty():
        typer.echo(json.dumps(page, ensure_ascii=False))
        return
    items = page["items"]
    shown = [name for name in columns if any(item.get(name) is not None for item in items)]
    if items:
        table = Table(*shown)
        for item in items:
            table.add_row(*(_cell(item.get(name)) for name in shown))
        print_table(table)
    else:
        typer.echo("no items on this page")
    if page.get("incomplete"):
        typer.echo("the index may lack items; `dynashard index status` says why")
    if page["cursor"] is not None:
        typer.echo(f"more: --cursor {page['cursor']}")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
