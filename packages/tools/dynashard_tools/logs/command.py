"""`dynashard logs`."""

import json
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table

from dynashard.cures import hint
from dynashard_tools.entities import declared
from dynashard_tools.failure import CommandError
from dynashard_tools.logs.insights import Row
from dynashard_tools.logs.lookups import MOST, SUBJECTS, look_up, path_of, without_repeats
from dynashard_tools.logs.sources import logs_of, window_of
from dynashard_tools.options import AsJson, Environment
from dynashard_tools.printing import fits, print_table


def logs(
    name: Annotated[
        str | None,
        typer.Argument(help="A saved query, or `request`, `item` or `tenant`. If left out, all of them are listed."),
    ] = None,
    value: Annotated[
        str | None, typer.Argument(help="The request's id, the item such as users/ada, or the tenant.")
    ] = None,
    environment: Environment = None,
    minutes: Annotated[int, typer.Option("--minutes", min=1, max=30 * 24 * 60, help="How far back to look.")] = 60,
    *,
    as_json: AsJson = False,
) -> None:
    """Look up a request, an item or a tenant in the logs, or run a saved query over them.

    On a deployed environment CloudWatch runs the query, and bills what it scans, $0.005 a GB. On the local stack it
    runs here, over the logs in DATA_DIR.

    Lines that are wider than the terminal are printed one below the other, as the time and name=value.
    """
    found = logs_of(environment)
    names = found.names()
    if name is None:
        shown = [*(f"{subject} VALUE" for subject in SUBJECTS), *names]
        for line in [json.dumps(names)] if as_json else shown:
            typer.echo(line)
        return
    window = window_of(minutes)
    if name in SUBJECTS:
        if not value:
            raise CommandError(f"the {name} is missing: name it, such as dynashard logs {name} {_EXAMPLES[name]}")
        rows = without_repeats(look_up(name, value, lambda text: found.ask(text, window)))
        if len(rows) >= MOST:
            typer.echo(f"these are the newest {MOST} lines; there may be earlier ones: look up one item", err=True)
    elif value is not None:
        raise CommandError(f"the saved query {name!r} takes no value: leave {value!r} out")
    elif name not in names:
        raise CommandError(f"there is no saved query {name!r}. There are: {', '.join([*SUBJECTS, *names])}")
    else:
        rows = found.run(name, window)
    if not rows and name == "item" and value is not None:
        _warn_of_path(value)
    if as_json:
        typer.echo(json.dumps(rows))
    else:
        _print(rows, name, minutes)


_EXAMPLES = {"request": "Hk3xWjR6oAMEPqA=", "item": "users/ada", "tenant": "abc"}


def _warn_of_path(item: str) -> None:
    """Say that nothing is served at the path of an item; earlier releases may have, so it is looked for first."""
    first, paths = path_of(item), [each.path for each in declared().entities]
    if first not in paths:
        typer.echo(f"no entity has the path {first}{hint(first, paths)}", err=True)


def _print(rows: Sequence[Row], name: str, minutes: int) -> None:
    if not rows:
        typer.echo(f"{name}: nothing in the last {minutes} minutes")
        return
    columns = list(dict.fromkeys(column for row in rows for column in row))
    table = Table(*columns)
    for row in rows:
        table.add_row(*(row.get(column, "").strip() for column in columns))
    if fits(table):
        print_table(table)
        return
    for row in rows:
        values = {column: value.strip() for column, value in row.items() if value.strip()}
        time = values.pop("@timestamp", "")
        typer.echo(" ".join([*filter(None, [time]), *(f"{column}={value}" for column, value in values.items())]))
