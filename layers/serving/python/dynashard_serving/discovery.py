"""Find what a domain declares in its modules, and make the index of a bundle from it.

An entity is declared by its class. Copies, roll-ups, edges, events, and what is served besides entities are declared by
values of a module. An entity without `serve` is known to the command line by its class name in the plural.
"""

import pkgutil
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from dynashard.entity import Entity, definition
from dynashard.errors import ConfigurationError, DeclarationError
from dynashard.topology import family_of
from dynashard_patterns.copies import MaterializedCopies
from dynashard_patterns.edges import Edges
from dynashard_patterns.rollups import RollUps
from dynashard_serving import numbers
from dynashard_serving.access import Access
from dynashard_serving.counter_receipts import Receipt
from dynashard_serving.declare import (
    EDGE_RIGHTS,
    Endpoint,
    Exposed,
    FamilyListing,
    Root,
    ServedCounter,
    ServedEdges,
    ServedRollUps,
    exposure_of,
    item_read_of,
    served_by,
)
from dynashard_serving.dependants import Dependants
from dynashard_serving.documents import TENANT
from dynashard_serving.events import Events

OWN: Final = ("dynashard_serving.operation_records",)
"""Modules of this package that declare entities of every backend."""
OF_THE_API: Final = frozenset({"health", "docs"})
"""Paths at which the API itself answers."""
_WORDS: Final = re.compile(r"[A-Z][a-z0-9]*|[A-Z]+(?![a-z])")
_VALUES: Final = (
    FamilyListing,
    ServedCounter,
    ServedEdges,
    ServedRollUps,
    Endpoint,
    MaterializedCopies,
    RollUps,
    Edges,
    Events,
    Dependants,
)


class Found(NamedTuple):
    """A declaration: its value, and the module and the name by which it is found."""

    module: str
    name: str
    value: Any


class RulesOf(NamedTuple):
    """Who may do what at a path below `/v1`, with the operations that are served there; None without rules."""

    path: str
    rights: Sequence[str]
    access: Access | None


@dataclass(frozen=True, slots=True)
class Declarations:
    """Everything that a domain declares.

    Attributes:
        entities: every entity. One that is not served has no operations.
        served: what has a path besides entities.
        copies: materialized copies of items, which the function `changes` keeps current.
        roll_ups: sums over items, which the function `changes` keeps current.
        edges: relations that are stored at both of their ends.
        events: changes of items that the function `changes` publishes.
    """

    entities: tuple[Exposed, ...] = ()
    served: tuple[FamilyListing | ServedCounter | ServedEdges | ServedRollUps | Endpoint, ...] = ()
    copies: tuple[MaterializedCopies[Any, Any], ...] = ()
    roll_ups: tuple[RollUps[Any], ...] = ()
    edges: tuple[Edges[Any], ...] = ()
    events: tuple[Events, ...] = ()

    @property
    def rules(self) -> Iterator[RulesOf]:
        """Who may do what at each path. A listing of several entities has the rules of all of them, and none here."""
        yield from (RulesOf(one.path, one.operations, one.access) for one in self.entities if one.operations)
        for each in self.served:
            if isinstance(each, ServedCounter):
                yield RulesOf(each.path, each.operations, each.access)
            elif isinstance(each, ServedEdges):
                yield RulesOf(each.path, EDGE_RIGHTS, each.access)
            elif isinstance(each, ServedRollUps):
                yield RulesOf(each.path, ("list",), each.access)
            elif isinstance(each, Endpoint):
                yield RulesOf(each.path, ("list" if each.many else "get",), each.access)

    @property
    def scopes(self) -> Sequence[str]:
        """Every scope that a rule names, in alphabetical order."""
        return sorted({scope for one in self.rules if one.access is not None for scope in one.access.scopes})

    @property
    def paths(self) -> Iterator[tuple[str, Root]]:
        """What is served, by the first segment of its path below `/v1`."""
        yield from ((one.path, one) for one in self.entities if one.operations)
        yield from ((one.path, one) for one in self.served)


def module_names(package: str) -> list[str]:
    """Return the names of a domain's modules, with those of its folders, and of this package's own."""
    return [*_modules(import_module(package)), *OWN]


def found_in(names: Iterable[str]) -> Iterator[Found]:
    """Yield what modules declare, in the order of the modules and of their lines. What they import is not theirs."""
    seen: set[int] = set()
    for module in map(import_module, names):
        for name, value in list(vars(module).items()):
            if _is_declaration(value, module) and id(value) not in seen:
                seen.add(id(value))
                yield Found(module.__name__, name, value)


