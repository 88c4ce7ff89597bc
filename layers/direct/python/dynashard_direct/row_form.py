"""Structures of stored items, which msgspec finds in the bytes of an answer, and generated functions that read them.

Msgspec finds the attributes of plain fields and takes their texts; pydantic-core validates each text by the schema of
its field, except texts that the field does not restrict. The entities are those of decoding the items one by one. A
function returns None for what it does not know: another kind of item, a relocation marker, an attribute of another type
or a value that is refused. Such a row takes the ordinary way, which has the errors.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import UNSET, Struct, UnsetType, defstruct
from msgspec.json import Decoder
from pydantic import BaseModel, ValidationError
from pydantic_core import SchemaValidator

from dynashard_direct.stored_documents import as_text, written_as_fields
from dynashard_direct.stored_form import NOWHERE, given, plain_tag, unwrapped

_MODEL: Final = frozenset({"type", "cls", "schema", "custom_init", "root_model", "config", "metadata", "model_name"})
_CONFIG: Final = frozenset({
    "title", "extra_fields_behavior", "validate_assignment", "allow_inf_nan", "ser_json_bytes", "val_json_bytes",
})  # fmt: skip
"""Parts of a model, and settings, with which it is validated field by field, and a text is not changed.

A part that is not among them, such as the one that initialises private attributes, makes the model validate its items.
"""
_SLOTS: Final = ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__")


class _Text(Struct, gc=False, frozen=True):
    S: str | UnsetType = UNSET


class _Number(Struct, gc=False, frozen=True):
    N: str | UnsetType = UNSET


class _Flag(Struct, gc=False, frozen=True):
    BOOL: bool | UnsetType = UNSET


_STRUCTURES: Final[Mapping[str, type[Struct]]] = {"S": _Text, "N": _Number, "BOOL": _Flag}


class _Field:
    """A plain field.

    Attributes:
        at: the member of a row with its attribute.
        attribute: the name of the attribute.
        value: the variable with its value.
        tag: the type of the attribute; None if the field is not plain.
        required: whether it has no default.
        none_by_default: whether its default is None, which is not validated.
        unchanged: whether its value is a text, as it is stored, of which only the length may be restricted.
        refused: expressions that say so of such a value.
        often_same: an earlier field of the same type, whose value is often the same; None for none.
    """

    often_same: "_Field | None" = None

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


class RowForm(NamedTuple):
    """How the stored items of an entity are read.

    Attributes:
        row: the structure of a stored item. `row.pk.S` and `row.sk.S` are its key; `UNSET` if it has none.
        make: returns the entity of a row, with its revision, or None if the row takes the ordinary way.
    """

    row: type[Struct]
    make: Callable[[Any], Any]


def parser_of(structure: Any) -> Callable[[bytes | bytearray], Any]:
    """Return a function that parses bytes as this structure, such as a list of rows.

    It returns None for bytes that are not JSON or do not have the structure.
    """
    parse = Decoder(structure).decode

    def parsed(body: bytes | bytearray) -> Any:
        try:
            # Msgspec does not look for invalid UTF-8 in what it skips.
            if not body.isascii():
                body.decode()
            return parse(body)
        except (ValueError, RecursionError):
            return None

    return parsed


def row_form(entity: Any, schema: Any, record: Any) -> RowForm | None:
    """Return the form of an entity's rows; None if a field is not plain, or the whole is validated before its fields.

    `schema` and `record` are the modules `dynashard.schema` and `dynashard.entity.record`.
    """
    outer, inner, _ = unwrapped(entity.model)
    found: Mapping[str, Any] = inner["fields"]
    fields = [_Field(number, name, each["schema"]) for number, (name, each) in enumerate(found.items())]
    if entity.expires or entity.attachments or any("validation_alias" in each for each in found.values()):
        return None
    if not all(field.tag for field in fields) or not all(map(_after_fields, outer)):
        return None
    _pair_stamps(fields, entity)
    function = _Function(fields, schema, record)
    if _only_fields(entity.model, outer):
        function.assemble(entity.model, outer[0].get("config"))
    else:
        function.validate(entity.model)
    return function.form(entity.name)


def fields_form(entity: Any, names: Sequence[str], schema: Any, record: Any) -> RowForm | None:
    """Return the form of rows of which a caller wants these fields; None if one is not plain.

    Its function returns a mapping of the fields, as the only member of a tuple.
    """
    outer, inner, _ = unwrapped(entity.model)
    chosen = {name: given(inner["fields"][name])["schema"] for name in names}
    fields = [_Field(number, *each) for number, each in enumerate(chosen.items())]
    if not all(field.tag for field in fields) or not chosen.keys().isdisjoint({entity.expires, *entity.attachments}):
        return None
    function = _Function(fields, schema, record)
    function.select(outer[-1].get("config"))
    return function.form(entity.name)


def documents_form(entity: Any, revision: str, schema: Any, record: Any) -> RowForm | None:
    """Return the form of rows that are only written as JSON; None if it could differ from the JSON of entities.

    Its function returns a mapping of the fields, and of the revision by this name, as the only member of a tuple.
    Orjson writes its values as pydantic does, or refuses them.
    """
    outer, inner, _ = unwrapped(entity.model)
    found: Mapping[str, Any] = inner["fields"]
    if entity.attachments or revision in found or not written_as_fields(entity.model):
        return None
    fields = [_Field(number, name, each["schema"]) for number, (name, each) in enumerate(found.items())]
    if not all(field.tag for field in fields):
        return None
    for field in fields:
        field.schema = as_text(field.schema)
        if field.name == entity.expires:
            # Its attribute is that of a row's time of expiry, without which it has its default.
            field.attribute = NOWHERE
    _pair_stamps(fields, entity)
    function = _Function(fields, schema, record)
    function.select(outer[0].get("config"), revision)
    return function.form(entity.name)


def _pair_stamps(fields: Sequence[_Field], entity: Any) -> None:
    """Note that an item which was never changed has one text for the times of its creation and of its last change."""
    created = None
    for field in fields:
        if field.name in entity.created_fields:
            created = field
        elif created and field.name in entity.updated_fields and field.schema["schema"] == created.schema["schema"]:
            field.often_same = created


def _after_fields(part: Any) -> bool:
    """Whether what is around a model's fields sees them only when they are validated, and takes no others."""
    allows_others = part.get("config", {}).get("extra_fields_behavior") == "allow"
    return part["type"] in ("model", "function-after") and not part.get("custom_init") and not allows_others


