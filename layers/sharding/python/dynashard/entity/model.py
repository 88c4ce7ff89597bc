"""`Entity`: the class that declarations derive from."""

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import PydanticUserError
from pydantic._internal._model_construction import ModelMetaclass

from dynashard.cures import hint
from dynashard.entity.checks import guarantee_problems
from dynashard.entity.compilation import compile_entity
from dynashard.entity.declaration import (
    KEY_EXAMPLE,
    NAME_EXAMPLE,
    Index,
    Key,
    Shards,
    Unique,
    WrongDeclarationError,
    refuse,
)
from dynashard.entity.definition import EntityDefinition
from dynashard.entity.guarantee import WriteGuarantee, guarantee_of
from dynashard.entity.mistakes import (
    check_arguments,
    check_parts,
    check_unique,
    hidden_method,
    pydantic_problem,
)
from dynashard.entity.registry import REGISTRY, Registry
from dynashard.entity.serialization import canonical_serializer
from dynashard.entity.versions import Upgrade
from dynashard.errors import DeclarationError, InvalidQueryError
from dynashard.record import Record

_DEFINITION: Final = "__dynashard_definition__"
_CALLS: Final = {
    "delete": "delete", "put": "put", "refresh": "get", "reload": "get", "remove": "delete", "save": "put",
    "update": "update",
}  # fmt: skip
"""What items of other libraries can do by themselves."""
_REVISION: Final = dict.fromkeys(("etag", "rev", "version"), "item.revision")


class _EntityType(ModelMetaclass):
    """Compiles the declaration in a class's arguments; raises `DeclarationError`, for the errors of pydantic too."""

    def __new__(
        cls,
        called: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        name: str | None = None,
        key: Key | None = None,
        shards: Shards | None = None,
        indexes: Sequence[Index] = (),
        expires: str | None = None,
        unique: str | Unique | Sequence[str | Unique] = (),
        handling: str = WriteGuarantee.PLAIN,
        version: int | None = None,
        upgrade: Mapping[int, Upgrade] | None = None,
        registry: Registry = REGISTRY,
        **config: Any,
    ) -> Any:
        entity = name if isinstance(name, str) else called
        declares = any(part is not None for part in (name, key, shards, expires, version, upgrade)) or indexes or unique
        if declares and (name is None or key is None):
            example = f"{NAME_EXAMPLE}, key={KEY_EXAMPLE}"
            raise DeclarationError(entity, f"an entity needs both a name and a key; write {example}")
        try:
            model: Any = super().__new__(cls, called, bases, namespace, **config)
            if model.__pydantic_complete__ and (canonical := canonical_serializer(model.__pydantic_core_schema__)):
                model.__pydantic_serializer__ = canonical
            if name is None or key is None:
                return model
            checked = check_parts(name, key, shards, indexes, expires)
            if not isinstance(registry, Registry):
                refuse([f"registry is {registry!r}: write registry=Registry()"])
            compiled = compile_entity(
                model,
                name=name,
                key=key,
                shards=shards,
                indexes=checked,
                expires=expires,
                version=version,
                upgrade=upgrade,
            )
            if unique:
                from dynashard.entity.unique_fields import add_unique  # noqa: PLC0415 - few entities have such fields

                add_unique(compiled, check_unique(unique))
            compiled.guarantee = guarantee_of(handling, WriteGuarantee.PLAIN)
            refuse(guarantee_problems(compiled.guarantee, attachments=compiled.attachments, shards=shards))
            registry.add(compiled)
        except (PydanticUserError, NameError) as error:
            raise DeclarationError(entity, pydantic_problem(error, called, () if declares else namespace)) from error
        except (WrongDeclarationError, InvalidQueryError) as error:
            raise DeclarationError(entity, str(error)) from error
        except ValueError as error:
            if hidden := hidden_method(error):
                raise DeclarationError(entity, hidden) from error
            raise
        setattr(model, _DEFINITION, compiled)
        return model

    if not TYPE_CHECKING:
        # Type checkers refuse unknown names by themselves.
        def __getattr__(cls, name: str) -> Any:  # noqa: N805 - of a metaclass
            try:
                return super().__getattr__(name)
            except AttributeError:
                if name.startswith("_"):
                    raise
                fields = cls.__dict__.get("__pydantic_fields__", ())
                its_items = f"write db.collection({cls.__name__})"
                cure = f'a field is named by its text, "{name}"' if name in fields else its_items
                message = f"{cls.__name__} has no attribute {name}; {cure}"
                raise AttributeError(message, name=name, obj=cls) from None


EntityType = _EntityType
"""For packages whose declarations take more arguments."""

if TYPE_CHECKING:
    # Type checkers take the arguments of `User(...)` from the fields only if the metaclass is pydantic's own.
    _Metaclass = ModelMetaclass
else:
    _Metaclass = _EntityType


class Entity(Record, metaclass=_Metaclass):
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
        unique: names of fields that no two live items may have in common, or `Unique` of several together.
        handling: how writes handle lost answers by default: `plain`, `guarded` or `exactly-once`.
        version: the number of this form of the declaration, from 1 on; 1 if left out.
        upgrade: functions by version: each makes the values of a stored item of that version those of the next one. See
            `dynashard.entity.versions`.
        registry: checks names and shared partitions; tests replace the one of the process.

    A derived class without these is an ordinary base class.

    Raises `DeclarationError` while the class is created, with the entity's name and the reason.
    """

    def __init_subclass__(cls, **unknown: Any) -> None:
        # Pydantic has already removed its configuration.
        super().__init_subclass__()
        meta: Any = type(cls)
        kinds = [kind for kind in meta.__mro__ if issubclass(kind, _EntityType) and "__new__" in vars(kind)]
        parameters = [each for kind in reversed(kinds) for each in signature(kind.__new__).parameters.values()]
        check_arguments(unknown, [each.name for each in parameters if each.kind is each.KEYWORD_ONLY])

    if not TYPE_CHECKING:
        # Type checkers refuse unknown names by themselves.
        def __getattr__(self, name: str) -> Any:
            try:
                return super().__getattr__(name)
            except AttributeError:
                kind = type(self)
                if name.startswith("_") or hasattr(kind, name):
                    raise
                call = f"; write db.collection({kind.__name__}).{_CALLS.get(name)}(...)" if name in _CALLS else ""
                cure = call or hint(name, (*kind.model_fields, "revision"), _REVISION)
                raise AttributeError(f"{kind.__name__} has no attribute {name}{cure}", name=name, obj=self) from None


E = TypeVar("E", bound=Entity)


def definition(model: type[E]) -> EntityDefinition[E]:
    """Return the compiled declaration of an entity class; raises `DeclarationError` if it declares none itself."""
    if not isinstance(model, type):
        shown = repr(model) if isinstance(model, str) else f"a {type(model).__name__}"
        raise DeclarationError(shown, "is not the class of an entity: write the class itself, such as User")
    compiled: EntityDefinition[E] | None = model.__dict__.get(_DEFINITION)
    if compiled is None:
        raise DeclarationError(model.__name__, "declares no entity: give the class a name and a key")
    return compiled
