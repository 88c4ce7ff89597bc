"""Items are decoded and checked in one pass, with the values and the errors of decoding first and checking then."""

import copy
import pickle
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field, PrivateAttr, ValidationInfo, field_validator, model_validator

from dynashard import Entity, EntityDefinition, Key, Registry, definition
from dynashard.entity import with_revision
from dynashard.errors import UndecodableItemError
from dynashard.schema import EXPIRES_AT
from tests.depth import examples
from tests.every_field import Everything, Line, items

pytestmark = pytest.mark.unit

SYSTEM: dict[str, Any] = {
    "Type": {"S": "t"},
    "Rev": {"S": "r"},
    "GSI1PK": {"S": "g"},
}
"""What an item has besides its fields."""
ATTRIBUTES = st.sampled_from(
    [
        {"S": "text"}, {"S": ""}, {"S": "7"}, {"S": "1.50"}, {"S": "true"}, {"S": "2021-02-24T19:28:41.000000Z"},
        {"N": "0"}, {"N": "-7"}, {"N": "1.50"}, {"N": "4.2E1"}, {"N": "1E-7"}, {"N": "99999999999999999999999"},
        {"N": "4_2"}, {"N": " 5"}, {"BOOL": True}, {"BOOL": False}, {"NULL": True}, {"B": "AAEC"}, {"B": "?"},
        {"L": []}, {"L": [{"N": "1.0"}, {"S": "x"}]}, {"M": {}}, {"M": {"price": {"N": "1"}, "gone": {"S": "x"}}},
        {"SS": ["a", "b"]}, {"NS": ["1.0", "2"]}, {"BS": ["AA=="]}, {"X": "unknown"}, {},
    ]
)  # fmt: skip
"""Attributes that a field may have, after its type changed or by another writer."""


class Special(Entity, name="form.v1.Special", key=Key("{id}"), expires="until", registry=Registry()):
    """Fields whose types and validators are unusual, or whose values pydantic fills in."""

    id: str
    until: datetime | None = None
    needed: str | None
    strict: int = Field(default=3, strict=True)
    kind: Literal["a", "b"] = "a"
    number: Literal[1, 2] = 1
    either: int | str = 0
    bounded: str = Field(default="long enough", min_length=4, validate_default=True)
    upper: str = "X"
    rounded: Decimal = Decimal(1)
    lines: list[Line] = Field(default_factory=list)
    _seen: list[int] = PrivateAttr(default_factory=list)

    @field_validator("upper")
    @classmethod
    def _in_capitals(cls, value: str) -> str:
        return value.upper()

    @field_validator("rounded", mode="before")
    @classmethod
    def _round(cls, value: Any, info: ValidationInfo) -> Any:
        return round(value, 1) if isinstance(value, Decimal) and info.data.get("kind") != "b" else value

    @model_validator(mode="after")
    def _no_b_with_two(self) -> "Special":
        if self.kind == "b" and self.number == 2:
            raise ValueError("no b with 2")
        return self


class Prepared(Entity, name="form.v1.Prepared", key=Key("{id}"), registry=Registry()):
    """A model whose validator must see all values decoded."""

    id: str
    total: int = 0

    @model_validator(mode="before")
    @classmethod
    def _sum(cls, values: Any) -> Any:
        return {"total": len(values), **values} if "total" not in values else values


def outcome(decode: Any, *arguments: Any) -> Any:
    """What a decoder returns, down to the order and types of the values, or the error that it raises."""
    try:
        found = decode(*arguments)
    except UndecodableItemError as error:
        return str(error)
    if isinstance(found, dict):
        return repr(list(found.items()))
    return repr(list(found.__dict__.items())), found.model_fields_set, found.revision, found.model_extra


@st.composite
def stored(draw: st.DrawFn, entity: EntityDefinition[Any]) -> dict[str, Any]:
    """Draw a stored item: each field absent, as its type is stored, or something else."""
    wire = dict(SYSTEM)
    if entity.model is Everything:
        wire |= entity.encode(draw(items).__dict__)
    names = [*entity.attributes_of(entity.model.model_fields), "removed", "PREV"]
    for name in draw(st.lists(st.sampled_from(names), max_size=12, unique=True)):
        wire[name] = draw(ATTRIBUTES)
    for name in draw(st.lists(st.sampled_from(names), max_size=3)):
        wire.pop(name, None)
    return wire


