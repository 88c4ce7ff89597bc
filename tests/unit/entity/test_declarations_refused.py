"""Wrong declarations are refused while the class is created, with the entity's name and the reason."""

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, ClassVar, Literal
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict, Field
from pydantic.dataclasses import dataclass
from typing_extensions import TypedDict

from dynashard import Entity, Key, Registry, Shards, created_at, definition, updated_at
from dynashard.errors import DeclarationError
from dynashard.schema import SYSTEM_ATTRIBUTES
from tests.declaring import KEY, NAME, an_index, declare, new_class, sorted_by

pytestmark = pytest.mark.unit


class Fruit(Enum):
    ONE = 1
    ALSO_ONE = "1"


class Weight(Enum):
    LIGHT = 0.5


class Renamed(BaseModel, extra="forbid", populate_by_name=True):
    inside: str = Field(alias="outside")


class RenamedKeys(TypedDict):
    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]
    inside: Annotated[str, Field(alias="outside")]


@dataclass(config=ConfigDict(extra="forbid"))
class RenamedPart:
    inside: str = Field(serialization_alias="outside")


BAD: dict[str, tuple[Callable[[], object], str]] = {
    # Shards.
    "three shards": (lambda: declare(shards=Shards(3)), "the shard count is 3; it must be a power of two"),
    "no shards": (lambda: declare(shards=Shards(0)), "the shard count is 0; it must be a number from 1 to 1024"),
    "too many shards": (
        lambda: declare(shards=Shards(2048)),
        "the shard count is 2048; it must be a number from 1 to 1024",
    ),
    "1025 shards": (
        lambda: declare(shards=Shards(1025)),
        "the shard count is 1025; it must be a number from 1 to 1024",
    ),
    "negative shards": (lambda: declare(shards=Shards(-1)), "the shard count is -1; it must be a number"),
    "true shards": (lambda: declare(shards=Shards(True)), "the shard count is True; it must be a number"),  # noqa: FBT003
    "text shards": (
        lambda: declare(shards=Shards("16")),  # type: ignore[arg-type]
        "the shard count is '16'; it must be a number",
    ),
    "float shards": (
        lambda: declare(shards=Shards(16.0)),  # type: ignore[arg-type]
        "the shard count is 16.0; it must be a number",
    ),
    "1025 by modulo": (lambda: declare(shards=Shards(1025, "modulo")), "the shard count is 1025; it must be a number"),
    "0 by modulo": (lambda: declare(shards=Shards(0, "modulo")), "the shard count is 0; it must be a number"),
    "unknown placement": (
        lambda: declare(shards=Shards(16, "dice")),
        "placement is 'dice'; it must be one of calculated, epochs, modulo, parts, random",
    ),
    "three to start with": (lambda: declare(shards=Shards(start=3)), "the shard count is 3; it must be a power of two"),
    "epochs of keys that callers choose": (
        lambda: declare(shards=Shards(1, placement="epochs")),
        "has epochs placement, and its sort key begins with id, which carries no time",
    ),
    "three at random": (
        lambda: declare(shards=Shards(3, placement="random")),
        "the shard count is 3; it must be a power of two",
    ),
    # Growth.
    "max of 100": (lambda: declare(shards=Shards(16, max=100)), "max is 100; it must be a power of two up to 1024"),
    "max of 2048": (lambda: declare(shards=Shards(16, max=2048)), "max is 2048; it must be a power of two up to"),
    "max of nothing": (lambda: declare(shards=Shards(1, max=0)), "max is 0; it must be a power of two"),
    "true max": (lambda: declare(shards=Shards(1, max=True)), "max is True; it must be a power of two"),
    "text max": (
        lambda: declare(shards=Shards(1, max="256")),  # type: ignore[arg-type]
        "max is '256'; it must be",
    ),
    "max below the count": (
        lambda: declare(shards=Shards(16, max=8)),
        "max is 8; it must not be less than the shard count, 16",
    ),
    "max by modulo": (
        lambda: declare(shards=Shards(10, "modulo", max=16)),
        "max is 16, but counts of modulo placement never change",
    ),
    # Adoption.
    "adopts what it cannot": (
        lambda: declare(shards=Shards(16, adopt="modulo")),  # type: ignore[arg-type]
        "adopt is 'modulo'; it must be 'unsharded'",
    ),
    "adopts nothing": (
        lambda: declare(shards=Shards(16, adopt="")),  # type: ignore[arg-type]
        "adopt is ''; it must be 'unsharded'",
    ),
    "adopts by modulo": (
        lambda: declare(shards=Shards(10, "modulo", adopt="unsharded")),
        "adopt needs calculated or epochs placement, not modulo",
    ),
    "adopts at random": (
        lambda: declare(shards=Shards(16, "random", adopt="unsharded")),
        "adopt needs calculated or epochs placement, not random",
    ),
    "adopts into read replicas": (
        lambda: declare(shards=Shards(16, adopt="unsharded", read_replicas=1)),
        "adopt and read_replicas cannot be combined",
    ),
    "adopts with a separator": (
        lambda: declare(key=Key("{tenant}", "{id}", "", "_"), shards=Shards(16, adopt="unsharded")),
        "adopts unsharded items with the separator '_'",
    ),
    "adopts without sort": (
        lambda: declare(key=Key(partition="{tenant}"), shards=Shards(16, adopt="unsharded")),
        "its key has no sort part",
    ),
    "sharded without sort": (
        lambda: declare(key=Key(partition="{tenant}"), shards=Shards(16)),
        "its key has no sort part",
    ),
    "sharded with constant sort": (
        lambda: declare(key=sorted_by("profile"), shards=Shards(16)),
        "its sort key is constant",
    ),
    # Templates.
    "unknown field": (
        lambda: declare(key=sorted_by("{nobody}")),
        "sort template '{nobody}' names nobody, which is not a field",
    ),
    "unknown partition field": (
        lambda: declare(key=Key(partition="{nobody}", sort="{id}")),
        "partition template '{nobody}' names nobody, which is not a field",
    ),
    "open brace": (lambda: declare(key=sorted_by("{id")), "template '{id': expected '}'"),
    "closing brace": (lambda: declare(key=sorted_by("id}")), "Single '}' encountered"),
    "lone brace": (lambda: declare(key=sorted_by("{")), "Single '{' encountered"),
    "empty braces": (lambda: declare(key=sorted_by("{}")), "braces hold a field name"),
    "positional braces": (lambda: declare(key=sorted_by("{0}")), "braces hold a field name"),
    "attribute in braces": (lambda: declare(key=sorted_by("{id.upper}")), "braces hold a field name"),
    "item in braces": (lambda: declare(key=sorted_by("{id[0]}")), "braces hold a field name"),
    "conversion in braces": (lambda: declare(key=sorted_by("{id!r}")), "braces hold a field name"),
    "blank in braces": (lambda: declare(key=sorted_by("{ id }")), "braces hold a field name"),
    "nested braces": (
        lambda: declare({"n": int}, key=sorted_by("{n:{id}}")),
        "the format '{id}' of n is not one for keys",
    ),
    "field twice": (lambda: declare(key=sorted_by("{id}#{id}")), "names id twice"),
    "neighbours": (lambda: declare({"other": str}, key=sorted_by("{id}{other}")), "it is unclear where id ends"),
    "number next to text": (lambda: declare({"n": int}, key=sorted_by("{n}{id}")), "it is unclear where n ends"),
    "empty template": (lambda: declare(key=sorted_by("")), "a template may not be empty"),
    "empty partition": (lambda: declare(key=Key(partition="", sort="{id}")), "a template may not be empty"),
    # Fields of keys.
    "optional key field": (
        lambda: declare({"other": (str | None, None)}, key=sorted_by("{other}")),
        "sort names other, which may be None: a key needs it",
    ),
    "float key field": (lambda: declare({"n": float}, key=sorted_by("{n}")), "a key field must be text"),
    "bool key field": (lambda: declare({"n": bool}, key=sorted_by("{n}")), "a key field must be text"),
    "list key field": (lambda: declare({"n": list[str]}, key=sorted_by("{n}")), "a key field must be text"),
    "decimal key field": (lambda: declare({"n": Decimal}, key=sorted_by("{n}")), "a key field must be text"),
    "bytes key field": (lambda: declare({"n": bytes}, key=sorted_by("{n}")), "a key field must be text"),
    "any key field": (lambda: declare({"n": Any}, key=sorted_by("{n}")), "a key field must be text"),
    "literal bool key field": (lambda: declare({"n": Literal[True]}, key=sorted_by("{n}")), "a key field must be text"),
    "number or text": (lambda: declare({"n": int | str}, key=sorted_by("{n}")), "n, which is of several types"),
    "literals of two types": (
        lambda: declare({"n": Literal[1, "1"]}, key=sorted_by("{n}")),
        "n, which is of several types",
    ),
    "enum with one text twice": (
        lambda: declare({"n": Fruit}, key=sorted_by("{n}")),
        "two values of Fruit are one text",
    ),
    "enum of floats": (
        lambda: declare({"n": Weight}, key=sorted_by("{n}")),
        "the values of Weight must be text or int",
    ),
    "creation stamp in the key": (
        lambda: declare({"at": (datetime, created_at())}, key=sorted_by("{at}")),
        "at is stamped at writes, so it cannot be part of the key",
    ),
    "change stamp in the key": (
        lambda: declare({"at": (datetime, updated_at())}, key=sorted_by("{at}")),
        "at is stamped at writes, so it cannot be part of the key",
    ),
    # Values that no key can hold.
    "time in a partition": (
        lambda: declare({"at": datetime}, key=Key(partition="{at}", sort="{id}")),
        "partition '{at}' cannot hold a datetime: at may not contain ':'",
    ),
    "date ended by its own dash": (
        lambda: declare({"on": date}, key=sorted_by("{on}-{id}")),
        "sort '{on}-{id}' cannot hold a date: on may not contain '-'",
    ),
    "uuid ended by its own dash": (
        lambda: declare({"part": UUID}, key=sorted_by("{part}-{id}")),
        "sort '{part}-{id}' cannot hold a UUID: part may not contain '-'",
    ),
    # Formats.
    "format of text": (lambda: declare(key=sorted_by("{id:>10}")), "the format '>10' of id is not one for keys"),
    "format of a date": (lambda: declare({"on": date}, key=sorted_by("{on:10d}")), "the format '10d' of on is not one"),
    "format of a number": (lambda: declare({"n": int}, key=sorted_by("{n:.2f}")), "the format '.2f' of n is not one"),
    "format with signs": (lambda: declare({"n": int}, key=sorted_by("{n:+d}")), "the format '+d' of n is not one"),
    "format with commas": (lambda: declare({"n": int}, key=sorted_by("{n:,}")), "the format ',' of n is not one"),
    "format of no width": (lambda: declare({"n": int}, key=sorted_by("{n:00d}")), "the format '00d' of n is not one"),
    "format of an enum": (
        lambda: declare({"n": IntEnum("Level", ["LOW"])}, key=sorted_by("{n:03d}")),
        "the format '03d' of n is not one",
    ),
    "format of a uuid": (lambda: declare({"n": UUID}, key=sorted_by("{n:x}")), "the format 'x' of n is not one"),
    # Indexes.
    "slot twice": (
        lambda: declare(indexes=[an_index(), an_index(name="again")]),
        "uses GSI1 twice: for by_id and for again",
    ),
    "index name twice": (lambda: declare(indexes=[an_index(), an_index("GSI2")]), "has two indexes named by_id"),
    "unknown slot": (lambda: declare(indexes=[an_index("GSI4")]), "slot is 'GSI4'; it must be one of GSI1, GSI2, GSI3"),
    "index name that is not a name": (
        lambda: declare(indexes=[an_index(name="by id")]),
        "index name is 'by id'; it must be an identifier",
    ),
    "index of unknown field": (
        lambda: declare(indexes=[an_index(sort="{nobody}")]),
        "by_id sort template '{nobody}' names nobody, which is not a field",
    ),
    "index of a float": (
        lambda: declare({"n": float}, indexes=[an_index(sort="{n}")]),
        "by_id sort names n: a key field",
    ),
    "index of a list": (
        lambda: declare({"n": list[str]}, indexes=[an_index(partition="{n}")]),
        "by_id partition names n: a key field",
    ),
    "index of no template": (lambda: declare(indexes=[an_index(sort="")]), "by_id sort: a template may not be empty"),
    "index with three shards": (
        lambda: declare(indexes=[an_index(shards=Shards(3))]),
        "the shard count is 3; it must be a power",
    ),
    "index by modulo": (
        lambda: declare(indexes=[an_index(shards=Shards(10, "modulo"))]),
        "indexes need 'calculated'",
    ),
    "index at random": (
        lambda: declare(indexes=[an_index(shards=Shards(4, "random"))]),
        "indexes need 'calculated'",
    ),
    "index that adopts": (
        lambda: declare(indexes=[an_index(shards=Shards(4, adopt="unsharded"))]),
        "index by_id: indexes are not adopted",
    ),
    "index with max below its count": (
        lambda: declare(indexes=[an_index(shards=Shards(4, max=2))]),
        "max is 2; it must not be less than the shard count, 4",
    ),
    "index sharded by a guess": (
        lambda: declare(indexes=[an_index(shard_by="dice")]),
        "index by_id: shard_by is 'dice'; it must be 'item_key' or 'index_key'",
    ),
    "index prefix with a colon": (
        lambda: declare(indexes=[an_index(prefix="a:b")]),
        "index by_id: prefix is 'a:b'; it must consist",
    ),
    "empty index prefix": (
        lambda: declare(indexes=[an_index(prefix="")]),
        "index by_id: prefix is ''; it must consist",
    ),
    # Names, prefixes, separators.
    "empty name": (lambda: declare(name=""), "it must consist of letters"),
    "name with a colon": (lambda: declare(name="a:b"), "it must consist of letters"),
    "name with braces": (lambda: declare(name="{id}"), "it must consist of letters"),
    "name with a line end": (lambda: declare(name="user\n"), "it must consist of letters"),
    "prefix with a colon": (
        lambda: declare(key=Key("{tenant}", "{id}", prefix="a:b")),
        "prefix is 'a:b'; it must consist",
    ),
    "prefix with a blank": (lambda: declare(key=Key("{tenant}", "{id}", prefix=" ")), "prefix is ' '; it must consist"),
    "empty prefix": (lambda: declare(key=Key("{tenant}", "{id}", prefix="")), "prefix is ''; it must consist"),
    "separator and a prefix": (
        lambda: declare(key=Key("{tenant}", "{id}", prefix="a", separator="_"), shards=Shards(4)),
        "the separator '_' needs an empty prefix and shards",
    ),
    "separator without shards": (
        lambda: declare(key=Key("{tenant}", "{id}", prefix="", separator="_")),
        "the separator '_' needs an empty prefix and shards",
    ),
    "digit as separator": (
        lambda: declare(key=Key("{tenant}", "{id}", "", "0"), shards=Shards(4)),
        "separator is '0'; it must be one",
    ),
    "no separator": (
        lambda: declare(key=Key("{tenant}", "{id}", "", ""), shards=Shards(4)),
        "separator is ''; it must be one",
    ),
    "long separator": (
        lambda: declare(key=Key("{tenant}", "{id}", "", "__"), shards=Shards(4)),
        "separator is '__'; it must be one",
    ),
    "two separators": (
        lambda: declare(key=Key("{tenant}", "{id}", "", "_-"), shards=Shards(4)),
        "separator is '_-'; it must be one",
    ),
    "half a character as separator": (
        lambda: declare(key=Key("{tenant}", "{id}", "", "\ud800"), shards=Shards(4)),
        "it must be one character of",
    ),
    "colon and a separator": (
        lambda: declare(key=Key("user.v1.User:{tenant}", "{id}", "", "_"), shards=Shards(4)),
        "may not contain ':', which divides all other keys",
    ),
    "name without key": (lambda: new_class("T", {"__module__": __name__}, name=NAME), "needs both a name and a key"),
    # Fields.
    "type that comes later": (lambda: declare({"x": "NotYetDefined"}), "a type that is not defined yet"),
    "alias": (
        lambda: declare({"x": (str, Field(alias="y"))}),
        "field x has an alias: stored attributes are named like their fields",
    ),
    "validation alias": (lambda: declare({"x": (str, Field(validation_alias="y"))}), "field x has an alias"),
    "serialization alias": (lambda: declare({"x": (str, Field(serialization_alias="y"))}), "field x has an alias"),
    "alias in a nested model": (
        lambda: declare({"x": list[Renamed]}),
        "holds a Renamed, whose field inside has an alias: stored attributes are named like their fields; leave the",
    ),
    "alias in a typed dictionary": (lambda: declare({"x": RenamedKeys}), "holds a RenamedKeys, whose field inside has"),
    "alias in a dataclass": (lambda: declare({"x": RenamedPart | None}), "holds a RenamedPart, whose field inside has"),
    "unknown fields that are allowed": (lambda: declare(extra="allow"), "has extra='allow': unknown fields are not"),
    "unknown fields that are ignored": (
        lambda: declare({"model_config": (ClassVar[ConfigDict], ConfigDict(extra="ignore"))}),
        "has extra='ignore': unknown fields are not stored, so what callers send would be lost; leave it out",
    ),
    "expires names no field": (lambda: declare(expires="x"), "expires names x, which is not a field"),
    "expires names a text": (
        lambda: declare({"x": (str | None, None)}, expires="x"),
        "expires names x: declare it as `datetime | None = None`",
    ),
    "expires cannot be empty": (
        lambda: declare({"x": datetime}, expires="x"),
        "declare it as `datetime | None = None`",
    ),
    "expires without default": (lambda: declare({"x": datetime | None}, expires="x"), "declare it as `datetime | None"),
    "stamp that is a text": (
        lambda: declare({"x": (str, created_at())}),
        "field x is a stamp: declare it as a datetime",
    ),
    "stamp that may be empty": (lambda: declare({"x": (datetime | None, updated_at())}), "field x is a stamp"),
}


