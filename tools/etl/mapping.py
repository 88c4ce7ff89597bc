"""The map of an ETL: a function in a Python file."""

from collections.abc import Callable, Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final

from dynashard import Entity, definition
from tools.failure import CommandError

Change = Callable[[Any], Mapping[str, Any] | None]
"""From an item to the fields it should have, or None: those that it has already are no change."""
FUNCTION: Final = "change"


def load_map(path: Path) -> Change:
    """The function `change` of a file. What the file does when it is imported is done.

    Raises:
        CommandError: there is no such file or function, or the file cannot be imported.
    """
    spec = spec_from_file_location("dynashard_etl_map", path) if path.suffix == ".py" else None
    if spec is None or spec.loader is None:
        raise CommandError(f"{path} is no Python file: the map is a function `{FUNCTION}` in a file that ends in .py")
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except FileNotFoundError as error:
        raise CommandError(f"{error.filename} cannot be read: there is no such file") from error
    except Exception as error:
        raise CommandError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    function = getattr(module, FUNCTION, None)
    if not callable(function):
        raise CommandError(f"{path} has no function `{FUNCTION}(item)`")
    return function  # type: ignore[no-any-return]


def named(item: Entity) -> str:
    """An item by its key alone: what else it holds may be nobody's business."""
    fields = ", ".join(f"{name}={getattr(item, name)!r}" for name in definition(type(item)).key_fields)
    return f"{type(item).__name__}({fields})"


def changed_fields(change: Change, item: Entity) -> dict[str, Any]:
    """The fields of an item that its map wants otherwise.

    Raises:
        CommandError: the map fails, or gives something that is not a mapping of fields.
    """
    try:
        wanted = change(item.model_copy(deep=True))
    except Exception as error:
        raise CommandError(f"the map fails for {named(item)}: {type(error).__name__}: {error}") from error
    if wanted is None:
        return {}
    if not isinstance(wanted, Mapping):
        raise CommandError(f"the map gives {wanted!r} for {named(item)}: give a mapping of fields, or None")
    missing = object()
    return {name: value for name, value in wanted.items() if getattr(item, name, missing) != value}
