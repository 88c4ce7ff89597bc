"""Generated functions that make entities, or mappings of their fields, of stored attributes.

Pydantic-core validates each text by the schema of its field, except texts that the field does not restrict. The
instance is then made as pydantic makes it. A function returns None for what it does not know, such as an attribute of
another type or a value that is refused; that takes the ordinary way, which has the errors. `row_form` and `item_form`
say where a function finds the attributes.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import SchemaValidator

from dynashard.compiled.stored_form import plain_tag
from dynashard.record import REVISION, set_private

_MODEL: Final = frozenset({"type", "cls", "schema", "custom_init", "root_model", "config", "metadata", "model_name"})
_CONFIG: Final = frozenset({
    "title", "extra_fields_behavior", "validate_assignment", "allow_inf_nan", "ser_json_bytes", "val_json_bytes",
})  # fmt: skip
"""Parts of a model, and settings, with which it is validated field by field, and a text is not changed.

A part that is not among them, such as the one that initialises private attributes, makes the model validate its items.
"""
_SLOTS: Final = ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__")


class Field:
    """A plain field.

    Attributes:
        at: the variable part of what belongs to it, such as the member of a row with its attribute.
        attribute: the name of the attribute.
        value: the variable with its value.
        tag: the type of the attribute; None if the field is not plain.
        required: whether it has no default.
        none_by_default: whether its default is None, which is not validated.
        unchanged: whether its value is a text, as it is stored, of which only the length may be restricted.
        refused: expressions that say so of such a value.
        often_same: an earlier field of the same type, whose value is often the same; None for none.
    """

    often_same: "Field | None" = None

    def __init__(self, number: int, name: str, schema: Any) -> None:
        self.name, self.attribute, self.schema = name, name, schema
        self.at, self.value = f"field{number}", f"value{number}"
        self.tag = plain_tag(schema)
        self.required = schema["type"] != "default"
        self.none_by_default = schema.get("default", ...) is None and not schema.get("validate_default")

        plain = schema
        while plain["type"] in ("default", "nullable"):
            plain = plain["schema"]
        lengths = {each: plain[name] for each, name in (("<", "min_length"), (">", "max_length")) if name in plain}
        self.unchanged = plain["type"] == "str" and plain.keys() <= {"type", "metadata", "min_length", "max_length"}
        self.refused = [f"len({self.value}) {each} {length}" for each, length in lengths.items()]


def pair_stamps(fields: Sequence[Field], entity: Any) -> None:
    """Note that an item which was never changed has one text for the times of its creation and of its last change."""
    created = None
    for field in fields:
        if field.name in entity.created_fields:
            created = field
        elif created and field.name in entity.updated_fields and field.schema["schema"] == created.schema["schema"]:
            field.often_same = created


def after_fields(part: Any) -> bool:
    """Whether what is around a model's fields sees them only when they are validated, and takes no others."""
    allows_others = part.get("config", {}).get("extra_fields_behavior") == "allow"
    return part["type"] in ("model", "function-after") and not part.get("custom_init") and not allows_others


def only_fields(model: type[BaseModel], outer: list[Any]) -> bool:
    """Whether an instance is its validated fields, and nothing else runs when it is made."""
    return (
        len(outer) == 1
        and _MODEL.issuperset(outer[0])
        and _CONFIG.issuperset(outer[0].get("config", {}))
        and not outer[0].get("root_model")
        and model.__new__ is object.__new__
    )


def _shared_keys(model: type[BaseModel]) -> dict[str, Any]:
    """Return a dictionary of the model's fields whose copies share its keys, so they take a third of the memory."""
    item = object.__new__(model)
    for name in model.model_fields:
        object.__setattr__(item, name, None)
    return item.__dict__


