"""Reading what another version wrote: members of enums that this one does not know, required fields without a value.

A version may add a member to an enum, or make a field optional. Its items are served by the older version all the same:
an unknown member as it is stored, a field that is not stored, or stored as null, as None. Everything else that does not
fit, such as a value of another type, is undecodable. What callers send is validated strictly.

Pydantic-core validates by a schema in which the fields at fault take such values; the others are validated as usual.
Their own validators, and those of the whole, are left out, because they expect declared values.
"""

from collections.abc import Collection, Mapping
from enum import Enum
from typing import Any, Final, Generic, TypeVar

from pydantic import ValidationError
from pydantic_core import SchemaValidator, core_schema

from dynashard.entity.assignment import FAILURES
from dynashard.entity.serialization import NOT_SCHEMAS
from dynashard.model_schema import model_schema
from dynashard.record import Record, holding
from dynashard.schema import REV, TYPE

T = TypeVar("T", bound=Record)

MISSING: Final = "missing"
TOLERATED: Final = frozenset({"enum", "literal_error", MISSING})
"""The kinds of pydantic's errors that another version's item may have."""
_TYPE: Final = "_type"
"""What the kinds of errors end with that a stored null has where it is not allowed."""
_AROUND: Final = frozenset({"function-after", "function-wrap"})
_RELAXED: Final = "~"
"""What the names of relaxed definitions end with."""


class Tolerance(Generic[T]):
    """Makes instances of a model from values that only another version declares. `key_fields` are always required."""

    def __init__(self, model: type[T], key_fields: Collection[str]) -> None:
        self._model = model
        self._key_fields = frozenset(key_fields)
        self._validators: dict[frozenset[str], SchemaValidator] = {}

    def stored(self, wire: Mapping[str, Any], values: Mapping[str, Any], error: ValidationError) -> T | None:
        """Return the instance of a stored item, of whose values some were refused; None if no version wrote it so.

        A required field without a value is None, and not among the fields that are set.
        """
        names = self._at_fault(wire, error)
        if not names:
            return None
        try:
            made: T = self._validator(names).validate_python(dict(values), extra="ignore")
        except FAILURES:
            return None
        return made

    def field(self, wire: Mapping[str, Any], name: str, value: Any, error: object) -> tuple[Any] | None:
        """Return a field's value in a stored item that was refused, in a tuple; None if no version wrote it so."""
        # The revision is not read for some fields only. An item that has a type has one.
        if not isinstance(error, ValidationError) or TYPE not in wire or not self._refused(error):
            return None
        # A default may be made of other fields, which nobody has read.
        blank = holding(self._model, dict.fromkeys(self._model.model_fields))
        try:
            self._validator(frozenset({name})).validate_assignment(blank, name, value, extra="ignore")
        except FAILURES:
            return None
        return (blank.__dict__[name],)

    def made(self, values: Mapping[str, Any], error: ValidationError, taken: Collection[str]) -> T | None:
        """Return the instance of values that were refused; None unless only fields `taken` from an item are at fault.

        Of their values, those are tolerated that are tolerated in a stored item.
        """
        names = self._refused(error)
        if not names or not names <= set(taken):
            return None
        try:
            made: T = self._validator(names).validate_python(dict(values), extra="ignore")
        except FAILURES:
            return None
        return made

    def document(self, text: str, names: Collection[str]) -> T | None:
        """Return the instance of a JSON document in which these fields have values of another version."""
        try:
            made: T = self._validator(frozenset(names)).validate_json(text, strict=True)
        except FAILURES:
            return None
        return made

    def _at_fault(self, wire: Mapping[str, Any], error: ValidationError) -> frozenset[str]:
        """The fields that have values of another version; empty if anything else is wrong, or the item is adopted."""
        return self._refused(error) if TYPE in wire and REV in wire else frozenset()

    def _refused(self, error: ValidationError) -> frozenset[str]:
        """The fields that were refused with values as of another version; empty if anything else was refused."""
        names: set[str] = set()
        for each in error.errors(include_url=False, include_context=False):
            path = each["loc"]
            emptied = each["input"] is None and each["type"].endswith(_TYPE)
            if not path or not (emptied or each["type"] in TOLERATED):
                return frozenset()
            if each["type"] == MISSING and len(path) == 1 and path[0] in self._key_fields:
                return frozenset()
            names.add(str(path[0]))
        return frozenset(names)

    def _validator(self, names: frozenset[str]) -> SchemaValidator:
        # Made twice if two threads ask first, which does no harm.
        if names not in self._validators:
            self._validators[names] = _relaxed_validator(self._model, names)
        return self._validators[names]


def _relaxed_validator(model: type[Record], names: frozenset[str]) -> SchemaValidator:
    whole = model_schema(model)
    outer = [
        {name: part for name, part in each.items() if name not in ("ref", "frozen")}
        for each in whole.outer
        if each["type"] not in _AROUND
    ]
    fields = {name: _relaxed(field) if name in names else field for name, field in whole.fields.items()}
    made: Any = {**whole.inner, "fields": fields}
    for each in reversed(outer):
        made = {**each, "schema": made}
    if whole.definitions:
        known = list(whole.definitions.values())
        made = {"type": "definitions", "schema": made, "definitions": [*known, *map(_relaxed, known)]}
    # Prebuilt validators are those of the models' own classes, which tolerate nothing.
    return SchemaValidator(made, None, _use_prebuilt=False)


def _relaxed(schema: Any) -> Any:
    """Return a core schema that also takes members that are not declared, and lacks no field."""
    if isinstance(schema, list | tuple):
        return type(schema)(_relaxed(each) for each in schema)
    if not isinstance(schema, dict):
        return schema
    result = {name: each if name in NOT_SCHEMAS else _relaxed(each) for name, each in schema.items()}
    for name in ("ref", "schema_ref"):
        if name in result:
            result[name] += _RELAXED
    kind = schema.get("type")
    if kind in ("enum", "literal"):
        declared = schema["members"] if kind == "enum" else schema["expected"]
        result = _or_same_kind(result, {type(_plain(each)) for each in declared})
    elif kind == "model-field":
        result["frozen"] = False
        if schema["schema"]["type"] != "default":
            empty = core_schema.nullable_schema(result["schema"])
            result["schema"] = core_schema.with_default_schema(empty, default=None)
    elif kind == "typed-dict-field":
        result["required"] = False
    elif kind in _AROUND:
        inner: dict[str, Any] = result["schema"]
        result = {**inner, "ref": result["ref"]} if "ref" in result else inner
    return result


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def _or_same_kind(schema: Any, kinds: Collection[type]) -> Any:
    """The schema of a choice that also takes other values of its members' types, as they are."""

    def take(value: Any, handler: Any) -> Any:
        try:
            return handler(value)
        except ValidationError:
            if value.__class__ in kinds:
                return value
            raise

    reference = {"ref": schema["ref"]} if "ref" in schema else {}
    inner = {name: part for name, part in schema.items() if name != "ref"}
    return {**core_schema.no_info_wrap_validator_function(take, inner), **reference}
