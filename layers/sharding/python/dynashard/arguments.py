"""Items, keys and updates as callers type them: by keywords, as mappings, or as an item that was read.

Everything here returns what `Repository` takes, or raises an `InputError` that says what to write. Calls with a mapping
of the key, or with an item, pass by it on their way, because reads of single items are the hot path.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from dynashard.cures import hint
from dynashard.entity import Entity, EntityDefinition
from dynashard.errors import InvalidKeyError, InvalidQueryError, InvalidValueError
from dynashard.repository.store import E, KeyLike, Written

if TYPE_CHECKING:
    from dynashard.entity.uniqueness import UniqueDefinition


_OF_BATCHES: Final = {
    "create": "put", "items": "put", "keys": "delete", "puts": "put", "deletes": "delete", "remove": "delete",
}  # fmt: skip
"""What callers call the arguments of batches of writes."""
_BATCHES: Final = {"batch_get": "", "batch_write": "delete="}
"""Calls that take keys in a list, and the name of that list."""
_OF_ITEMS: Final = {
    **dict.fromkeys(("overwrite", "replace", "upsert"), "put(...)"),
    **dict.fromkeys(("if_none_match", "if_not_exists", "unless_exists"), "create(...), which refuses a taken key"),
}
"""What callers give with an item to choose another call."""
_HTTP: Final = ('"', "*")
"""How the values of `If-Match` begin, as HTTP writes it, which no revision does."""


def key_named(
    entity: EntityDefinition[Any], verb: str, key: Any, more: tuple[Any, ...], fields: Mapping[str, Any]
) -> KeyLike:
    """Return the key that a call of `verb` names.

    Args:
        entity: the compiled declaration.
        verb: the method, for examples in errors.
        key: an item, fields of the key, the value of the one field that `fields` leaves open, or None.
        more: further positional arguments, which are refused.
        fields: fields of the key by keyword.

    Raises:
        InvalidKeyError: a field is missing, unknown or given twice; or the item is one of another entity.
    """
    known = entity.key_fields
    for name in fields:
        if name not in known:
            near = hint(name, (*known, "consistent", "handling", "if_match", "include", "strict"))
            ways = "".join(f"; or name {', '.join(each.ordered)}" for each in entity.unique if name in each.fields)
            raise InvalidKeyError(
                f"{name} is not part of the key of {entity.name}, which is {', '.join(known)}"
                f"{ways or _elsewhere(entity, verb, name) or near}",
                field=name,
            )
    if isinstance(key, Entity):
        _require_model(entity, verb, key)
        if fields or more:
            raise InvalidKeyError(f"The item has its key already; write {verb}(item) or {_example(entity, verb)}.")
        return key
    _require_no_answer(verb, key)
    if isinstance(key, Mapping) and not more:
        given = {**key, **fields}
        if twice := key.keys() & fields.keys():
            raise InvalidKeyError(f"{min(twice)} is given twice; give it once.", field=min(twice))
    else:
        given = dict(fields)
        left = [name for name in known if name not in given]
        if more or (key is not None and len(left) != 1):
            typed = ", ".join([*(repr(each) for each in (key, *more)), *(f"{name}=..." for name in fields)])
            raise InvalidKeyError(
                f"{verb}({typed}) does not name the key of {entity.name}, which is {', '.join(known)}; "
                f"write {_example(entity, verb)}",
                field=next(iter(left), None),
            )
        if key is not None:
            given[left[0]] = key
    if missing := [name for name in known if name not in given]:
        raise InvalidKeyError(
            f"{missing[0]} is part of the key of {entity.name} and must be given; write {_example(entity, verb)}",
            field=missing[0],
        )
    return given


def unique_named(
    entity: EntityDefinition[Any], fields: Mapping[str, Any]
) -> "tuple[UniqueDefinition, dict[str, Any]] | None":
    """Return the unique fields that a call names by keyword, and their values; None if it names others.

    Raises `InvalidValueError` if a field refuses its value. Validators normalise it as they do in an item.
    """
    if fields.keys() == set(entity.key_fields):
        return None
    for unique in entity.unique:
        if fields.keys() == unique.named:
            return unique, {name: entity.assignment.check(name, value) for name, value in fields.items()}
    return None


def item_named(
    entity: EntityDefinition[E], verb: str, item: object, fields: Mapping[str, Any], more: tuple[Any, ...] = ()
) -> E:
    """Return the item that a call of `verb` stores: an item, or one made from its fields.

    `more` are further positional arguments, which are refused.

    Raises:
        InvalidValueError: the fields do not make an item, with the first at fault; or it is one of another entity.
    """
    if more:
        raise InvalidValueError(f"{verb} takes one item, and got {1 + len(more)}; write batch_write([...])")
    if isinstance(item, Entity):
        _require_model(entity, verb, item)
        if fields:
            name = next(iter(fields))
            raise InvalidValueError(
                f"{verb} takes an item or its fields, not both; it got an item and {name}"
                f"{hint(name, ('handling', 'if_match', 'over', 'timely'))}",
                field=name,
            )
        if item.__class__ is not entity.model:
            _require_fields(entity, verb, item)
        return item  # type: ignore[return-value]
    _require_no_answer(verb, item)
    if item is not None and not isinstance(item, Mapping):
        model = entity.model.__name__
        raise InvalidValueError(f"{verb} takes a {model}, or its fields by name; it got {_shown(item)}")
    try:
        return entity.model.model_validate({**(item or {}), **fields})
    except ValidationError as error:
        mistakes = error.errors(include_url=False, include_input=False, include_context=False)
        # A misspelled field is missing too, and its own name says why.
        first, *others = sorted(mistakes, key=lambda each: each["type"] != "extra_forbidden")
        place = ".".join(map(str, first["loc"]))
        near = hint(place, entity.model.model_fields, _OF_ITEMS) if first["type"] == "extra_forbidden" else ""
        rest = f" (and {len(others)} more)" if others else ""
        raise InvalidValueError(f"{entity.name}: {place}: {first['msg']}{near}{rest}", field=place or None) from error


def _require_no_answer(verb: str, given: object) -> None:
    """Refuse what `put` returns, of which calls take the item."""
    if isinstance(given, Written):
        raise InvalidValueError(f"{verb} takes an item, and got what a put returned; write {verb}(written.item)")


def updates_named(
    entity: EntityDefinition[Any], key: Any, fields: Mapping[str, Any], *given: Mapping[str, Any] | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Part the keywords of an update into fields of its key and new values; return both, with the values of `given`.

    A field of the key belongs to the key unless `key` has it already.

    Raises:
        InvalidValueError: a field has two new values, or one of `given` is not a mapping.
    """
    own: dict[str, Any] = {}
    if fields:
        inside: Collection[str] = (
            entity.key_fields if isinstance(key, Entity) else key if isinstance(key, Mapping) else ()
        )
        own = {name: fields[name] for name in entity.key_fields if name in fields and name not in inside}
        given = (*given, {name: value for name, value in fields.items() if name not in own})
    values: dict[str, Any] = {}
    for part in given:
        if part is None:
            continue
        if part.__class__ is not dict and not isinstance(part, Mapping):
            raise InvalidValueError(f"set is {_shown(part)}; write the new values by field, such as set={{...}}")
        if values and (twice := values.keys() & part.keys()):
            raise InvalidValueError(f"{min(twice)} is updated twice", field=min(twice))
        values.update(part)
    return own, values


