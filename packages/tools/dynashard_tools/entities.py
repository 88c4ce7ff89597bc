"""Finds the domain's entities and logical partitions by the names of the command line."""

import os
from collections.abc import Sequence
from typing import Any

from dynashard import Entity, definition
from dynashard.cures import hint
from dynashard.entity import EntityDefinition
from dynashard.entity.declaration import DEFAULT_SEPARATOR
from dynashard.resharding.scope import Family
from dynashard.topology import family_of
from dynashard_serving.declare import Exposed
from dynashard_serving.documents import TENANT
from dynashard_serving.domain import Domain
from dynashard_serving.domain import declared as declared_by_backend
from dynashard_tools.counting import plural
from dynashard_tools.failure import CommandError
from dynashard_tools.program import program_of


def declared() -> Domain:
    """Return what commands work on: the domain of the backend, or the entities of the program in `DYNASHARD_DB`."""
    program = program_of(os.environ)
    return declared_by_backend() if program is None else program.domain


def models() -> list[type[Entity]]:
    """The classes of all entities."""
    return list(declared().models)


def exposed(name: str) -> Exposed:
    """Return the entity of a name such as `users` or `user.v1.User`.

    Raises:
        CommandError: there is none; the message has the nearest name, and lists all.
    """
    entities = declared().entities
    named = {called: each for each in entities for called in (each.path, definition(each.entity).name)}
    if name not in named:
        paths = ", ".join(each.path for each in entities)
        raise CommandError(f"no entity is called {name!r}{hint(name, named) or '.'} There are: {paths}")
    return named[name]


def loadable() -> list[Exposed]:
    """Return what can be loaded: of a program, all; of a backend, what it does not write itself, such as copies."""
    entities = declared().entities
    return list(entities) if program_of(os.environ) else [each for each in entities if "create" in each.operations]


def sharing(entity: EntityDefinition[Any]) -> tuple[str, ...]:
    """Return the names of the other entities that share an entity's logical partitions."""
    others = (definition(model) for model in models())
    return tuple(each.name for each in others if each is not entity and family_of(each) == family_of(entity))


def family(entity: EntityDefinition[Any]) -> Family:
    """Return an entity with the others that share its logical partitions, which tell whose a stored item is."""
    others = [each for each in map(definition, models()) if each is not entity and family_of(each) == family_of(entity)]
    return Family([entity, *others])


def own_rows(entity: EntityDefinition[Any]) -> str:
    """Return the condition on `#type` of a Scan for an entity's rows; some have no type, and `family` knows whose."""
    return "(attribute_not_exists(#type) OR #type = :type)" if entity.untyped else "#type = :type"


def names_beginning(incomplete: str) -> list[str]:
    """Return the names of entities for completion in a shell."""
    return [each.path for each in declared().entities if each.path.startswith(incomplete)]


def tenant_of(text: str) -> str:
    """Return the tenant that `abc` or `tenant_id=abc` names. No tenant of the API has a `=`."""
    return text.removeprefix(f"{TENANT}=")


def partition_fields(model: type[Entity], text: str) -> dict[str, Any]:
    """Parse a partition's fields from `abc`, `abc:engineering` or `tenant_id=abc`; no value may contain a colon.

    The text of a partition without fields is empty.

    Raises:
        CommandError: there are more or fewer parts than fields.
        InvalidValueError: a field does not accept its value.
    """
    found = definition(model)
    return named_fields(model, found.partition_fields, text, f"a partition of {found.name}")


def named_fields(model: type[Entity], names: Sequence[str], text: str, what: str) -> dict[str, Any]:
    """Parse these fields from a text such as `abc:engineering`; `what` describes them in the error. Raises as above."""
    found, values = definition(model), text.split(DEFAULT_SEPARATOR) if names or text else []
    if len(names) != len(values):
        form = DEFAULT_SEPARATOR.join(names) or repr("")
        parts = plural(len(values), "part")
        raise CommandError(f"{what} has the form {form}, but {text!r} has {parts}")
    pairs = [value.partition("=") for value in values]
    if sorted(name for name, equals, _ in pairs if equals) == sorted(names):
        # As `list` takes them; a value that begins with the name of its field is written after that name as well.
        return {name: found.assignment.check(name, value) for name, _, value in pairs}
    return {name: found.assignment.check(name, value) for name, value in zip(names, values, strict=True)}


def logical_partition(model: type[Entity], text: str) -> str:
    """Return the logical partition, such as `user.v1.User:abc`, that `abc` names; raises as `partition_fields`.

    Raises:
        InvalidKeyError: a value cannot be part of a key.
    """
    return definition(model).logical_partition(partition_fields(model, text))
