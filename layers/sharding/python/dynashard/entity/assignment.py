"""Checks of single fields, for partial updates, projections and filters, which have no whole item."""

from collections.abc import Mapping
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import SchemaValidator

from dynashard.entity.declaration import Retention
from dynashard.errors import InvalidValueError, UndecodableItemError
from dynashard.model_schema import NESTED, model_schema
from dynashard.record import Record


class Assignment:
    """Checks of a model's fields one by one, without the model's validators; frozen fields count as any other."""

    def __init__(self, model: type[Record]) -> None:
        self._model = model
        self._one = _fields_validator(model)
        self._whole = model.__pydantic_validator__.validate_python
        decorators = model.__pydantic_decorators__
        self.dependent = frozenset(n for n, each in model_schema(model).fields.items() if _given_others(each["schema"]))
        """The fields with a validator that is given the fields before it, so that only the whole shows their values."""
        self.checks_whole = bool(decorators.model_validators or self.dependent) or _has_post_init(model)
        """Whether the model has code that sees more than one field, and so may refuse or change several together."""
        self._validated = {name for each in decorators.field_validators.values() for name in each.info.fields}

    def check(self, name: str, value: Any, *, stored: bool = False) -> Any:
        """Return a value after the field's own validators; raises `InvalidValueError` if they do not accept it.

        If it was `stored` before, fields that a model in it no longer has are ignored.
        """
        extra: Literal["ignore"] | None = "ignore" if stored else None
        try:
            validated: Any = self._one.validate_assignment({}, name, value, extra=extra)
        except ValidationError as error:
            raise _refusal(error, name) from error
        except (KeyError, TypeError, AttributeError):
            if name not in self.dependent:
                raise
            # Its validator misses the other fields.
            return value
        return validated[0][name]

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


def _has_post_init(model: type[Record]) -> bool:
    """Whether the model has code of its own for the finished item."""
    initialised = model.model_post_init
    return initialised is not BaseModel.model_post_init and initialised.__name__ != "init_private_attributes"


def _given_others(schema: Any) -> bool:
    if isinstance(schema, list | tuple):
        return any(map(_given_others, schema))
    if not isinstance(schema, Mapping) or schema.get("type") in NESTED:
        return False
    function = schema.get("function")
    if isinstance(function, Mapping) and function.get("type") == "with-info":
        # What a retention lowers is the time of expiry that readers get, not the stored one.
        return not isinstance(getattr(function["function"], "__self__", None), Retention)
    return any(_given_others(each) for name, each in schema.items() if name not in ("metadata", "serialization"))


def _fields_validator(model: type[Record]) -> SchemaValidator:
    schema: Any = model.__pydantic_core_schema__
    config: Any = None
    definitions: dict[str, Any] = {}
    while schema["type"] != "model-fields":
        definitions |= {each["ref"]: each for each in schema.get("definitions", ())}
        config = schema.get("config", config)
        schema = definitions[schema["schema_ref"]] if schema["type"] == "definition-ref" else schema["schema"]
    schema = {**schema, "fields": {name: {**each, "frozen": False} for name, each in schema["fields"].items()}}
    if definitions:
        schema = {"type": "definitions", "schema": schema, "definitions": list(definitions.values())}
    return SchemaValidator(schema, config)


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
