"""The program that `DYNASHARD_DB` names: commands work on its tables instead of those of a backend."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

from dynashard import Dynashard, definition
from dynashard.growth.opening import Tables
from dynashard_serving.declare import Exposed, exposure_of
from dynashard_serving.discovery import found_in
from dynashard_serving.domain import Domain, domain_of
from dynashard_tools.app import VARIABLE
from dynashard_tools.failure import CommandError


@dataclass(frozen=True, slots=True)
class Program:
    """A program with tables of its own.

    Attributes:
        name: the value of the variable.
        db: its `Dynashard`.
        tables: the tables of that, and how it reaches them.
        domain: the entities that it has declared. The command line calls them by their classes' names.
    """

    name: str
    db: Dynashard
    tables: Tables
    domain: Domain


def program_of(environ: Mapping[str, str]) -> Program | None:
    """Return the program that the environment names, whose module is imported once; None if it names none.

    Raises:
        CommandError: there is no such module or name, or it is not a `Dynashard` with a table of shard counts.
    """
    name = environ.get(VARIABLE)
    return _program(name) if name else None


@cache
def _program(name: str) -> Program:
    module, _, attribute = name.partition(":")
    db = _opened(name, module, attribute)
    if db.tables is None:
        raise CommandError(f"{VARIABLE} is {name}, which has no table of shard counts: give it topology_table=")
    return Program(name, db, db.tables, _domain(module, db))


def _opened(name: str, module: str, attribute: str) -> Dynashard:
    if not module or not attribute:
        raise CommandError(f"{VARIABLE} is {name!r}; it must name a module and a Dynashard in it, such as shop:db")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = getattr(import_module(module), attribute, None)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise CommandError(
            f"{VARIABLE} is {name}, and there is no module {error.name}: run this in its folder"
        ) from None
    db = found() if _opens(found) else found
    if not isinstance(db, Dynashard):
        raise CommandError(
            f"{VARIABLE} is {name}, and {attribute} of {module} is not a Dynashard, nor a function that returns one"
        )
    return db


def _opens(found: object) -> bool:
    """Whether a name of a program is a function without arguments, such as one that opens its tables."""
    if isinstance(found, type) or not callable(found):
        return False
    parameters = signature(found).parameters.values()
    return all(
        each.default is not each.empty or each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters
    )


def _domain(module: str, db: Dynashard) -> Domain:
    """Return the entities of the tables: all that this process has declared, or those that the program names.

    Packages of ours declare some for the tables of backends.
    """
    known = [each.model for each in db.resharder().entities]
    models = [each for each in known if not each.__module__.startswith("dynashard")]
    names = [model.__name__ for model in models]
    entities = [
        # Two versions of an entity may be classes of one name.
        exposure_of(model)
        or Exposed(model, path=name if names.count(name) == 1 else definition(model).name, operations=())
        for model, name in zip(models, names, strict=True)
    ]
    found = found_in(dict.fromkeys([module, *(model.__module__ for model in models)]))
    return domain_of(*entities, *(each.value for each in found if not isinstance(each.value, type)))
