"""Checks of single fields, for partial updates, projections and filters, which have no whole item."""

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import cached_property
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import SchemaValidator, core_schema

from dynashard.entity.declaration import Retention
from dynashard.entity.serialization import NOT_SCHEMAS
from dynashard.errors import InvalidValueError, UndecodableItemError
from dynashard.model_schema import NESTED, model_schema
from dynashard.record import Record

_MISSES: Final = (KeyError, TypeError, AttributeError)
"""What a validator raises that misses other fields."""
FAILURES: Final = (
    ValidationError, InvalidValueError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError,
)  # fmt: skip
"""What validators of a domain may raise for values that are not declared."""
_AS_VALIDATED: Final = (None, False, "init_private_attributes")
"""What a model does once its fields are validated, if that refuses none."""


class Assignment:
    """Checks of a model's fields one by one, without the model's validators; frozen fields count as any other."""

    def __init__(self, model: type[Record]) -> None:
        self._model = model
        self._one = _fields_validator(model, lambda schema: schema)
        self._whole = model.__pydantic_validator__.validate_python
        decorators = model.__pydantic_decorators__
        self._whole_checked = bool(decorators.model_validators) or _judges_itself(model)
        self.dependent = frozenset(n for n, each in model_schema(model).fields.items() if _takes_others(each["schema"]))
        """The fields with a validator that takes the fields before it, so that only the whole shows their values."""
        self._validated = {name for each in decorators.field_validators.values() for name in each.info.fields}

    def check(self, name: str, value: Any, *, stored: bool = False) -> Any:
        """Return a value after the field's own validators; raises `InvalidValueError` if they do not accept it.

        A validator that takes other fields is left out if it misses them, and for a value that was `stored`, which has
        passed it. Of such a value, fields that a model in it no longer has are ignored.
        """
        extra: Literal["ignore"] | None = "ignore" if stored else None
        one = self._one
        if name in self.dependent:
            if not stored:
                with suppress(ValidationError, *_MISSES):
                    alone: Any = one.validate_assignment({}, name, value)
                    return alone[0][name]
            one = self._alone
        try:
            validated: Any = one.validate_assignment({}, name, value, extra=extra)
        except ValidationError as error:
            raise _refusal(error, name) from error
        return validated[0][name]

    @cached_property
    def _alone(self) -> SchemaValidator:
        return _fields_validator(self._model, _alone)

    def checks_whole(self, names: Collection[str]) -> bool:
        """Whether new values of these fields may be refused or changed for what other fields are."""
        return self.sees_others(names) or not self._retained.isdisjoint(names)

    def sees_others(self, names: Collection[str]) -> bool:
        """Whether validators that see more than one field may refuse values of these fields, or make others of them."""
        return self._whole_checked or not self._seen.isdisjoint(names)

    @cached_property
    def _retained(self) -> frozenset[str]:
        """The expiry, if a retention lowers it: only the item says from which time that counts."""
        fields = self._model.model_fields.items()
        return frozenset(n for n, field in fields if any(isinstance(each, Retention) for each in field.metadata))

    @cached_property
    def _seen(self) -> frozenset[str]:
        """The fields that validators of single fields may see together: those of such a field and all before it."""
        found, before = set[str](), list[str]()
        for name in model_schema(self._model).fields:
            before.append(name)
            if name in self.dependent:
                found.update(before)
            found.update(each.after for each in self._model.model_fields[name].metadata if isinstance(each, Retention))
        return frozenset(found)

    def check_whole(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Check all fields together, and return them as the model makes them; raises as `check`."""
        try:
            fields: dict[str, Any] = self._whole(dict(values)).__dict__
        except ValidationError as error:
            raise _refusal(error, None) from error
        return fields

    def bounded(self, name: str) -> bool:
        """Whether a field may refuse a sum of values that it accepts one by one."""
        field = self._model.model_fields[name]
        return bool(field.metadata) or bool(self._validated & {name, "*"}) or _narrowed(field.annotation)


def _fields_validator(model: type[Record], changed: Callable[[Any], Any]) -> SchemaValidator:
    """Return the validator of a model's fields, whose schemas are `changed`."""
    parts = model_schema(model)
    fields = {n: {**each, "schema": changed(each["schema"]), "frozen": False} for n, each in parts.fields.items()}
    return parts.validator({**parts.inner, "fields": fields})


def _judges_itself(model: type[Record]) -> bool:
    """Whether a model runs code of its own after its fields are validated."""
    own = model_schema(model).outer[-1]
    return bool(own.get("custom_init")) or own.get("post_init") not in _AS_VALIDATED


def _takes_others(schema: Any) -> bool:
    """Whether a validator in the schema of a field takes the fields before it. That of a `Retention` only lowers."""
    if isinstance(schema, list | tuple):
        return any(map(_takes_others, schema))
    if not isinstance(schema, Mapping) or schema.get("type") in NESTED:
        return False
    if schema.get("type") == "with-info":
        return not isinstance(getattr(schema["function"], "__self__", None), Retention)
    return any(_takes_others(each) for name, each in schema.items() if name not in NOT_SCHEMAS)


def _alone(schema: Any) -> Any:
    """Return the schema of a field without the validators that take the fields before it."""
    if isinstance(schema, list | tuple):
        return type(schema)(map(_alone, schema))
    if not isinstance(schema, Mapping) or not _takes_others(schema):
        return schema
    if _takes_others(schema.get("function")):
        return _alone(schema.get("schema", core_schema.any_schema()))
    return {name: each if name in NOT_SCHEMAS else _alone(each) for name, each in schema.items()}


def _narrowed(annotation: Any) -> bool:
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        return any(_narrowed(member) for member in get_args(annotation))
    return origin in (Annotated, Literal) or hasattr(annotation, "__supertype__")


def unreadable(error: UndecodableItemError) -> InvalidValueError:
    """Return the error of an item that is not stored, because reading it again would raise this one."""
    first = _refusal(error.__cause__, None) if isinstance(error.__cause__, ValidationError) else error
    field = getattr(first, "field", None)
    return InvalidValueError(f"{first}; the item could not be read again, so it is not stored", field=field)


def _refusal(error: ValidationError, name: str | None) -> InvalidValueError:
    first = error.errors(include_url=False, include_input=False)[0]
    field = name or (str(first["loc"][0]) if first["loc"] else None)
    return InvalidValueError(f"{field}: {first['msg']}" if field else first["msg"], field=field)