class Function(ABC):
    """The lines of a function, and the names that they use. Subclasses say where attributes are found."""

    argument: str
    """The name of what the function takes."""

    def __init__(self, fields: list[Field]) -> None:
        self._fields = fields
        self._unusual: list[str] = []
        self._lines: list[str] = []
        self._names: dict[str, Any] = {"refused": ValidationError}

    @abstractmethod
    def _lacks(self, field: Field) -> str:
        """Return the condition that a required field has no value of its type; it sets the field's variable."""

    @abstractmethod
    def _is_absent(self, field: Field) -> str:
        """Return the condition that a field is not stored; it sets `stored`, to its attribute if it is."""

    @abstractmethod
    def _is_odd(self, field: Field) -> str:
        """Return the condition that `stored` has no value of the field's type; it sets the field's variable."""

    @abstractmethod
    def _is_same(self, other: Field) -> str:
        """Return the condition that `stored` is like the attribute of another field."""

    @abstractmethod
    def _revise(self) -> None:
        """Add the lines that find an item's revision."""

    @abstractmethod
    def _place(self, values: dict[str, str]) -> None:
        """Add the lines that compare the fields with the item's key, if nobody else does; they may set variables."""

    def assemble(self, model: type[BaseModel], config: Any) -> None:
        """Validate the fields one by one, and make an instance of them as pydantic does."""
        # A set of twelve names takes a fourth of an item's memory, so complete items share one; see `Record`.
        self._revise()
        self._lines.append("present = names")
        values = self._checked(config, lambda field: [f"present = present - {{{field.name!r}}}"])
        self._place(values)
        self._names |= {
            "names": set(model.model_fields),
            "shared_keys": _shared_keys(model).copy,
            "model": model,
            "new": object.__new__,
            "set_private": set_private,
            **{f"set{name}": BaseModel.__dict__[name].__set__ for name in _SLOTS},
        }
        self._lines += [
            "values = shared_keys()",
            *(f"values[{name!r}] = {value}" for name, value in values.items()),
            "item = new(model)",
            "set__dict__(item, values)",
            "set__pydantic_fields_set__(item, present)",
            "set__pydantic_extra__(item, None)",
            f"set_private(item, {{{REVISION!r}: revision}})",
            "return item",
        ]

    def _checked(self, config: Any, absent: Callable[[Field], list[str]]) -> dict[str, str]:
        """Add the lines that validate optional fields; return the expressions of all values by field.

        `absent` are the lines for a field that is not stored, besides those for its default.
        """
        values = {}
        texts = _CONFIG.issuperset(config or {})
        for field in self._fields:
            validator, values[field.name] = SchemaValidator(field.schema, config), field.value
            taken, problems = field.value, field.refused
            if not texts or not field.unchanged:
                taken, problems = f"check_{field.at}({taken})", []
                self._names[f"check_{field.at}"] = validator.validate_python
            if field.required:
                values[field.name] = taken
                self._unusual += [self._lacks(field), *problems]
            else:
                default = f"{field.value} = None"
                if not field.none_by_default or (config or {}).get("validate_default"):
                    self._names[f"default_{field.at}"] = validator.get_default_value
                    default = f"{field.value} = default_{field.at}().value"
                present = [f"if {problem}: return None" for problem in problems]
                if same := field.often_same:
                    taken = f"{same.value} if {self._is_same(same)} else {taken}"
                self._optional(field, [default, *absent(field)], [*present, f"{field.value} = {taken}"])
        return values

    def _optional(self, field: Field, absent: list[str], present: list[str]) -> None:
        self._lines += [
            f"if {self._is_absent(field)}:",
            *(f"    {line}" for line in absent),
            f"elif {self._is_odd(field)}:",
            "    return None",
            "else:",
            *(f"    {line}" for line in present),
        ]

    def made(self, source: str, *errors: type[Exception]) -> Callable[[Any], Any]:
        """Return the function, which also does not know what raises these errors; `source` names its module."""
        lines = [f"if {' or '.join(self._unusual)}:", "    return None"] if self._unusual else []
        body = "\n".join(f"        {line}" for line in [*lines, *self._lines])
        text = f"def make({self.argument}):\n    try:\n{body}\n    except refused:\n        return None\n"
        self._names["refused"] = (ValidationError, *errors)
        exec(compile(text, f"<generated by {source}>", "exec"), self._names)  # noqa: S102 - our own text
        made: Callable[[Any], Any] = self._names["make"]
        return made
