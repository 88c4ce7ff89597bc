"""The domain's entities, and their logical partitions, as the command line names them."""

from typing import Any

from domain import ENTITIES, Exposed
from dynashard import Entity, definition
from dynashard.entity.declaration import DEFAULT_SEPARATOR
from tools.failure import CommandError


def models() -> list[type[Entity]]:
    """The classes of all entities."""
    return [each.entity for each in ENTITIES]


def exposed(name: str) -> Exposed:
    """The entity of a name: its outside one, `users`, or its own, `user.v1.User`.

    Raises:
        CommandError: there is none; names those there are.
    """
    for each in ENTITIES:
        if name in (each.path, definition(each.entity).name):
            return each
    raise CommandError(f"no entity is called {name!r}; there are {', '.join(each.path for each in ENTITIES)}")


def names_beginning(incomplete: str) -> list[str]:
    """The outside names of entities that begin so, for completion in a shell."""
    return [each.path for each in ENTITIES if each.path.startswith(incomplete)]


def partition_fields(model: type[Entity], text: str) -> dict[str, Any]:
    """A partition's fields from `abc` or `abc:engineering`: no such field holds a colon.

    Raises:
        CommandError: there are more or fewer parts than fields.
        InvalidValueError: a field does not take its value.
    """
    found = definition(model)
    fields, values = found.partition_fields, text.split(DEFAULT_SEPARATOR)
    if len(fields) != len(values):
        wanted = DEFAULT_SEPARATOR.join(fields)
        raise CommandError(f"a partition of {found.name} is given as {wanted}; {text!r} has {len(values)} parts")
    return {name: found.check_value(name, value) for name, value in zip(fields, values, strict=True)}


def logical_partition(model: type[Entity], text: str) -> str:
    """The logical partition, such as `user.v1.User:abc`, that `abc` names.

    Raises:
        CommandError, InvalidValueError: as `partition_fields`.
        InvalidKeyError: a value cannot stand in a key.
    """
    return definition(model).logical_partition(partition_fields(model, text))
