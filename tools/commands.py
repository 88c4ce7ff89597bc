"""All commands of the command line."""

import typer

from tools.account.command import account
from tools.copies.command import copies
from tools.details.command import details
from tools.etl.command import etl
from tools.export.command import export
from tools.load.command import HELP, load
from tools.plot.command import plot
from tools.queue.command import queue
from tools.reshard.command import reshard
from tools.rollups.command import rollups
from tools.topology.command import topology
from tools.verify.command import HELP as VERIFY_HELP
from tools.verify.command import verify

app = typer.Typer(
    name="dynashard",
    help="Load, look at and operate a Dynashard backend: the local stack, or with --env a deployed one.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command(help=HELP)(load)
app.command()(topology)
app.command()(etl)
app.command(help=VERIFY_HELP)(verify)
app.add_typer(reshard, name="reshard")
app.add_typer(plot, name="plot")
app.add_typer(export, name="export")
app.add_typer(queue, name="queue")
app.add_typer(rollups, name="rollups")
app.add_typer(details, name="details")
app.add_typer(account, name="account")
app.add_typer(copies, name="copies")
