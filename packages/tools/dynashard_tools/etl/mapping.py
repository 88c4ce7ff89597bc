"""The map of an ETL: a function in a Python file."""

import sys
from collections.abc import Callable, Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final

from dynashard import Entity, definition
from dynashard_tools.failure import CommandError

Change = Callable[[Any], Mapping[str, Any] | None]
"""Returns the fields that an item should have, or None. Fields that it already has are not changed."""
FUNCTION: Final = "change"


def load_map(path: Path) -> Change:
    """Import a file, and return its function `change`.

    Raises:
        CommandError: the file does not exist, cannot be imported, or has no such function.
    """
    spec = spec_from_file_location("dynashard_etl_map", path) if path.suffix == ".py" else None
    if spec is None or spec.loader is None:
        raise CommandError(f"{path} is not a Python file: name a .py file with a function `{FUNCTION}`")
    module = module_from_spec(spec)
    # Annotations that are texts are looked up there, as those of data classes.
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except FileNotFoundError as error:
        raise CommandError(f"{error.filename} cannot be read: it does not exist") from error
    except Exception as error:
        raise CommandError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    function = getattr(module, FUNCTION, None)
    if not callable(function):
        raise CommandError(f"{path} has no function `{FUNCTION}(item)`")
    return function  # type: ignore[no-any-return]


def named(item: Entity) -> str:
    """Name an item by its key alone, because its other fields may be confidential."""
    fields = ", ".join(f"{name}={getattr(item, name)!r}" for name in definition(type(item)).key_fields)
    return f"{type(item).__name__}({fields})"


def changed_fields(change: Change, item: Entity) -> dict[str, Any]:
    """Return the fields that a map changes of an item.

    Raises:
        CommandError: the map fails, or returns something that is not a mapping of fields.
    """
    try:
        wanted = change(item.model_copy(deep=True))
    except Exception as error:
        raise CommandError(f"the map fails for {named(item)}: {type(error).__name__}: {error}") from error
    if wanted is None:
        return {}
    if not isinstance(wanted, Mapping):
        raise CommandError(f"the map returns {wanted!r} for {named(item)}: return a mapping of fields, or None")
    missing = object()
    return {name: value for name, value in wanted.items() if getattr(item, name, missing) != value}
