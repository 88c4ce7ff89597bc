"""The commands that work outside of a backend, where there is no domain."""

import typer

from dynashard_tools.new.command import new

app = typer.Typer(
    name="dynashard",
    help="Make a Dynashard backend. In the folder of one, `dynashard` has many more commands.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


@app.callback()
def _root() -> None:
    """Keep the command's name although it is the only one."""


app.command(no_args_is_help=True)(new)
