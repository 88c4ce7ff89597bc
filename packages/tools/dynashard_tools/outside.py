"""The commands that work outside of a backend, where there is no domain."""

import sys
from typing import Final

from dynashard_tools.app import VARIABLE, new_app
from dynashard_tools.catalog import COMMANDS
from dynashard_tools.failure import CommandError

_NEW: Final = COMMANDS["new"]

_APP = new_app(
    "Make a Dynashard backend. In the folder of one, `dynashard` has many more commands. For tables of your own, set "
    f"{VARIABLE} to your program's Dynashard, such as shop:db; then `dynashard` changes their counts and verifies "
    "them.",
    [_NEW],
)


@_APP.callback()
def _root() -> None:
    """Keep the command's name although it is the only one."""


def app(*, prog_name: str) -> None:
    """Run the command of this process.

    Raises:
        CommandError: the command is for a backend, or for tables that are not named.
    """
    named = sys.argv[1:2]
    if named and named[0] != _NEW.name and not named[0].startswith("-"):
        raise CommandError(
            f"there is no backend here, and {named[0]} needs one: run it in its folder. For tables of your own, name "
            f"your program's Dynashard: {VARIABLE}=shop:db {prog_name} {' '.join(sys.argv[1:])}"
        )
    _APP(prog_name=prog_name)
