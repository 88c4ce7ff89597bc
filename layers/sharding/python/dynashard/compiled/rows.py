"""Structures of stored items, which msgspec finds in the bytes of an answer or in a parsed item.

A structure has what the layer stores beside the fields of an entity, and the attributes of the fields that are read.
Msgspec skips all other attributes.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

from msgspec import UNSET, Struct, UnsetType, defstruct, field
from msgspec.json import Decoder

from dynashard.schema import BORN, EXPIRES_AT, MOVED_TO, PK, PREV, REV, SK, TYPE, VERSION, index_pk, index_sk


class Text(Struct, gc=False, frozen=True):
    """An attribute that should be a text."""

    S: str | UnsetType = UNSET


class Number(Struct, gc=False, frozen=True):
    """An attribute that should be a number."""

    N: str | UnsetType = UNSET


class Flag(Struct, gc=False, frozen=True):
    """An attribute that should be a boolean."""

    BOOL: bool | UnsetType = UNSET


Capacity = dict[str, str | float]
"""What an answer says of the capacity of a table. As numbers of Python, integers could be too large for sums."""
KINDS: Final[Mapping[str, Any]] = {"S": Text, "N": Number, "BOOL": Flag, "": Any}
"""The structures of attributes by type; "" stands for those that the codec decodes."""


class Row(Struct, gc=False):
    """What the layer stores beside fields. `entry_pk` and `entry_sk` are the keys of an entry in the listed index.

    The members of fields have the names `field0`, `field1` and so on, because attributes can have any name.
    """

    pk: Text | UnsetType = field(name=PK, default=UNSET)
    sk: Text = field(name=SK, default=Text())
    kind: Text = field(name=TYPE, default=Text())
    rev: Text | UnsetType = field(name=REV, default=UNSET)
    prev: Text | UnsetType = field(name=PREV, default=UNSET)
    born: Text | UnsetType = field(name=BORN, default=UNSET)
    moved: Any = field(name=MOVED_TO, default=UNSET)
    version: Any = field(name=VERSION, default=UNSET)
    expires: Number | UnsetType = field(name=EXPIRES_AT, default=UNSET)
    entry_pk: Text = Text()
    entry_sk: Text = Text()


class Member(Struct, frozen=True):
    """A member of a structure: the type of the attribute by this name."""

    name: str
    attribute: str
    tag: str


def structure(members: Iterable[Member], slot: str | None) -> type[Row]:
    """Return the structure of rows with these members, as entries of an index slot if one is named."""
    fields: list[Any] = [
        (each.name, KINDS[each.tag] if each.tag == "" else KINDS[each.tag] | UnsetType, _called(each.attribute))
        for each in members
    ]
    if slot is not None:
        fields += [
            ("entry_pk", Text, field(name=index_pk(slot), default=Text())),
            ("entry_sk", Text, field(name=index_sk(slot), default=Text())),
        ]
    return cast("type[Row]", defstruct("StoredRow", fields, bases=(Row,), gc=False))


def _called(attribute: str) -> Any:
    return field(name=attribute, default=UNSET)


def parser_of(answer: Any) -> Callable[[bytes | bytearray], Any]:
    """Return a function that parses bytes as this structure.

    It returns None for bytes that are not JSON or do not have the structure.
    """
    parse = Decoder(answer).decode

    def parsed(body: bytes | bytearray) -> Any:
        try:
            # Msgspec does not look for invalid UTF-8 in what it skips.
            if not body.isascii():
                body.decode()
            return parse(body)
        except (ValueError, RecursionError):
            return None

    return parsed
