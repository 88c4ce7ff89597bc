"""Fields in the function that reads stored items: the lines that find, validate and default each of them."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from math import floor
from typing import Any

from pydantic_core import PydanticUndefined

from dynashard.compiled.declared import Declared
from dynashard.compiled.function import Function
from dynashard.compiled.key_text import KeyField, time_text
from dynashard.compiled.rows import Member
from dynashard.compiled.schemas import bare, is_any_time, keeps_texts, stored_tag, value_schema
from dynashard.model_schema import ModelSchema, Schema

_SAME: frozenset[str] = frozenset({"type", "metadata", "min_length", "max_length"})
"""Parts of the schema of a text that is not changed, and of which only the length may be restricted."""
_moment = datetime.fromtimestamp


class ReadField:
    """A field of the rows that a function reads.

    Attributes:
        raw: the variable with what is stored.
        value: the variable with its value.
        tag: the type of its attribute; empty if the codec decodes it.
        expires: whether it is the time of expiry, which `ends` has in epoch seconds.
        stored: whether it is stored in the item.
        required: whether it has no default.
        validated: the schema that its values are validated by: its own, unless another one is given.
    """

    def __init__(
        self, number: int, name: str, entity: Declared, parts: ModelSchema, validated: Schema | None = None
    ) -> None:
        self.name, self.schema = name, parts.fields[name]["schema"]
        self.raw, self.value = f"raw{number}", f"value{number}"
        self.expires = name == entity.expires
        self.stored = name not in entity.attachments
        self.tag = "" if self.expires else stored_tag(self.schema)
        self.required = self.schema["type"] != "default"
        self.validated = self.schema if validated is None else validated
        self._at, self._entity, self._parts = f"field{number}", entity, parts

    @property
    def member(self) -> Member | None:
        """Its member of the structure of rows; None if another member has what is stored, or nothing is."""
        return None if self.expires or not self.stored else Member(self._at, self.name, self.tag)

    @property
    def none_by_default(self) -> bool:
        """Whether its value is None if nothing is stored, without being validated."""
        validates = self.schema.get("validate_default") or (self._parts.config or {}).get("validate_default")
        return self.schema.get("default", ...) is None and not validates

    @property
    def found(self) -> str:
        """The expression for its attribute; `unset` if it is not stored."""
        return "row.expires" if self.expires else f"row.{self._at}"

    def take(self) -> list[str]:
        """Return the lines that take what was found, unless it is of another type."""
        if not self.tag:
            return [f"{self.raw} = found"]
        return [f"if ({self.raw} := found.{self.tag}) is unset: return None"]

    def decoded(self, function: Function) -> str:
        """Return the expression for what is stored as the field's validator takes it."""
        if self.expires:
            return f"{function.use(_moment)}({function.use(floor)}(ends), {function.use(UTC)})"
        if self.tag:
            return self.raw
        return f"{function.use(self._entity.reference.value)}({self.name!r}, {self.raw})"

    def validate(self, function: Function, *, ignoring: bool) -> list[str]:
        """Return the lines that set the value to what is stored, after the field's own validators.

        Models inside an item refuse unknown fields, unless it is `ignoring` those that were removed since.
        """
        plain = bare(self.validated)
        if self._keeps_text and plain is not None:
            return [*_length_checks(self.raw, plain), f"{self.value} = {self.raw}"]
        if plain is not None and plain["type"] == "enum" and self.tag == "S" and "missing" not in plain:
            members = {each.value: each for each in plain["members"]}
            return [f"if ({self.value} := {function.use(members.get)}({self.raw})) is None: return None"]
        if self.expires and plain is not None and is_any_time(plain):
            return [f"{self.value} = {self.decoded(function)}"]
        check: Callable[..., Any] = self._parts.validator(self.validated).validate_python
        if ignoring and not self.tag and not self.expires:
            check = partial(check, extra="ignore")
        return [f"{self.value} = {function.use(check)}({self.decoded(function)})"]

    @property
    def _keeps_text(self) -> bool:
        """Whether its values are the stored texts."""
        plain = bare(self.validated)
        return plain is not None and plain["type"] == "str" and _SAME.issuperset(plain) and keeps_texts(self._parts)

    def default(self, function: Function, *, whole: bool) -> str:
        """Return the line that sets the value to the default of the field.

        If the item is not read as a `whole`, it is None if there is none, or if a function makes it.
        """
        field = self._entity.model.model_fields[self.name]
        if whole:
            if self.none_by_default:
                return f"{self.value} = None"
            made = self._parts.validator(self.schema).get_default_value
            return f"{self.value} = {function.use(made)}().value"
        default = field.get_default(call_default_factory=False)
        if default is PydanticUndefined or default is None:
            return f"{self.value} = None"
        return f"{self.value} = {function.use(partial(field.get_default, call_default_factory=False))}()"

    def in_keys(self, function: Function) -> tuple[KeyField, list[str]]:
        """Return the field as it is in keys, and the lines that set its variables, or end the function."""
        plain, text = value_schema(self.schema), f"text_of_{self.value}"
        kind = plain["type"]
        if self._keeps_text and self.required:
            return KeyField(self.value), []
        if kind in ("str", "literal") and self.tag == "S":
            return KeyField(self.value), [f"if {self.value}.__class__ is not str: return None"]
        if kind == "enum" and self.tag == "S":
            is_other = f"{self.value}.__class__ is not {function.use(plain['cls'])}"
            return KeyField(text), [f"if {is_other}: return None", f"{text} = {self.value}._value_"]
        if kind == "datetime":
            return KeyField(text), [f"{text} = {function.use(time_text)}({self.value})"]
        if kind == "int":
            checked = f"if {self.value}.__class__ is not int: return None"
            return KeyField(text, self.value), [checked, f"{text} = repr({self.value})"]
        return KeyField(), [f"if {self.value} is None: return None"]


def stamped_alike(fields: Sequence[ReadField], entity: Declared) -> dict[str, ReadField]:
    """Return the fields with the time of the last update, each with that of the creation if they are validated alike.

    An item which was never changed has one text for both.
    """
    created, found = None, {}
    for field in fields:
        if field.name in entity.created_fields:
            created = field
        elif created and field.name in entity.updated_fields and _validated_alike(field.schema, created.schema):
            found[field.name] = created
    return found


def _length_checks(text: str, plain: Schema) -> list[str]:
    """Return the line that ends the function if the variable `text` has a length that its schema does not allow."""
    least, most = plain.get("min_length"), plain.get("max_length")
    if most is not None:
        return [f"if not {least or 0} <= len({text}) <= {most}: return None"]
    if least is None:
        return []
    return [f"if not {text}: return None" if least == 1 else f"if len({text}) < {least}: return None"]


def _validated_alike(one: Schema, other: Schema) -> bool:
    plain = bare(one)
    return plain is not None and plain == bare(other)
