"""Items of compiled readers are as pydantic makes them: they can be copied, changed and compared."""

import copy
import pickle
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import PrivateAttr, model_validator

from dynashard import Entity, Key, Registry, definition
from dynashard.entity import with_revision
from dynashard.errors import UndecodableItemError
from dynashard.schema import EXPIRES_AT
from tests.every_field import Everything

pytestmark = pytest.mark.unit


class Note(Entity, name="read.v1.Note", key=Key("{id}"), expires="until", registry=Registry()):
    id: str
    text: str = ""
    maybe: str | None = None
    whole: int = 0
    until: datetime | None = None


class Noted(Entity, name="read.v1.Noted", key=Key("{id}"), registry=Registry()):
    """An entity with a private attribute, and a validator that must see decoded values."""

    id: str
    total: int = 0
    _seen: list[int] = PrivateAttr(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _count(cls, values: Any) -> Any:
        return {"total": len(values), **values}


def read(model: type[Entity], **attributes: Any) -> Any:
    name = definition(model).name
    return definition(model).decode({"Type": {"S": name}, "Rev": {"S": "r"}, "id": {"S": "a"}, **attributes})


def test_items_that_were_read_alike_are_changed_alone() -> None:
    whole = {"text": {"S": "x"}, "maybe": {"S": "y"}, "whole": {"N": "1"}, EXPIRES_AT: {"N": "86400"}}
    first, second = read(Note, **whole), read(Note, **whole)

    first.model_fields_set.discard("text")
    first.text = "changed"
    copied = first.model_copy(update={"whole": 2})
    copied.__pydantic_fields_set__.clear()

    assert (first.text, second.text, second.whole) == ("changed", "x", 1)
    assert first.model_fields_set == second.model_fields_set == Note.model_fields.keys()
    assert copy.deepcopy(second) == second


def test_a_field_that_is_set_later_counts_as_given() -> None:
    first, second = read(Note), read(Note)

    first.whole = 3

    assert "whole" in first.model_fields_set
    assert "whole" not in second.model_fields_set


def test_a_time_of_expiry_is_read_from_its_own_attribute() -> None:
    assert read(Note, **{EXPIRES_AT: {"N": "86400.7"}}).until == datetime(1970, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize("model", [Note, Noted])
def test_a_revision_goes_with_copies_and_counts_when_items_are_compared(model: type[Entity]) -> None:
    first, same, other = read(model), read(model), read(model, Rev={"S": "another"})

    copies = [first.model_copy(), copy.copy(first), copy.deepcopy(first), pickle.loads(pickle.dumps(first))]  # noqa: S301
    assert [each.revision for each in copies] == ["r"] * 4
    assert all(each == first for each in [same, *copies])
    assert first != other


def test_a_revision_is_kept_beside_private_attributes() -> None:
    found = read(Noted)
    found._seen.append(7)

    assert (found.revision, found.model_copy().revision, found._seen) == ("r", "r", [7])
    assert with_revision(found.model_copy(), None).revision is None


def test_a_validator_that_must_see_decoded_values_gets_them() -> None:
    assert read(Noted).total == 1


@pytest.mark.parametrize("seconds", ["99999999999999999999999", "-1E+100", "86400000000000"])
def test_a_duration_that_is_too_long_is_reported(seconds: str) -> None:
    entity, wire = definition(Everything), {"Rev": {"S": "r"}, "span": {"N": seconds}}

    with pytest.raises(UndecodableItemError, match="span"):
        entity.decode_fields(wire, ["span"])
    with pytest.raises(UndecodableItemError):
        entity.decode(wire)


def test_a_selected_field_that_is_not_stored_has_its_default_or_none() -> None:
    chosen = definition(Everything).decode_fields({"text": {"S": "x"}}, ["mapped", "text", "flag", "maybe"])

    assert chosen == {"mapped": None, "text": "x", "flag": False, "maybe": None}


@pytest.mark.parametrize("revision", [{"S": ""}, {"N": "1"}, {"NULL": True}])
def test_some_fields_of_an_item_with_an_odd_revision_are_not_read(revision: dict[str, Any]) -> None:
    # Listings of an index read the revision too.
    stored = {
        "PK": {"S": "read.v1.Note:a"},
        "SK": {"S": "read.v1.Note"},
        "Type": {"S": "read.v1.Note"},
        "id": {"S": "a"},
    }
    assert definition(Note).part(stored, ["id"]) == {"id": "a"}

    with pytest.raises(UndecodableItemError):
        definition(Note).part({**stored, "Rev": revision}, ["id"])