def _only_fields(model: type[BaseModel], outer: list[Any]) -> bool:
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


class _Function:
    """The structure of a row, and the function that makes an entity of it."""

    def __init__(self, fields: list[_Field], schema: Any, record: Any) -> None:
        self._fields, self._schema, self._record = fields, schema, record
        self._unusual = ["row.kind.S != kind"]
        self._lines: list[str] = []
        self._names: dict[str, Any] = {"refused": ValidationError, "unset": UNSET}

    def assemble(self, model: type[BaseModel], config: Any) -> None:
        """Validate the fields one by one, and make an instance of them as pydantic does."""
        # A set of twelve names takes a fourth of an item's memory, so complete items share one; see `Record`.
        self._revise()
        self._lines.append("present = names")
        values = self._checked(config, lambda field: [f"present = present - {{{field.name!r}}}"])
        self._names |= {
            "names": set(model.model_fields),
            "shared_keys": _shared_keys(model).copy,
            "model": model,
            "new": object.__new__,
            "set_private": self._record.set_private,
            **{f"set{name}": BaseModel.__dict__[name].__set__ for name in _SLOTS},
        }
        self._lines += [
            "values = shared_keys()",
            *(f"values[{name!r}] = {value}" for name, value in values.items()),
            "item = new(model)",
            "set__dict__(item, values)",
            "set__pydantic_fields_set__(item, present)",
            "set__pydantic_extra__(item, None)",
            f"set_private(item, {{{self._record.REVISION!r}: revision}})",
            "return item",
        ]

    def select(self, config: Any, revision: str | None = None) -> None:
        """Validate the fields one by one, and return a mapping of them as the only member of a tuple.

        The mapping ends with the item's revision, if there is a name for it.
        """
        self._unusual.append("row.moved is not unset or row.expires is not unset")
        values = self._checked(config, lambda _: [])
        if revision is not None:
            self._unusual.append("(revision := row.rev.S) is unset")
            values[revision] = "revision"
        self._lines.append(f"return ({{{', '.join(f'{name!r}: {value}' for name, value in values.items())}}},)")

    def _checked(self, config: Any, absent: Callable[[_Field], list[str]]) -> dict[str, str]:
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
                self._unusual += [f"({field.value} := row.{field.at}.{field.tag}) is unset", *problems]
            else:
                default = f"{field.value} = None"
                if not field.none_by_default or (config or {}).get("validate_default"):
                    self._names[f"default_{field.at}"] = validator.get_default_value
                    default = f"{field.value} = default_{field.at}().value"
                present = [f"if {problem}: return None" for problem in problems]
                if same := field.often_same:
                    taken = f"{same.value} if stored == row.{same.at} else {taken}"
                self._optional(field, [default, *absent(field)], [*present, f"{field.value} = {taken}"])
        return values

    def validate(self, model: type[BaseModel]) -> None:
        """Let the model validate its stored texts, as its validators and private attributes need it."""
        self._revise()
        required = ", ".join(f"{field.name!r}: {field.value}" for field in self._fields if field.required)
        self._lines.append(f"values = {{{required}}}")
        for field in self._fields:
            if field.required:
                self._unusual.append(f"({field.value} := row.{field.at}.{field.tag}) is unset")
            else:
                self._optional(field, ["pass"], [f"values[{field.name!r}] = {field.value}"])
        self._lines.append("return with_revision(validate(values), revision)")
        self._names["with_revision"] = self._record.with_revision
        self._names["validate"] = model.__pydantic_validator__.validate_python

    def _optional(self, field: _Field, absent: list[str], present: list[str]) -> None:
        self._lines += [
            f"if (stored := row.{field.at}) is unset:",
            *(f"    {line}" for line in absent),
            f"elif ({field.value} := stored.{field.tag}) is unset:",
            "    return None",
            "else:",
            *(f"    {line}" for line in present),
        ]

    def _revise(self) -> None:
        """Add the lines that find an item's revision."""
        self._unusual.append("(revision := row.rev.S) is unset")
        self._lines += [
            "if not (row.prev is row.born is row.moved is row.expires is unset):",
            "    if not row.moved is row.expires is unset:",
            "        return None",
            "    revision = later_revision(row)",
        ]
        self._names["later_revision"] = self._later_revision

    def _later_revision(self, row: Any) -> str:
        schema = self._schema
        stored = {schema.REV: row.rev, schema.PREV: row.prev, schema.BORN: row.born}
        wire = {name: {} if text.S is UNSET else {"S": text.S} for name, text in stored.items() if text is not UNSET}
        revision: str = self._record.revision_in(wire)
        return revision

    def _structure(self) -> type[Struct]:
        """Return the structure of a row. Its members have other names than attributes, which can be any."""
        schema = self._schema
        first = {"pk": schema.PK, "sk": schema.SK, "kind": schema.TYPE, "rev": schema.REV}
        fields = {field.at: field.attribute for field in self._fields}
        texts = {"prev": schema.PREV, "born": schema.BORN}
        others = {"moved": schema.MOVED_TO, "expires": schema.EXPIRES_AT}
        members: list[Any] = [(name, _Text, _Text()) for name in first]
        for field in self._fields:
            each = _STRUCTURES[field.tag or ""]
            members.append((field.at, each, each()) if field.required else (field.at, each | UnsetType, UNSET))
        members += [(name, _Text | UnsetType, UNSET) for name in texts]
        members += [(name, Any, UNSET) for name in others]
        return defstruct("Row", members, rename={**first, **fields, **texts, **others}, gc=False)

    def form(self, kind: str) -> RowForm:
        """Return the structure and the function for items of this kind."""
        lines = [f"if {' or '.join(self._unusual)}:", "    return None", *self._lines]
        body = "\n".join(f"        {line}" for line in lines)
        text = f"def make(row):\n    try:\n{body}\n    except refused:\n        return None\n"
        self._names["kind"] = kind
        exec(compile(text, "<generated by dynashard_direct.row_form>", "exec"), self._names)  # noqa: S102 - our own text
        return RowForm(self._structure(), self._names["make"])
