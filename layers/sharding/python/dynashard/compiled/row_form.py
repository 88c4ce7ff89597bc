"""Structures of stored items, which msgspec finds in the bytes of an answer, and the functions that read them.

Msgspec finds the attributes of plain fields and takes their texts; see `item_functions` for what is made of them. The
entities are those of decoding the items one by one. Another kind of item, a relocation marker or an attribute of
another type takes the ordinary way.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import UNSET, Struct, UnsetType, defstruct
from msgspec.json import Decoder
from pydantic import BaseModel

from dynashard import schema
from dynashard.compiled.item_functions import Field, Function, after_fields, only_fields, pair_stamps
from dynashard.compiled.stored_documents import as_text, written_as_fields
from dynashard.compiled.stored_form import NOWHERE, given, unwrapped
from dynashard.record import revision_in, with_revision


class _Text(Struct, gc=False, frozen=True):
    S: str | UnsetType = UNSET


class _Number(Struct, gc=False, frozen=True):
    N: str | UnsetType = UNSET


class _Flag(Struct, gc=False, frozen=True):
    BOOL: bool | UnsetType = UNSET


Capacity = dict[str, str | float]
"""What an answer says of the capacity of a table. As numbers of Python, integers could be too large for sums."""
_STRUCTURES: Final[Mapping[str, type[Struct]]] = {"S": _Text, "N": _Number, "BOOL": _Flag}


class RowForm(NamedTuple):
    """How the stored items of an entity are read.

    Attributes:
        row: the structure of a stored item. `row.pk.S` and `row.sk.S` are its key; `UNSET` if it has none.
        make: returns the entity of a row, with its revision, or None if the reference codec reads the row.
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


def row_form(entity: Any) -> RowForm | None:
    """Return the form of an entity's rows; None if a field is not plain, or all are validated before."""
    outer, inner, _ = unwrapped(entity.model)
    found: Mapping[str, Any] = inner["fields"]
    fields = [Field(number, name, each["schema"]) for number, (name, each) in enumerate(found.items())]
    if entity.expires or entity.attachments or any("validation_alias" in each for each in found.values()):
        return None
    if not all(field.tag for field in fields) or not all(map(after_fields, outer)):
        return None
    pair_stamps(fields, entity)
    function = _RowFunction(fields, entity)
    if only_fields(entity.model, outer):
        function.assemble(entity.model, outer[0].get("config"))
    else:
        function.validate(entity.model)
    return function.form()


def fields_form(entity: Any, names: Sequence[str]) -> RowForm | None:
    """Return the form of rows of which a caller wants these fields; None if one is not plain.

    Its function returns a mapping of the fields, as the only member of a tuple.
    """
    outer, inner, _ = unwrapped(entity.model)
    # Those of the key as well, which are compared with it.
    chosen = {name: given(inner["fields"][name])["schema"] for name in dict.fromkeys((*names, *entity.key_fields))}
    fields = [Field(number, *each) for number, each in enumerate(chosen.items())]
    if not all(field.tag for field in fields) or not chosen.keys().isdisjoint({entity.expires, *entity.attachments}):
        return None
    function = _RowFunction(fields, entity)
    function.select(outer[-1].get("config"), names)
    return function.form()


def documents_form(entity: Any, revision: str) -> RowForm | None:
    """Return the form of rows that are only written as JSON; None if it could differ from the JSON of entities.

    Its function returns a mapping of the fields, and of the revision by this name, as the only member of a tuple.
    Orjson writes its values as pydantic does, or refuses them.
    """
    outer, inner, _ = unwrapped(entity.model)
    found: Mapping[str, Any] = inner["fields"]
    if entity.attachments or revision in found or not written_as_fields(entity.model):
        return None
    fields = [Field(number, name, each["schema"]) for number, (name, each) in enumerate(found.items())]
    if not all(field.tag for field in fields):
        return None
    for field in fields:
        if field.name not in entity.key_fields:
            field.schema = as_text(field.schema)
        if field.name == entity.expires:
            # Its attribute is that of a row's time of expiry, without which it has its default.
            field.attribute = NOWHERE
    pair_stamps(fields, entity)
    function = _RowFunction(fields, entity)
    function.select(outer[0].get("config"), list(found), revision)
    return function.form()


def _problems(text: str, excluded: Iterable[str]) -> Iterable[str]:
    """The conditions that a text cannot be the value of a field in a key; see `dynashard.keys`."""
    return (f"not {text}", *(f"{each!r} in {text}" for each in sorted(excluded)))