def declarations_of(values: Iterable[Any]) -> Declarations:
    """Return declarations by their kinds: entities or their `Exposed`, and values such as `FamilyListing` or `Edges`.

    Raises:
        ConfigurationError: a path cannot be served, or a name or a path is used twice.
    """
    given = list(values)
    if any(isinstance(each, ServedCounter) for each in given) and Receipt not in given:
        given.append(Receipt)
    exposed = [each for each in map(_exposure, given) if each is not None]
    if any(each.numbered is not None for each in exposed) and numbers.Sequence not in given:
        given.append(numbers.Sequence)
    served = [each for each in map(served_by, given) if each is not None and not isinstance(each, Exposed)]
    routes = dict(route for each in served for route in _routes(each))
    entities = [replace(each, route=routes.get(each.entity)) for each in map(_exposure, given) if each is not None]
    declarations = Declarations(
        entities=tuple(entities),
        served=tuple(served),
        copies=tuple(each for each in given if isinstance(each, MaterializedCopies)),
        roll_ups=tuple(each for each in given if isinstance(each, RollUps)),
        edges=tuple(each for each in given if isinstance(each, Edges)),
        events=tuple(each for each in given if isinstance(each, Events)),
    )
    _refuse_paths([path for path, _ in declarations.paths])
    for what, names in (
        ("the path", (one.path for one in entities)),
        ("the entity's name", (definition(one.entity).name for one in entities)),
        ("the class name", (one.entity.__name__ for one in entities if one.operations)),
        ("the name of roll-ups", (one.name for one in declarations.roll_ups)),
        ("the entity of events", (definition(one.of).name for one in declarations.events)),
    ):
        if twice := [name for name, times in Counter(names).items() if times > 1]:
            raise ConfigurationError(f"{twice[0]} is {what} of two declarations: give each one of its own")
    return declarations


def index_of(names: Sequence[str]) -> Mapping[str, Any]:
    """Return the index of a bundle: all modules, and by path the name of what is served and the modules it needs.

    An entity needs the modules that add to the rules of its items besides its own: those of copies and roll-ups of it,
    and of entities that share its logical partitions.
    """
    found = list(found_in(names))
    declarations_of(each.value for each in found)
    roots = {}
    for each in found:
        served = served_by(each.value)
        if served is not None and not (isinstance(served, Exposed) and not served.operations):
            roots[served.path] = [each.name, [each.module, *_adding(each, found)]]
    return {"modules": list(names), "roots": roots}


def _adding(each: Found, found: Sequence[Found]) -> list[str]:
    """Return the other modules that add to an entity: to the rules of its items, or to what is served of them."""
    if not isinstance(each.value, type):
        return []
    others = (other.module for other in found if _adds(other.value, each.value))
    return [module for module in dict.fromkeys(others) if module != each.module]


def _adds(value: Any, model: type[Entity]) -> bool:
    if isinstance(value, MaterializedCopies | RollUps | Dependants):
        return value.of is model
    if (read := item_read_of(value)) is not None:
        return read.of is model
    return isinstance(value, type) and family_of(definition(value)) == family_of(definition(model))


def _refuse_paths(paths: Sequence[str]) -> None:
    """Raise `ConfigurationError` for a path that is invalid or used twice."""
    for path, times in Counter(paths).items():
        if not path.replace("-", "").isalnum() or not path.isascii():
            raise ConfigurationError(f"/{path} cannot be a resource: use ASCII letters, digits and - only")
        if path in OF_THE_API:
            raise ConfigurationError(f"/{path} cannot be a resource: the API itself answers there; choose another path")
        if times > 1:
            raise ConfigurationError(f"/{path} cannot be a resource {times} times: give each entity a path of its own")


def _modules(module: ModuleType) -> Iterator[str]:
    yield module.__name__
    for each in sorted(pkgutil.iter_modules(getattr(module, "__path__", ())), key=lambda each: each.name):
        if each.name != "__main__":
            yield from _modules(import_module(f"{module.__name__}.{each.name}"))


def _is_declaration(value: object, module: ModuleType) -> bool:
    if isinstance(value, type):
        return issubclass(value, Entity) and value.__module__ == module.__name__ and _is_entity(value)
    if isinstance(value, FunctionType):
        return value.__module__ == module.__name__ and (served_by(value) or item_read_of(value)) is not None
    return isinstance(value, _VALUES)


def _is_entity(model: type[Entity]) -> bool:
    try:
        definition(model)
    except DeclarationError:
        return False
    return True


def _exposure(value: object) -> Exposed | None:
    if isinstance(value, type) and issubclass(value, Entity):
        return exposure_of(value) or Exposed(value, path=_plural(value), operations=())
    return value if isinstance(value, Exposed) else None


def _plural(model: type[Entity]) -> str:
    name = "-".join(word.lower() for word in _WORDS.findall(model.__name__)) or model.__name__.lower()
    return name if name.endswith("s") else f"{name}s"


def _routes(served: Root) -> Iterator[tuple[type[Entity], str]]:
    """Yield the entities that something else serves, with its path."""
    if isinstance(served, ServedCounter):
        fields = (name for name in definition(served.counter).partition_fields if name != TENANT)
        yield served.counter, "/".join([f"/v1/{served.path}", *(f"{{{name}}}" for name in fields)])
    if isinstance(served, ServedEdges):
        yield served.edges.model, f"/v1/{served.path}"
        if served.edges.counts is not None:
            yield served.edges.counts, f"/v1/{served.path}/counts"
    if isinstance(served, ServedRollUps):
        yield from ((model, f"/v1/{served.path}") for model in served.roll_ups.into)
