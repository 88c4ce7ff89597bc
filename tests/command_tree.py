"""The commands of a backend with all that help lists, imported."""

from collections.abc import Iterator

import typer
from typer.core import TyperGroup
from typer.main import get_command

from dynashard_tools.commands import app


def command_tree() -> TyperGroup:
    """Return the command line with every command imported."""
    root = get_command(app)
    assert isinstance(root, TyperGroup)
    for name in root.commands:
        root.resolve_command(typer.Context(root), [name])
    return root


def paths(group: TyperGroup, *path: str) -> Iterator[tuple[str, ...]]:
    """Return the names of all commands and groups."""
    yield path
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from paths(command, *path, name)
        else:
            yield (*path, name)
