"""`Entity`: the class that declarations derive from."""

from collections.abc import Sequence
from inspect import signature
from typing import Any, ClassVar, TypeVar

from pydantic import PydanticUserError
from pydantic._internal._model_construction import ModelMetaclass

from dynashard.entity.compilation import compile_entity
from dynashard.entity.declaration import Index, Key, Shards, WrongDeclarationError
from dynashard.entity.definition import EntityDefinition
from dynashard.entity.handling import Handling
from dynashard.entity.mistakes import KEY_EXAMPLE, NAME_EXAMPLE, check_arguments, check_parts
from dynashard.entity.record import Record
from dynashard.entity.registry import REGISTRY, Registry
from dynashard.entity.serialization import canonical_serializer
from dynashard.errors import DeclarationError

_DEFINITION = "__dynashard_definition__"
_BOTH = f"{NAME_EXAMPLE}, {KEY_EXAMPLE}"


class _Declaring(ModelMetaclass):
    """Raises `DeclarationError` for the errors of pydantic."""

    def __new__(cls, called: str, bases: tuple[type, ...], namespace: dict[str, Any], **arguments: Any) -> Any:
        try:
            return super().__new__(cls, called, bases, namespace, **arguments)
        except (PydanticUserError, NameError) as error:
            name = arguments.get("name")
            first = str(error).partition("\n")[0]
            hint = (
                "; write each field as `name: type`" if "non-annotated" in first or "type annotation" in first else ""
            )
            raise DeclarationError(name if isinstance(name, str) else called, f"{first}{hint}") from error


class Entity(Record, metaclass=_Declaring):
    """A kind of record: derive from it, with the declaration as class arguments.

        class User(Entity, name="user.v1.User",
                   key=Key(partition="{tenant_id}", sort="{id}"), shards=Shards(16)):
            tenant_id: str
            id: str = new_id()

    Class arguments:
        name: the entity's name, unique in its registry; first part of its keys unless `key.prefix` is set.
        key: where its items live.
        shards: over how many shards a logical partition is spread; unsharded if left out.
        indexes: other orders in which to list the items, at most one a slot.
        expires: the `datetime | None` field that says when an item expires (kept to the second).
        handling: how writes go about lost answers unless a call says otherwise: `plain`, `guarded` or `exactly-once`.
        registry: where names and shared partitions are checked; one for the process unless tests say otherwise.

    A derived class without these is an ordinary base class.

    Raises:
        DeclarationError: while the class is created, with the entity's name and the reason.
    """

    __dynashard_definition__: ClassVar[EntityDefinition[Any] | None] = None

    def __init_subclass__(
        cls,
        *,
        name: str | None = None,
        key: Key | None = None,
        shards: Shards | None = None,
        indexes: Sequence[Index] = (),
        expires: str | None = None,
        handling: str = Handling.PLAIN,
        registry: Registry = REGISTRY,
        **config: Any,
    ) -> None:
        super().__init_subclass__()
        try:
            # Pydantic has already removed the arguments of its own configuration.
            check_arguments(config, _arguments())
        except WrongDeclarationError as error:
            raise DeclarationError(name if isinstance(name, str) else cls.__name__, str(error)) from error

    @classmethod
    def __pydantic_init_subclass__(
        cls,
        *,
        name: str | None = None,
        key: Key | None = None,
        shards: Shards | None = None,
        indexes: Sequence[Index] = (),
        expires: str | None = None,
        handling: str = Handling.PLAIN,
        registry: Registry = REGISTRY,
        **config: Any,
    ) -> None:
        super().__pydantic_init_subclass__()
        if cls.__pydantic_complete__ and (serializer := canonical_serializer(cls.__pydantic_core_schema__)):
            cls.__pydantic_serializer__ = serializer
        if name is None and key is None:
            if shards is not None or indexes or expires is not None:
                raise DeclarationError(cls.__name__, f"an entity needs a name and a key; write {_BOTH}")
            setattr(cls, _DEFINITION, None)
            return
        if name is None or key is None:
            raise DeclarationError(name or cls.__name__, f"an entity needs both a name and a key; write {_BOTH}")
        called = name if isinstance(name, str) else cls.__name__
        if not cls.__pydantic_complete__:
            raise DeclarationError(called, "a field is of a type that is not defined yet: define it above the entity")
        try:
            checked = check_parts(name, key, shards, indexes, expires)
            definition = compile_entity(cls, name=name, key=key, shards=shards, indexes=checked, expires=expires)
            definition.handling = checked_handling(handling)
            registry.add(definition)
        except WrongDeclarationError as error:
            raise DeclarationError(called, str(error)) from error
        setattr(cls, _DEFINITION, definition)


def _arguments() -> list[str]:
    parameters = signature(Entity.__init_subclass__).parameters.values()
    return [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]


def checked_handling(value: str) -> Handling:
    """The level that a declaration names.

    Raises:
        WrongDeclarationError: there is no such level.
    """
    if value not in tuple(Handling):
        raise WrongDeclarationError(f"handling is {value!r}: write one of {', '.join(map(repr, map(str, Handling)))}")
    return Handling(value)


E = TypeVar("E", bound=Entity)


def definition(model: type[E]) -> EntityDefinition[E]:
    """The compiled declaration of an entity class.

    Raises:
        DeclarationError: the class declares no entity of its own.
    """
    found = model.__dict__.get(_DEFINITION)
    if found is None:
        raise DeclarationError(model.__name__, "declares no entity: give the class a name and a key")
    compiled: EntityDefinition[E] = found
    return compiled
