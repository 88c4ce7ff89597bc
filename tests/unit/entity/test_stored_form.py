"""Which fields may be read as objects of another form than they are stored in."""

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Self

import pytest
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    JsonValue,
    OnErrorOmit,
    PlainValidator,
    RootModel,
    StringConstraints,
    model_validator,
)
from typing_extensions import TypedDict

from dynashard import Entity, Key, Registry
from dynashard.codec import encode_value
from dynashard.compiled.stored_form import has_stored_form
from dynashard.entity import EntityDefinition
from dynashard.entity.model import definition


class Plain(BaseModel, extra="forbid"):
    """Is read as it is stored."""

    name: str
    others: "list[Plain] | None" = None


class Judged(BaseModel, extra="forbid"):
    """Is judged by code of its own."""

    name: str

    @model_validator(mode="after")
    def judge(self) -> Self:
        """Accept it."""
        return self


class Made(BaseModel, extra="forbid"):
    """Runs code when it is made."""

    name: str

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)


class Kinded(BaseModel, extra="forbid"):
    """Has a field with the name of a part of schemas."""

    type: str


class Whole(RootModel[dict[str, int]]):
    """A mapping."""


class Lower(BaseModel, extra="forbid", str_to_lower=True):
    """Its texts, and those in its mappings, are in lower case."""

    sizes: dict[str, int]


@dataclass
class Point:
    """A dataclass."""

    x: int


@dataclass
class Spot(Point):
    """One with a default."""

    y: int = 0


@dataclass
class Checked:
    """A dataclass with code of its own."""

    x: int

    def __post_init__(self) -> None:
        """Accept it."""


class Typed(TypedDict):
    """A mapping with declared keys."""

    x: int


Typed.__pydantic_config__ = {"extra": "forbid"}  # type: ignore[attr-defined]


class Kind(StrEnum):
    """An enum."""

    A = "a"


def same(value: Any) -> Any:
    return value


def defined(kind: Any) -> EntityDefinition[Any]:
    """The definition of an entity with a field of this type."""
    namespace = {"__annotations__": {"id": str, "field": kind}, "__module__": __name__}
    made: Any = type(Entity)
    return definition(made("Thing", (Entity,), namespace, key=Key("{id}"), registry=Registry(), name="thing"))


@pytest.mark.parametrize(
    "kind",
    [
        str,
        int | None,
        Decimal,
        Annotated[str, AfterValidator(same)],
        Annotated[set[str], BeforeValidator(same)],
        Kind,
        Plain,
        list[Plain] | None,
        dict[str, Plain],
        dict[str, dict[str, int]],
        Whole,
        Plain | list[str],
        Any,
        JsonValue,
    ],
)
def test_a_value_keeps_its_form_if_nothing_can_change_it(kind: Any) -> None:
    assert not defined(kind).rewritten


@pytest.mark.parametrize(
    "kind",
    [
        Annotated[Plain, BeforeValidator(same)],
        Annotated[Kinded, BeforeValidator(same)],
        Annotated[dict[str, int], AfterValidator(same)],
        list[Annotated[Plain, BeforeValidator(same)]],
        dict[str, Annotated[Plain, BeforeValidator(same)]],
        Annotated[Any, BeforeValidator(same)],
        Annotated[Any, PlainValidator(same)],
        dict[Annotated[str, StringConstraints(to_lower=True)], int],
        dict[Annotated[str, AfterValidator(same)], int],
        dict[int, int],
        Judged,
        Made,
        Lower,
        Judged | None,
        Plain | Judged,
        tuple[Judged, ...],
        list[OnErrorOmit[Plain]],
    ],
)
def test_a_value_may_change_its_form(kind: Any) -> None:
    assert defined(kind).rewritten == {"field"}


def test_a_validator_of_the_whole_item_may_change_every_object() -> None:
    class Room(Entity, key=Key("{id}"), registry=Registry(), name="room"):
        id: str
        title: str = ""
        place: Plain | None = None

        @model_validator(mode="before")
        @classmethod
        def renamed(cls, values: Any) -> Any:
            return values

    assert definition(Room).rewritten == {"place"}


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("Paris", ["Paris"]),
        (None, {}),
        (Plain(name="a"), {"name": "a"}),
        (Plain(name="a"), {"name": "a", "later": 1}),
        (Plain(name="a", others=[Plain(name="b")]), {"name": "a", "others": [{"name": "b"}]}),
        ({"a": Plain(name="a")}, {"a": {"name": "a"}}),
        (Whole({"a": 1}), {"a": 1}),
        (Spot(1), {"x": 1}),
        (Spot(1, 2), {"x": 1, "y": 2}),
    ],
)
def test_a_value_has_the_form_of_what_is_stored(value: Any, stored: Any) -> None:
    assert has_stored_form(value, encode_value(stored, path="value"), typed_dicts=False)


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (Plain(name="a"), "a"),
        (Plain(name="a"), None),
        (Plain(name="a"), {"title": "a"}),
        (Plain(name="a", others=[Plain(name="b")]), {"name": "a", "others": ["b"]}),
        ({"a": Plain(name="a")}, {"a": "a"}),
        ({"a": 1}, {"A": 1}),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({}, "none"),
        (Whole({"a": 1}), {"A": 1}),
        (Spot(1), {"y": 1}),
        ([{"a": 1}], ["a"]),
    ],
)
def test_a_value_has_another_form(value: Any, stored: Any) -> None:
    assert not has_stored_form(value, encode_value(stored, path="value"), typed_dicts=False)


def test_a_typed_dict_may_be_stored_with_more_members() -> None:
    stored = {"M": {"x": {"N": "1"}, "later": {"N": "2"}}}

    assert has_stored_form({"x": 1}, stored, typed_dicts=True)
    assert not has_stored_form({"x": 1}, stored, typed_dicts=False)
    assert not has_stored_form({"x": 1}, None, typed_dicts=True)
