"""The commands for a program with tables of its own, which `DYNASHARD_DB` names."""

from typing import Final

from dynashard_tools.app import new_app
from dynashard_tools.catalog import COMMANDS

_NAMES: Final = (
    "get", "list", "put", "delete", "load", "topology", "hot", "verify", "migrate", "new", "export", "reshard", "index",
    "unique",
)  # fmt: skip

app = new_app(
    "Operate the tables of the program that DYNASHARD_DB names. Without it, commands are for a backend.",
    (COMMANDS[name] for name in _NAMES),
)