@pytest.mark.parametrize(("wrong", "reason"), BAD.values(), ids=BAD)
def test_wrong_declaration_is_refused_with_name_and_reason(wrong: Callable[[], object], reason: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        wrong()

    assert reason in refused.value.reason
    assert str(refused.value) == f"{refused.value.entity}: {refused.value.reason}"
    assert refused.value.entity in {NAME, "", "a:b", "{id}", "user\n"}


@pytest.mark.parametrize("attribute", sorted(SYSTEM_ATTRIBUTES))
def test_field_with_the_name_of_a_system_attribute_is_refused(attribute: str) -> None:
    with pytest.raises(DeclarationError, match=f"{NAME}: field {attribute} has the name of a system attribute"):
        declare({attribute: str})


def test_key_without_name_is_refused_under_the_name_of_the_class() -> None:
    with pytest.raises(DeclarationError, match=r"^Thing: an entity needs both a name and a key"):

        class Thing(Entity, key=KEY):
            tenant: str
            id: str


def test_name_can_be_declared_once() -> None:
    registry = Registry()
    declare(registry=registry)

    with pytest.raises(DeclarationError, match=f"{NAME}: another entity has this name"):
        declare(registry=registry, key=Key("{tenant}", "{id}", prefix="other"))


def test_definition_of_a_class_that_declares_none_is_refused() -> None:
    class Undeclared(Entity):
        id: str

    class Inherited(declare()):  # type: ignore[misc]
        more: str

    with pytest.raises(DeclarationError, match="Undeclared: declares no entity"):
        definition(Undeclared)
    with pytest.raises(DeclarationError, match="Inherited: declares no entity"):
        definition(Inherited)