def check_revision(if_match: object, name: str = "if_match") -> None:
    """Refuse what is not a revision, such as the item itself or an ETag in its quotes, with `InvalidValueError`."""
    if if_match is None or (isinstance(if_match, str) and if_match[:1] not in _HTTP):
        return
    raise InvalidValueError(f"{name} is {_shown(if_match)}; write {name}=item.revision", field=name)


def names_of(what: str, names: Any) -> Any:
    """Return names of fields; raises `InvalidQueryError` if they are one text, whose letters would be names."""
    if isinstance(names, str):
        raise InvalidQueryError(f"{what} is the text {names!r}; write {what}=[{names!r}]", field=what)
    if not isinstance(names, Iterable):
        raise InvalidQueryError(f"{what} is {_shown(names)}; write a list of names", field=what)
    listed = [*names]
    for each in listed:
        if not isinstance(each, str):
            raise InvalidQueryError(f"{what} has {_shown(each)}; write names of fields", field=what)
    return listed


def check_values(what: str, values: object) -> None:
    """Refuse values that are not given by field, with `InvalidValueError`."""
    if values is not None and not isinstance(values, Mapping):
        raise InvalidValueError(f"{what} is {_shown(values)}; write the values by field, {what}={{...}}", field=what)


def check_flag(name: str, value: object) -> None:
    """Refuse a value that is neither True nor False, such as the text `false`, which would count as true."""
    if not isinstance(value, bool):
        raise InvalidQueryError(f"{name} is {value!r}; it must be True or False", field=name)


