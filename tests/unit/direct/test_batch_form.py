"""Entities made of the bytes of a BatchGetItem's answer are those of decoding the stored items one by one."""

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynashard import Entity, definition
from dynashard.repository import batch_form
from dynashard.repository.batch import ENTITY, stored_key
from dynashard.repository.conditions import is_live
from dynashard.schema import EXPIRES_AT, MOVED_TO, PREV, REV, TYPE
from tests.depth import examples
from tests.unit.direct.test_page_form import Nested, Plain, Private, answers, outcome

pytestmark = pytest.mark.unit


def read(model: type[Entity], answer: Any) -> Any:
    reader = batch_form.entities_of(definition(model))
    assert reader is not None
    return reader(answer if isinstance(answer, bytes) else orjson.dumps(answer))


@pytest.mark.parametrize("model", [Plain, Private])
@settings(max_examples=examples(1200))
@given(data=st.data())
def test_what_is_read_from_bytes_is_what_is_decoded(model: type[Entity], data: st.DataObject) -> None:
    tables = {name: data.draw(answers(model))["Items"] for name in data.draw(st.sampled_from([["t"], ["t", "u"], []]))}
    answer: dict[str, Any] = {"Responses": tables, "ConsumedCapacity": [{"TableName": "t", "CapacityUnits": 0.5}]}
    answer["UnprocessedKeys"] = data.draw(st.sampled_from([{}, {"t": {"Keys": [{"PK": {"S": "p"}}]}}]))

    found = read(model, answer)

    assert {**found, "Responses": tables} == answer
    assert found["Responses"].keys() == tables.keys()
    for table, items in tables.items():
        for row, stored in zip(found["Responses"][table], items, strict=True):
            if ENTITY in row:
                assert row.keys() == {"PK", "SK", ENTITY}
                assert stored_key(row) == stored_key(stored)
                # A row without a time of expiry never ends.
                assert is_live(stored, 1 << 62)
                assert outcome(model, row[ENTITY]) == outcome(model, stored)
            else:
                assert row == stored


def test_only_unusual_items_are_left_as_they_are_stored() -> None:
    item = {
        "PK": {"S": "page.v1.Plain:p"},
        "SK": {"S": "a"},
        TYPE: {"S": "page.v1.Plain"},
        REV: {"S": "r"},
        "id": {"S": "a"},
    }
    odd: list[dict[str, Any]] = [
        {**item, MOVED_TO: {"N": "4"}},
        {**item, EXPIRES_AT: {"N": "9999999999"}},
        {**item, TYPE: {"S": "page.v1.Other"}},
        {**item, "id": {"S": "longer than allowed"}},
        {**item, "whole": {"S": "7"}},
        {**item, "PK": {"N": "1"}},
        {name: value for name, value in item.items() if name != "SK"},
    ]

    found = read(Plain, {"Responses": {"t": [item, *odd, {**item, PREV: {"S": "q"}}]}})["Responses"]["t"]

    assert found[1:-1] == odd
    assert [row[ENTITY].revision for row in (found[0], found[-1])] == ["r", "r"]
    assert found[-1][ENTITY].revision.replaced == ("q",)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"null", b"{}", b'{"Responses": {"t": [', b"\xff", b'{"Responses": {"t": {}}}']
)
def test_what_is_not_an_answer_is_left_to_the_transport(body: bytes) -> None:
    assert read(Plain, body) is None


def test_a_body_that_only_the_parser_refuses_is_refused_when_an_item_needs_the_parser() -> None:
    item = b'{"PK":{"S":"p"},"SK":{"S":"a"},"Type":{"S":"page.v1.Other"},"Rev":{"S":"r"},"id":{"S":"a"}}'

    assert read(Plain, b'{"Responses":{"t":[%b]},"unread":1e999}' % item) is None


def test_an_integer_that_sums_of_capacity_could_not_hold_is_left_to_the_transport() -> None:
    assert read(Plain, b'{"Responses":{},"ConsumedCapacity":[{"CapacityUnits":%b}]}' % (b"9" * 400)) is None


def test_entities_with_nested_fields_have_no_reader() -> None:
    assert batch_form.entities_of(definition(Nested)) is None
