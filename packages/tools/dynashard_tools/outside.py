"""The commands that work outside of a backend, where there is no domain."""

import sys

from dynashard_tools.app import new_app
from dynashard_tools.failure import CommandError
from dynashard_tools.new.command import new
from dynashard_tools.program import VARIABLE

_APP = new_app(
    "Make a Dynashard backend. In the folder of one, `dynashard` has many more commands. For tables of your own, set "
    f"{VARIABLE} to your program's Dynashard, such as shop:db; then `dynashard` changes their counts and verifies them."
)


@_APP.callback()
def _root() -> None:
    """Keep the command's name although it is the only one."""


_APP.command(no_args_is_help=True)(new)


def app(*, prog_name: str) -> None:
    """Run the command of this process.

    Raises:
        CommandError: the command is for a backend, or for tables that are not named.
    """
    named = sys.argv[1:2]
    if named and named[0] != new.__name__ and not named[0].startswith("-"):
        raise CommandError(
            f"there is no backend here, and {named[0]} needs one: run it in its folder. For tables of your own, name "
            f"your program's Dynashard: {VARIABLE}=shop:db {prog_name} {' '.join(sys.argv[1:])}"
        )
    _APP(prog_name=prog_name)
