"""The answer of a write equals later reads, byte for byte, for every type of field."""

import os
import subprocess
import sys
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynashard import definition
from dynashard.codec import decode_value, plain_text
from dynashard.errors import InvalidValueError
from dynashard.schema import REV
from dynashard_serving.documents import representation, validated, written
from tests.every_field import Everything, Line, items
from tests.storable_values import decimals

pytestmark = pytest.mark.unit


def _as_another_engine_writes(attribute: Any) -> Any:
    """Return the same attributes with numbers in other notations and sets in another order."""
    if isinstance(attribute, list):
        return [_as_another_engine_writes(each) for each in attribute]
    if not isinstance(attribute, dict):
        return attribute
    result: dict[str, Any] = {}
    for tag, value in attribute.items():
        match tag:
            case "N" if isinstance(value, str):
                result[tag] = f"{Decimal(value):E}"
            case "NS" if isinstance(value, list):
                result[tag] = [plain_text(Decimal(each)) for each in reversed(value)]
            case "M" if isinstance(value, dict):
                result[tag] = {name: _as_another_engine_writes(value[name]) for name in reversed(value)}
            case "SS" | "BS" if isinstance(value, list):
                result[tag] = value[::-1]
            case _:
                result[tag] = _as_another_engine_writes(value)
    return result


@given(item=items)
def test_a_write_returns_the_same_item_as_later_reads(item: Everything) -> None:
    entity = definition(Everything)
    wire = {**entity.encode(item.__dict__), REV: {"S": "r"}}

    after_write = written(representation(entity.decode(wire), "r"))
    after_read = written(representation(entity.decode(_as_another_engine_writes(wire)), "r"))
    put_back = validated(Everything, representation(entity.decode(wire), None))

    assert after_write == after_read
    assert written(representation(entity.decode({**entity.encode(put_back.__dict__), REV: {"S": "r"}}), "r")) == (
        after_write
    )


@given(value=decimals() | st.just(Decimal("-0E+7")))
def test_a_number_has_one_text(value: Decimal) -> None:
    text = plain_text(value)

    assert Decimal(text) == value
    assert "E" not in text
    assert not ("." in text and text.endswith(("0", ".")))
    assert {plain_text(Decimal(form)) for form in (str(value), f"{value:E}", f"{value:f}")} == {text}
    assert str(decode_value({"N": str(value)})) in {text, str(Decimal(text))}


@pytest.mark.parametrize(
    ("given_as", "text"),
    [
        ("20.10", "20.1"),
        ("20.00", "20"),
        ("1E+2", "100"),
        ("1E-8", "0.00000001"),
        ("-0.0", "0"),
        ("0E+9", "0"),
        ("100", "100"),
        ("-7.5000", "-7.5"),
        # A number that no item can hold is not written out, because its digits would fill 400 MB.
        ("1E+400000000", "1E+400000000"),
        ("1E-400000000", "1E-400000000"),
    ],
)
def test_decimals_are_returned_in_their_canonical_form(given_as: str, text: str) -> None:
    assert representation(Everything(price=Decimal(given_as)), None)["price"] == text


def test_sets_are_returned_in_one_order_with_any_hash_seed() -> None:
    program = (
        "from pydantic import BaseModel\n"
        "from dynashard import Entity, Key\n"
        "class Box(Entity, name='b', key=Key('{t}', '{i}')):\n"
        "    t: str = 't'\n    i: str = 'i'\n    names: set[str] = set()\n"
        "print(Box(names=set('zyxwvutsrqponmlkjihgfedcba')).model_dump_json())\n"
    )
    documents = {
        subprocess.run(  # noqa: S603 - this very interpreter
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert len(documents) == 1


def test_stored_fields_that_a_nested_model_no_longer_has_are_ignored() -> None:
    entity = definition(Everything)
    wire = entity.encode(Everything(line=Line(price=Decimal(1)), lines=[Line(price=Decimal(2))]).__dict__)
    wire["line"]["M"]["dropped"] = wire["lines"]["L"][0]["M"]["dropped"] = {"S": "of an earlier version"}

    assert entity.decode(wire).line == Line(price=Decimal(1))
    assert entity.decode_fields(wire, ["lines"]) == {"lines": [Line(price=Decimal(2))]}
    with pytest.raises(InvalidValueError, match="Extra inputs"):
        entity.assignment.check("line", {"price": 1, "dropped": "x"})


def test_any_json_document_is_returned_with_its_fractions() -> None:
    entity = definition(Everything)
    wire = entity.encode(Everything(objects={"a": [1.5, {"b": 0.1}], "c": 2.0}).__dict__)

    assert entity.decode(wire).objects == {"a": [1.5, {"b": 0.1}], "c": 2}