def check_item(verb: str, item: object) -> None:
    """Refuse what is not an item, with `InvalidValueError`."""
    if not isinstance(item, Entity):
        raise InvalidValueError(f"{verb} takes an item, such as User(...); it got {_shown(item)}")


def check_key(verb: str, model: object, key: object) -> None:
    """Refuse a class that is not an entity's, and a key of something else, with `InvalidKeyError`.

    An item of another class has fields of the same names, which would name an item that the caller did not mean.
    """
    if not isinstance(model, type) or not issubclass(model, Entity):
        raise InvalidKeyError(
            f"{verb} takes the class of an entity and a key, as in {verb}(User, user); in place of the class it got "
            f"{_shown(model)}"
        )
    if isinstance(key, Entity) and not isinstance(key, model):
        raise InvalidKeyError(f"{verb} takes the key of a {model.__name__}; it got a {type(key).__name__}")
    if not isinstance(key, Entity | Mapping):
        raise InvalidKeyError(f"{verb}: the key is {_shown(key)}; write its fields, {{...}}, or pass the item")


def refuse_more(verb: str, more: tuple[Any, ...], others: Collection[str] = ()) -> None:
    """Refuse what a call takes besides one list, with `InvalidKeyError`: further values, and arguments it has not."""
    if more:
        raise InvalidKeyError(f"{verb} takes one list, and got {1 + len(more)} values; write {verb}([...])")
    for name in others:
        near = hint(name, ("put", "delete", "whole"))
        meant = _OF_BATCHES.get(name)
        cure = f"; write {meant}=[...]" if meant else near or "; write fields in each item and key"
        raise InvalidKeyError(f"{name} is not an argument of {verb}{cure}", field=name)


def several(verb: str, given: Any) -> Sequence[Any]:
    """Return the members of a list; raises `InvalidKeyError` if one item or key is given instead."""
    if isinstance(given, Entity | Mapping | str) or not isinstance(given, Iterable):
        raise InvalidKeyError(f"{verb} takes a list; it got {_shown(given)}")
    return given if isinstance(given, Sequence) else [*given]


def _require_model(entity: EntityDefinition[Any], verb: str, item: Entity) -> None:
    if not isinstance(item, entity.model):
        raise InvalidKeyError(f"{verb} takes a {entity.model.__name__}; it got a {type(item).__name__}")


def _require_fields(entity: EntityDefinition[Any], verb: str, item: Entity) -> None:
    """Refuse an item of a derived class that has further fields: they would not be stored."""
    own, derived = entity.model, type(item)
    if more := [name for name in derived.model_fields if name not in own.model_fields]:
        raise InvalidValueError(
            f"{verb} takes a {own.__name__}; it got a {derived.__name__}, whose {more[0]} would not be stored: give "
            f"{derived.__name__} a name and a key, and write db.collection({derived.__name__})",
            field=more[0],
        )


def _elsewhere(entity: EntityDefinition[Any], verb: str, name: str) -> str:
    """Return the cure if a call with such a field, or such an argument, is another one."""
    if name == "fields" and verb in ("get", "find"):
        return "; write part(..., fields=[...])"
    if name == "default" and verb == "get":
        return "; write find(...), which returns None if there is no item"
    if name == "keys" and verb == "batch_get":
        return "; write the keys first, batch_get([...])"
    for index in entity.indexes.values():
        if name in index.partition.fields or name in index.sort.fields:
            fields = dict.fromkeys((*index.partition.fields, name))
            return f"; to find items by it, write list({', '.join(f'{each}=...' for each in fields)})"
    return ""


def _example(entity: EntityDefinition[Any], verb: str) -> str:
    if verb not in _BATCHES:
        return f"{verb}({', '.join(f'{name}=...' for name in entity.key_fields)})"
    key = ", ".join(f'"{name}": ...' for name in entity.key_fields)
    return f"{verb}({_BATCHES[verb]}[{{{key}}}, ...])"


def _shown(value: object) -> str:
    """Return a value as messages show it: what is long or secret only by its class."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return repr(value) if isinstance(value, str | int | float | None) else f"a {type(value).__name__}"
