"""The commands for a program with tables of its own, which `DYNASHARD_DB` names."""

from dynashard_tools.app import new_app
from dynashard_tools.backfills.index import index
from dynashard_tools.backfills.migrate import migrate
from dynashard_tools.export.command import export
from dynashard_tools.hot.command import hot
from dynashard_tools.items.command import delete, get, list_, put
from dynashard_tools.load.command import load
from dynashard_tools.new.command import new
from dynashard_tools.reshard.command import reshard
from dynashard_tools.topology.command import topology
from dynashard_tools.verify.command import verify

app = new_app("Operate the tables of the program that DYNASHARD_DB names. Without it, commands are for a backend.")
app.command(no_args_is_help=True)(get)
app.command("list", no_args_is_help=True)(list_)
app.command(no_args_is_help=True)(put)
app.command(no_args_is_help=True)(delete)
app.command()(load)
app.add_typer(export, name="export")
app.add_typer(reshard, name="reshard")
app.command()(topology)
app.command()(hot)
app.command()(verify)
app.command(no_args_is_help=True)(migrate)
app.add_typer(index, name="index")
app.command(no_args_is_help=True)(new)
