"""Stored items of another version: unknown members and required fields without a value are read, nothing else is."""

import json
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, ValidationError, ValidationInfo, field_validator, model_validator

from dynashard import Entity, EntityDefinition, Key, Registry, definition
from dynashard.errors import InvalidValueError, UndecodableItemError

pytestmark = pytest.mark.unit

OURS = {"Type": {"S": "test.v1.Part"}, "Rev": {"S": "r1"}}


class Kind(StrEnum):
    BOLT = "bolt"
    NUT = "nut"


class Size(IntEnum):
    SMALL = 1


class Maker(BaseModel, extra="forbid"):
    name: str
    kind: Kind = Kind.BOLT


class Part(Entity, name="test.v1.Part", key=Key(partition="{tenant}", sort="{id}"), registry=Registry()):
    tenant: str
    id: str
    kind: Kind
    size: Size = Size.SMALL
    grade: Literal["a", "b"] | None = None
    kinds: list[Kind] = Field(default_factory=list)
    maker: Maker | None = None
    count: int = 0
    note: str = Field("", max_length=3)

    @field_validator("kind")
    @classmethod
    def declared(cls, kind: Kind) -> Kind:
        assert kind.name  # A member that is not declared has no name.
        return kind

    @model_validator(mode="after")
    def whole(self) -> "Part":
        assert self.kind.name
        return self


def stored(**attributes: dict[str, Any] | None) -> dict[str, Any]:
    wire: dict[str, Any] = {"tenant": {"S": "t"}, "id": {"S": "1"}, "kind": {"S": "bolt"}, **OURS, **attributes}
    return {name: value for name, value in wire.items() if value is not None}


