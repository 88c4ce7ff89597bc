"""All commands of the command line."""

from typing import Annotated

import typer

from dynashard_checks.preflight.command import preflight
from dynashard_checks.verify_aws.command import verify_aws
from dynashard_lab.plan.command import plan
from dynashard_lab.simulate.command import simulate
from dynashard_tools.access.command import access
from dynashard_tools.account.command import account
from dynashard_tools.app import new_app
from dynashard_tools.backfills.index import index
from dynashard_tools.backfills.migrate import migrate
from dynashard_tools.etl.command import etl
from dynashard_tools.events.command import events
from dynashard_tools.export.command import export
from dynashard_tools.hot.command import hot
from dynashard_tools.items.command import delete, get, list_, put
from dynashard_tools.load.command import load
from dynashard_tools.logs.command import logs
from dynashard_tools.new.command import new, upgrade
from dynashard_tools.plot.command import plot
from dynashard_tools.queue.command import queue
from dynashard_tools.reshard.command import reshard
from dynashard_tools.restore.command import restore
from dynashard_tools.rollback.command import rollback
from dynashard_tools.topology.command import topology
from dynashard_tools.unique.command import unique
from dynashard_tools.verify.command import verify
from dynashard_tools.version import VERSION

app = new_app("Load, inspect and operate a Dynashard backend: the local stack, or a deployed one with --env.")


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


app.command(no_args_is_help=True)(new)
app.command()(upgrade)
app.command(no_args_is_help=True)(get)
app.command("list", no_args_is_help=True)(list_)
app.command(no_args_is_help=True)(put)
app.command(no_args_is_help=True)(delete)
app.command()(load)
app.command(no_args_is_help=True)(plan)
app.command(no_args_is_help=True)(preflight)
app.command()(access)
app.command()(topology)
app.command()(hot)
app.command()(logs)
app.command()(etl)
app.command(no_args_is_help=True)(restore)
app.command(no_args_is_help=True)(rollback)
app.command()(verify)
app.command()(verify_aws)
app.command()(simulate)
app.command(no_args_is_help=True)(migrate)
app.add_typer(index, name="index")
app.add_typer(reshard, name="reshard")
app.add_typer(plot, name="plot")
app.add_typer(export, name="export")
app.add_typer(queue, name="queue")
app.add_typer(events, name="events")
app.add_typer(account, name="account")
app.add_typer(unique, name="unique")
