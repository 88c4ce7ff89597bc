"""The commands for a backend, which are all."""

from typing import Annotated

import typer

from dynashard_tools.app import new_app
from dynashard_tools.catalog import COMMANDS
from dynashard_tools.version import VERSION

app = new_app(
    "Load, inspect and operate a Dynashard backend: the local stack, or a deployed one with --env.", COMMANDS.values()
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it so
    if wanted:
        typer.echo(f"dynashard {VERSION}")
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Accept the options before a command."""
