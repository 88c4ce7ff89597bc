"""How items are shown: JSON, or for people a table."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import typer
from rich.console import Console
from rich.table import Table


def show_item(item: Mapping[str, Any]) -> None:
    """Print an item as JSON: indented on a terminal, one line elsewhere."""
    typer.echo(json.dumps(item, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None))


def show_page(page: Mapping[str, Any], columns: Sequence[str], *, as_json: bool) -> None:
    """Print a page: as a table on a terminal, elsewhere as one JSON object.

    Args:
        page: its items and cursor.
        columns: the fields, in the order of the table. Those that no item has are left out.
        as_json: print JSON on a terminal too.
    """
    if as_json or not sys.stdout.isatty():
        typer.echo(json.dumps(page, ensure_ascii=False))
        return
    items = page["items"]
    shown = [name for name in columns if any(item.get(name) is not None for item in items)]
    if items:
        table = Table(*shown)
        for item in items:
            table.add_row(*(_cell(item.get(name)) for name in shown))
        # Values are shown as they are: rich would take `:abc:` for an emoji, and `[abc]` for a style.
        Console(emoji=False, markup=False, highlight=False).print(table)
    else:
        typer.echo("no items on this page")
    if page["cursor"] is not None:
        typer.echo(f"more: --cursor {page['cursor']}")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