@pytest.mark.parametrize("model", [Everything, Special, Prepared])
@settings(max_examples=examples(1200))
@given(data=st.data())
def test_the_one_pass_has_the_values_and_errors_of_decoding_first(model: type[Entity], data: st.DataObject) -> None:
    entity = definition(model)
    wire = data.draw(stored(entity))
    fields = data.draw(st.lists(st.sampled_from(list(model.model_fields)), unique=True))

    assert outcome(entity.decode, wire) == outcome(entity.decode_singly, wire)
    assert outcome(entity.decode_fields, wire, fields) == outcome(entity.decode_fields_singly, wire, fields)


@settings(max_examples=examples(300))
@given(item=items)
def test_what_the_layer_has_stored_is_decoded_in_one_pass(item: Everything) -> None:
    entity = definition(Everything)
    wire = {**SYSTEM, **entity.encode(item.__dict__)}

    assert entity._item_validator is not None
    assert repr(entity._item_validator(wire).__dict__) == repr(entity.decode_singly(wire).__dict__)


def test_a_model_that_must_see_decoded_values_gets_them() -> None:
    entity = definition(Prepared)

    assert entity._item_validator is None
    assert entity.decode({**SYSTEM, "id": {"S": "1"}}).total == 1


def test_a_time_of_expiry_is_decoded_from_its_own_attribute() -> None:
    found = definition(Special).decode(
        {**SYSTEM, "id": {"S": "1"}, "needed": {"NULL": True}, EXPIRES_AT: {"N": "86400"}}
    )

    assert found.until == datetime(1970, 1, 2, tzinfo=UTC)
    assert found.needed is None


@pytest.mark.parametrize("seconds", ["99999999999999999999999", "-1E+100", "86400000000000"])
def test_a_duration_that_is_too_long_is_reported(seconds: str) -> None:
    entity = definition(Everything)
    wire = {**SYSTEM, "span": {"N": seconds}}

    with pytest.raises(UndecodableItemError, match="span"):
        entity.decode_fields(wire, ["span"])
    with pytest.raises(UndecodableItemError):
        entity.decode(wire)


def test_a_selected_field_that_is_not_stored_has_its_default_or_none() -> None:
    chosen = definition(Everything).decode_fields({**SYSTEM, "text": {"S": "x"}}, ["mapped", "text", "flag", "maybe"])

    assert chosen == {"mapped": None, "text": "x", "flag": False, "maybe": None}


def test_a_revision_goes_with_copies_and_counts_when_items_are_compared() -> None:
    wire = {**SYSTEM, "id": {"S": "1"}}
    first, same = (definition(Prepared).decode(wire) for _ in range(2))
    other = definition(Prepared).decode({**wire, "Rev": {"S": "another"}})

    copies = [first.model_copy(), copy.copy(first), copy.deepcopy(first), pickle.loads(pickle.dumps(first))]  # noqa: S301
    assert [each.revision for each in copies] == ["r"] * 4
    assert all(each == first for each in [same, *copies])
    assert first != other
    assert with_revision(first.model_copy(), None) == Prepared(id="1", total=1)


def test_a_revision_is_kept_beside_private_attributes() -> None:
    found = definition(Special).decode({**SYSTEM, "id": {"S": "1"}, "needed": {"S": "x"}})
    found._seen.append(7)

    assert (found.revision, found.model_copy().revision, found._seen) == ("r", "r", [7])
    assert with_revision(found.model_copy(), None).revision is None
    assert found.revision == "r"


@pytest.mark.parametrize(
    "more",
    [{}, {EXPIRES_AT: {"N": "86400"}}, {EXPIRES_AT: {"N": "x"}}, {"until": {"S": "2021-02-24T19:28:41Z"}}],
    ids=str,
)
def test_an_item_of_plain_fields_may_expire(more: dict[str, Any]) -> None:
    class Plain(Entity, name="form.v1.Plain", key=Key("{id}"), expires="until", registry=Registry()):
        id: str
        until: datetime | None = None

    entity, item = definition(Plain), {**SYSTEM, "id": {"S": "1"}, **more}
    # What makes items quickly is made when a second one is decoded.
    entity.decode({**SYSTEM, "id": {"S": "0"}})

    assert outcome(entity.decode, item) == outcome(entity.decode_singly, item)