@pytest.fixture(params=["compiled", "reference"])
def entity(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> EntityDefinition[Part]:
    """The definition, whose items are read by the compiled reader first, or by the reference alone."""
    if request.param == "reference":
        monkeypatch.setattr(EntityDefinition, "decode", lambda self, wire: self.reference.decode(wire))
    return definition(Part)


TOLERATED: dict[str, tuple[dict[str, Any], str, Any]] = {
    "member of an enum": ({"kind": {"S": "screw"}}, "kind", "screw"),
    "member of a number's enum": ({"size": {"N": "7"}}, "size", 7),
    "literal": ({"grade": {"S": "c"}}, "grade", "c"),
    "member in a list": ({"kinds": {"L": [{"S": "nut"}, {"S": "screw"}]}}, "kinds", [Kind.NUT, "screw"]),
    "required field": ({"kind": None}, "kind", None),
    "required field that is null": ({"kind": {"NULL": True}}, "kind", None),
}


@pytest.mark.parametrize(("attributes", "field", "value"), TOLERATED.values(), ids=TOLERATED)
def test_what_another_version_declares_is_read(
    entity: EntityDefinition[Part], attributes: dict[str, Any], field: str, value: Any
) -> None:
    wire = stored(**attributes)

    item = entity.decode(wire)

    assert getattr(item, field) == value
    assert item.revision == "r1"
    assert entity.decode_fields(wire, [field, "count"]) == {field: value, "count": 0}


@pytest.mark.parametrize("attributes", [case[0] for case in TOLERATED.values()], ids=TOLERATED)
def test_it_is_stored_again_as_it_was(entity: EntityDefinition[Part], attributes: dict[str, Any]) -> None:
    wire = stored(**attributes)

    again = entity.encode(entity.decode(wire).__dict__)

    [(name, value)] = attributes.items()
    # A field without a value is not stored; a write that changes what was read leaves a stored null alone.
    assert again.get(name) == (None if value in (None, {"NULL": True}) else value)


def test_fields_that_are_not_stored_have_their_defaults_but_none_that_a_function_makes(
    entity: EntityDefinition[Part],
) -> None:
    assert entity.decode_fields(stored(), ["count", "note", "kinds"]) == {"count": 0, "note": "", "kinds": None}


class Plain(Entity, name="test.v1.Plain", key=Key(partition="{tenant}", sort="{id}"), registry=Registry()):
    tenant: str
    id: str
    count: int = 0


def test_what_is_written_as_json_is_a_mapping_if_the_compiled_reader_knows_the_item_and_else_the_item() -> None:
    wire = {"tenant": {"S": "t"}, "id": {"S": "1"}, "Type": {"S": "test.v1.Plain"}, "Rev": {"S": "r1"}}

    known = definition(Plain).document(wire, "etag")
    other = definition(Part).document(stored(kind={"S": "screw"}), "etag")

    assert isinstance(known, tuple)
    assert dict(known[0]) == {"tenant": "t", "id": "1", "count": 0, "etag": "r1"}
    assert isinstance(other, Part)


def test_it_is_read_inside_of_models(entity: EntityDefinition[Part]) -> None:
    maker = {"M": {"kind": {"S": "screw"}, "newer": {"S": "x"}}}

    item = entity.decode(stored(maker=maker))

    assert item.maker is not None
    assert vars(item.maker) == {"kind": "screw", "name": None}
    assert entity.encode(item.__dict__)["maker"] == {"M": {"kind": {"S": "screw"}}}


class Label(BaseModel, extra="forbid"):
    text: str | None
    more: str | None = None


class Box(Entity, name="test.v1.Box", key=Key(partition="{id}"), registry=Registry()):
    id: str
    label: Label


def test_a_required_member_that_was_given_as_nothing_is_stored_as_nothing() -> None:
    box = definition(Box)

    given = box.encode(vars(Box(id="1", label=Label(text=None))))
    lacking = box.decode({**given, "label": {"M": {}}, "Type": {"S": "test.v1.Box"}, "Rev": {"S": "r1"}})

    assert given["label"] == {"M": {"text": {"NULL": True}, "more": {"NULL": True}}}
    assert box.encode(vars(lacking))["label"] == {"M": {"more": {"NULL": True}}}


UNDECODABLE: dict[str, dict[str, Any]] = {
    "another type": {"kind": {"N": "1"}},
    "another type beside it": {"kind": {"S": "screw"}, "count": {"S": "many"}},
    "a bound beside it": {"kind": {"S": "screw"}, "note": {"S": "long"}},
    "a field of the key": {"id": None},
    "no type": {"kind": {"S": "screw"}, "Type": None},
    "no revision": {"kind": {"S": "screw"}, "Rev": None},
    "null in a list": {"kinds": {"L": [{"NULL": True}]}},
}


@pytest.mark.parametrize("attributes", UNDECODABLE.values(), ids=UNDECODABLE)
def test_anything_else_is_undecodable(entity: EntityDefinition[Part], attributes: dict[str, Any]) -> None:
    with pytest.raises(UndecodableItemError):
        entity.decode(stored(**attributes))


@pytest.mark.parametrize(
    ("values", "taken", "kind"),
    [
        ({"kind": "screw"}, {"kind"}, "screw"),
        ({"kind": "screw"}, {"kind", "count"}, "screw"),
        ({"kind": "screw"}, {"count"}, None),
        ({"kind": "screw", "size": 7}, {"kind"}, None),
        ({"kind": "screw", "note": "long"}, {"kind", "note"}, None),
    ],
)
def test_only_values_that_were_taken_from_an_item_may_be_of_another_version(
    values: dict[str, Any], taken: set[str], kind: str | None
) -> None:
    given = {"tenant": "t", "id": "1", **values}
    with pytest.raises(ValidationError) as refused:
        Part.model_validate(given)

    made = definition(Part).tolerance.made(given, refused.value, taken)

    assert (made and made.kind) == kind


def test_an_item_is_undecodable_if_a_validator_of_another_field_does_not_know_the_member() -> None:
    lengths = {Kind.BOLT: 30, Kind.NUT: 5}

    class Order(Entity, name="test.v1.Order", key=Key(partition="{id}"), registry=Registry()):
        id: str
        kind: Kind
        length: int

        @field_validator("length")
        @classmethod
        def possible(cls, length: int, others: ValidationInfo) -> int:
            # A field that was refused is not among the others.
            return min(length, lengths[others.data["kind"]]) if "kind" in others.data else length

    known, given = definition(Order), {"id": "1", "kind": "screw", "length": 9}
    with pytest.raises(ValidationError) as refused:
        Order.model_validate(given)

    with pytest.raises(UndecodableItemError, match=r"kind: Input should be 'bolt' or 'nut'"):
        known.decode(
            {"id": {"S": "1"}, "kind": {"S": "screw"}, "length": {"N": "9"}, **OURS, "Type": {"S": "test.v1.Order"}}
        )
    assert known.tolerance.made(given, refused.value, given) is None
    assert known.tolerance.document(json.dumps(given), {"kind"}) is None


def test_a_list_with_a_null_is_undecodable_when_it_is_read_alone(entity: EntityDefinition[Part]) -> None:
    with pytest.raises(UndecodableItemError, match="kinds: Input should be 'bolt' or 'nut'"):
        entity.decode_fields(stored(kinds={"L": [{"NULL": True}]}), ["kinds"])


def test_the_first_field_that_is_wrong_is_named(entity: EntityDefinition[Part]) -> None:
    with pytest.raises(UndecodableItemError, match=r"test\.v1\.Part at .*: count: Input should be a valid integer"):
        entity.decode(stored(count={"S": "many"}, note={"S": "long"}))
    with pytest.raises(InvalidValueError, match=r"^kinds: Input should be 'bolt' or 'nut'") as refused:
        definition(Part).assignment.check("kinds", ["screw", None])
    assert refused.value.field == "kinds"


def test_what_callers_give_is_checked_strictly() -> None:
    known = definition(Part)
    item = known.decode(stored(kind={"S": "screw"}))

    with pytest.raises(InvalidValueError, match="Input should be 'bolt' or 'nut'"):
        known.assignment.check("kind", "screw")
    with pytest.raises(ValueError, match="Input should be 'bolt' or 'nut'"):
        item.kind = "screw"  # type: ignore[assignment]


def test_models_that_contain_themselves_are_read() -> None:
    class Node(BaseModel, extra="forbid"):
        kind: Kind
        inside: "Node | None" = None

    class Tree(Entity, name="test.v1.Tree", key=Key(partition="{id}"), registry=Registry()):
        id: str
        at: datetime | None = None
        top: Node | None = None

    inner = {"M": {"kind": {"S": "screw"}, "inside": {"M": {}}}}
    tree = definition(Tree).decode({"id": {"S": "1"}, "top": inner, "Type": {"S": "test.v1.Tree"}, "Rev": {"S": "r"}})

    assert tree.top is not None
    assert tree.top.inside is not None
    assert [vars(tree.top)["kind"], vars(tree.top.inside)["kind"]] == ["screw", None]
