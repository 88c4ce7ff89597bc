"""What the commands of every place have in common: those of a backend, of a program's own tables, and of neither."""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from dynashard_tools.interrupts import ends_at_once

VARIABLE: Final = "DYNASHARD_DB"
"""Names a `Dynashard` of a program, or a function that returns one: `MODULE:NAME`."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A command as the help of `dynashard` lists it, which does not import the command.

    Attributes:
        name: its name on the command line.
        place: its function, or its group of commands: `MODULE:NAME`.
        summary: the first paragraph of its help.
        needs_arguments: it prints its help if it is called without any.
    """

    name: str
    place: str
    summary: str
    needs_arguments: bool = False

    def load(self) -> Any:
        """Import the command, and return it as click calls it."""
        module, _, name = self.place.partition(":")
        with ends_at_once():
            found = getattr(import_module(module), name)
        alone = new_app("")
        if isinstance(found, typer.Typer):
            alone.add_typer(found, name=self.name)
        else:
            alone.command(self.name, no_args_is_help=self.needs_arguments)(found)
        return get_group(alone).commands[self.name]


class _Unloaded(TyperCommand):
    """Stands for a command that is not imported. Its callback returns the command."""


class LazyGroup(TyperGroup):
    """Imports a command when it is called, or when its arguments are completed; for help it has the summaries."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first argument names, as click asks for it."""
        name, command, rest = super().resolve_command(ctx, args)
        if isinstance(command, _Unloaded) and command.callback:
            command = self.commands[command.name or ""] = command.callback()
        return name, command, rest


def new_app(text: str, commands: Iterable[Listed] = ()) -> typer.Typer:
    """Return a program, or a group of commands, with this help. These commands are imported when they are called."""
    app = typer.Typer(
        name="dynashard",
        cls=LazyGroup,
        help=text,
        no_args_is_help=True,
        # The lines of a docstring are filled to the width of the terminal.
        rich_markup_mode="markdown",
        # Applies to every command.
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
    )
    for each in commands:
        app.command(each.name, cls=_Unloaded, help=each.summary)(each.load)
    return app