class _RowFunction(Function):
    """The structure of a row, and the function that makes an entity of it."""

    argument = "row"

    def __init__(self, fields: list[Field], entity: Any) -> None:
        super().__init__(fields)
        self._entity = entity
        self._unusual.append("row.kind.S != kind")
        self._names["unset"] = UNSET

    def _lacks(self, field: Field) -> str:
        return f"({field.value} := row.{field.at}.{field.tag}) is unset"

    def _is_absent(self, field: Field) -> str:
        return f"(stored := row.{field.at}) is unset"

    def _is_odd(self, field: Field) -> str:
        return f"({field.value} := stored.{field.tag}) is unset"

    def _is_same(self, other: Field) -> str:
        return f"stored == row.{other.at}"

    def select(self, config: Any, names: Sequence[str], revision: str | None = None) -> None:
        """Validate the fields one by one, and return a mapping of those with these names, the only member of a tuple.

        The mapping ends with the item's revision, if there is a name for it.
        """
        self._unusual.append("row.moved is not unset or row.expires is not unset")
        values = self._checked(config, lambda _: [])
        self._place(values)
        values = {name: values[name] for name in names}
        if revision is not None:
            self._unusual.append("(revision := row.rev.S) is unset")
            values[revision] = "revision"
        self._lines.append(f"return ({{{', '.join(f'{name!r}: {value}' for name, value in values.items())}}},)")

    def validate(self, model: type[BaseModel]) -> None:
        """Let the model validate its stored texts, as its validators and private attributes need it."""
        self._revise()
        required = ", ".join(f"{field.name!r}: {field.value}" for field in self._fields if field.required)
        self._lines.append(f"values = {{{required}}}")
        for field in self._fields:
            if field.required:
                self._unusual.append(self._lacks(field))
            else:
                self._optional(field, ["pass"], [f"values[{field.name!r}] = {field.value}"])
        self._lines.append("item = validate(values)")
        self._compare("item.__dict__")
        self._lines.append("return with_revision(item, revision)")
        self._names["with_revision"] = with_revision
        self._names["validate"] = model.__pydantic_validator__.validate_python

    def _place(self, values: dict[str, str]) -> None:
        entity, names = self._entity, self._entity.key_fields
        for number, name in enumerate(names):
            if not values[name].isidentifier():
                self._lines.append(f"key{number} = {values[name]}")
                values[name] = f"key{number}"
        plain = {field.name for field in self._fields if field.value == values[field.name] and field.unchanged}
        parts = [part for template in (entity.partition, entity.sort) for part in template.parts]
        odd = any(not isinstance(part, str) and (part.spec or len(part.after + part.before) > 1) for part in parts)
        if odd or not plain.issuperset(names):
            self._compare(f"{{{', '.join(f'{name!r}: {values[name]}' for name in names)}}}")
            return
        before = [repr(f"{entity.prefix}{entity.separator}")] if entity.prefix else []
        partition, sort = (
            " + ".join([*start, *(repr(part) if isinstance(part, str) else values[part.name] for part in each.parts)])
            for start, each in ((before, entity.partition), ([], entity.sort))
        )
        # Under another layout, such as that of items to be adopted, the reference codec reads the row.
        place = f"(shard := row.pk.S.rpartition({entity.separator!r}))[0] != {partition} or not shard[2].isdecimal()"
        place = place if entity.shards else f"row.pk.S != {partition}"
        forbidden = [
            problem
            for template in (entity.partition, entity.sort)
            for part in template.parts
            if not isinstance(part, str)
            for problem in _problems(values[part.name], {*template.reserved, part.after, part.before} - {""})
        ]
        self._lines += [f"if {' or '.join([f'row.sk.S != {sort}', place, *forbidden])}:", "    return None"]

    def _compare(self, values: str) -> None:
        """Add the lines that compare a mapping of fields with the key, as decoding an item does."""
        key = f"{{{schema.PK!r}: {{'S': row.pk.S}}, {schema.SK!r}: {{'S': row.sk.S}}}}"
        self._lines += [f"if misplaced({values}, {key}):", "    return None"]
        self._names["misplaced"] = self._entity.misplaced

    def _revise(self) -> None:
        # An empty one is as unusual as none.
        self._unusual.append("not (revision := row.rev.S)")
        self._lines += [
            "if not (row.prev is row.born is row.moved is row.expires is unset):",
            "    if not row.moved is row.expires is unset:",
            "        return None",
            "    revision = later_revision(row)",
        ]
        self._names["later_revision"] = self._later_revision

    def _later_revision(self, row: Any) -> str:
        stored = {schema.REV: row.rev, schema.PREV: row.prev, schema.BORN: row.born}
        wire = {name: {} if text.S is UNSET else {"S": text.S} for name, text in stored.items() if text is not UNSET}
        revision: str = revision_in(wire)
        return revision

    def _structure(self) -> type[Struct]:
        """Return the structure of a row. Its members have other names than attributes, which can be any."""
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

    def form(self) -> RowForm:
        """Return the structure and the function for items of the entity."""
        self._names["kind"] = self._entity.name
        return RowForm(self._structure(), self.made("dynashard.compiled.row_form", AttributeError, TypeError))
