"""Entities made of the bytes of an answer are those of parsing it, dropping what readers may not see, and decoding."""

from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field, PrivateAttr, model_validator

from dynashard import Entity, Key, Registry, definition
from dynashard.compiled.row_form import row_form
from dynashard.entity import UNREVISED, Undecodable
from dynashard.errors import UndecodableItemError
from dynashard.reads import page_form
from dynashard.reads.bounds import Bounds
from dynashard.reads.filters import FilterExpression
from dynashard.reads.sources import Reading, Source, StreamRead
from dynashard.repository.conditions import is_live
from dynashard.schema import BORN, EXPIRES_AT, MOVED_TO, PREV, REV, TYPE
from dynashard.transport.interface import Wire
from tests.depth import examples

pytestmark = pytest.mark.unit

NOW = 1_000


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Plain(Entity, name="page.v1.Plain", key=Key("p", sort="{id}"), registry=Registry()):
    """Fields that are read from bytes."""

    id: str = Field(max_length=8)
    whole: int = 0
    ratio: float | None = None
    flag: bool = False
    at: datetime | None = None
    day: date | None = None
    uid: UUID | None = None
    colour: Colour = Colour.RED

    @model_validator(mode="after")
    def _no_seven(self) -> "Plain":
        if self.whole == 7:
            raise ValueError("no seven")
        return self


class Private(Entity, name="page.v1.Private", key=Key("p", sort="{id}"), registry=Registry()):
    """An entity with a private attribute of its own."""

    id: str
    whole: int = 0
    _seen: list[int] = PrivateAttr(default_factory=list)


class Nested(Entity, name="page.v1.Nested", key=Key("p", sort="{id}"), registry=Registry()):
    """An entity with a field that takes the ordinary way."""

    id: str
    tags: list[str] = Field(default_factory=list)


class Strict(Entity, name="page.v1.Strict", key=Key("p", sort="{id}"), registry=Registry()):
    """An entity whose validator accepts more in JSON than in Python."""

    id: str
    at: datetime | None = Field(default=None, strict=True)


MODELS: list[type[Entity]] = [Plain, Private, Nested, Strict]
UNUSUAL = "\ud7ff\U0001f600\\" + chr(34) + "}},{"
VALUES = st.sampled_from(
    [
        {"S": "text"}, {"S": ""}, {"S": "much longer text"}, {"S": UNUSUAL}, {"S": "7"}, {"S": "red"},
        {"S": "2021-02-24T19:28:41.000001Z"}, {"S": "2021-02-24"}, {"S": "https://example.com/a"},
        {"S": "12345678-1234-5678-1234-567812345678"}, {"S": "true"}, {"S": "1613000000"},
        {"N": "0"}, {"N": "7"}, {"N": "-12"}, {"N": "1.50"}, {"N": "1E2"}, {"N": "99999999999999999999999"}, {"N": "x"},
        {"BOOL": True}, {"BOOL": False}, {"NULL": True}, {"L": []}, {"L": [{"S": "a"}]}, {"M": {"S": {"S": "x"}}},
        {"B": "AAEC"}, {"SS": ["a"]}, {},
    ]
)  # fmt: skip
SYSTEM = {
    REV: st.sampled_from([{"S": "r1"}, {"S": "r2"}]),
    PREV: st.just({"S": "r0 r"}),
    BORN: st.just({"S": "b"}),
    MOVED_TO: st.just({"N": "4"}),
    EXPIRES_AT: st.sampled_from([{"N": "999"}, {"N": "1000"}, {"N": "1001"}, {"N": "2000.5"}]),
}


def outcome(model: type[Entity], row: Any) -> Any:
    """What a caller gets of a row: an item, down to its types and order, or the error."""
    try:
        item = definition(model).decode(row) if isinstance(row, dict) else row
    except UndecodableItemError as error:
        return str(error)
    if isinstance(item, Undecodable):
        return item.problem
    revision: Any = item.revision
    lineage = (revision, type(revision).__name__, getattr(revision, "replaced", None), getattr(revision, "born", None))
    return repr(list(item.__dict__.items())), item.model_fields_set, lineage, (item.__pydantic_private__ or {}).keys()


def reading(model: type[Entity], bounds: Bounds, *, slot: str | None = None) -> Reading:
    def visible(row: Wire) -> bool:
        return is_live(row, NOW) and row.get(TYPE, {"S": definition(model).name})["S"] == definition(model).name

    return Reading("table", slot, bounds, forward=True, visible=visible, filters=FilterExpression("", {}, {}))


@st.composite
def answers(draw: st.DrawFn, model: type[Entity]) -> dict[str, Any]:
    """Draw an answer to a Query. Most items are as the layer stores them."""
    items = []
    for number in range(draw(st.integers(0, 4))):
        item: dict[str, Any] = {
            "PK": {"S": f"{definition(model).name}:p"},
            "SK": {"S": f"{number}"},
            TYPE: {"S": definition(model).name},
        }
        item |= {REV: {"S": "r"}, "id": {"S": f"{number}"}, "GSI1PK": {"S": "g"}}
        fields = st.sampled_from([*model.model_fields, "removed"])
        item |= draw(st.dictionaries(fields, VALUES, max_size=draw(st.sampled_from([0, 0, 1, 3]))))
        for name in draw(
            st.lists(st.sampled_from(list(SYSTEM)), max_size=draw(st.sampled_from([0, 0, 2])), unique=True)
        ):
            item[name] = draw(SYSTEM[name])
        for name in draw(st.lists(st.sampled_from([TYPE, REV, "id"]), max_size=draw(st.sampled_from([0, 0, 0, 1])))):
            item.pop(name, None)
        if draw(st.integers(0, 15)) == 0:
            item[TYPE] = {"S": "page.v1.Other"}
        items.append(item)
    answer: dict[str, Any] = {"Items": items, "Count": len(items), "ConsumedCapacity": {"CapacityUnits": 0.5}}
    if draw(st.booleans()):
        answer["LastEvaluatedKey"] = {"PK": {"S": "p"}, "SK": {"S": draw(st.sampled_from(["1", "9"]))}}
    return answer


@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=examples(1200))
@given(data=st.data(), bounds=st.sampled_from([Bounds(), Bounds(low="0", high="2"), Bounds(low="1", high="3")]))
def test_what_is_read_from_bytes_is_what_is_decoded(model: type[Entity], data: st.DataObject, bounds: Bounds) -> None:
    answer = data.draw(answers(model))
    asked, read = reading(model, bounds), StreamRead(Source(0, "p"), 10)

    made = page_form.entities_of(definition(model))(asked, read)(orjson.dumps(answer))

    expected = asked.chunk(answer, read)
    assert made is not None
    chunk = made["Items"]
    assert chunk.last == expected.last
    if not all(isinstance(row, dict) for row in chunk.rows):
        assert chunk.end == asked.position(expected.rows[-1])
    assert [outcome(model, row) for row in chunk.rows] == [outcome(model, row) for row in expected.rows]
    assert made["ConsumedCapacity"] == answer["ConsumedCapacity"]
    # All or none, so that errors are raised when the turn of their item comes.
    assert len({isinstance(row, dict) for row in chunk.rows}) <= 1


@pytest.mark.parametrize("model", [Plain, Private])
def test_plain_entities_are_made_without_parsing_the_answer(
    model: type[Entity], monkeypatch: pytest.MonkeyPatch
) -> None:
    at = {TYPE: {"S": definition(model).name}, "PK": {"S": f"{definition(model).name}:p"}}
    items = [
        {**at, REV: {"S": "r"}, "SK": {"S": "a"}, "id": {"S": "a"}, "whole": {"N": "3"}},
        {**at, REV: {"S": "r"}, "SK": {"S": "b"}, "id": {"S": "b"}, PREV: {"S": "q"}, EXPIRES_AT: {"N": "1"}},
        {**at, REV: {"S": "r"}, "SK": {"S": "c"}, "id": {"S": "c"}, PREV: {"S": "q"}},
    ]
    monkeypatch.delattr(page_form, "loads")

    made = page_form.entities_of(definition(model))(reading(model, Bounds()), StreamRead(Source(0, "p"), 10))
    answer = made(orjson.dumps({"Items": items}))

    assert answer is not None
    assert [(item.id, item.revision) for item in answer["Items"].rows] == [("a", "r"), ("c", "r")]
    assert answer["Items"].rows[1].revision.replaced == ("q",)


@pytest.mark.parametrize("model", [Nested, Strict])
def test_other_entities_take_the_ordinary_way(model: type[Entity]) -> None:
    assert row_form(definition(model)) is None


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b'{"Items": [', b"\xff"])
def test_what_is_not_an_answer_is_left_to_the_transport(body: bytes) -> None:
    made = page_form.entities_of(definition(Plain))(reading(Plain, Bounds()), StreamRead(Source(0, "p"), 10))

    assert made(body) is None


@pytest.mark.parametrize("bounds", [Bounds(), Bounds(low="0", high="2")])
@pytest.mark.parametrize(
    "odd",
    [
        {"LastEvaluatedKey": {}},
        {"LastEvaluatedKey": {"SK": {"S": None}}},
        {"LastEvaluatedKey": "x"},
        {"SK": {}},
        {"SK": None},
        {TYPE: {"N": "1"}},
        {EXPIRES_AT: {"S": "soon"}},
        {PREV: "x"},
    ],
    ids=str,
)
@pytest.mark.parametrize("model", [Plain, Nested])
def test_an_answer_that_the_layer_cannot_read_fails_only_when_its_turn_comes(
    model: type[Entity], odd: dict[str, Any], bounds: Bounds
) -> None:
    item: dict[str, Any] = {TYPE: {"S": definition(model).name}, REV: {"S": "r"}, "SK": {"S": "1"}, "id": {"S": "a"}}
    of_item = {name: value for name, value in odd.items() if name != "LastEvaluatedKey"}
    answer: dict[str, Any] = {"Items": [{**item, **of_item}], **({} if of_item else odd)}
    asked, read = reading(model, bounds), StreamRead(Source(0, "p"), 10)

    made = page_form.entities_of(definition(model))(asked, read)(orjson.dumps(answer))

    assert made is not None
    assert turn(asked, read, model, made) == turn(asked, read, model, answer)


def turn(asked: Reading, read: StreamRead, model: type[Entity], answer: Wire) -> Any:
    """What a listing returns of an answer, or the class of its error."""
    try:
        chunk = asked.chunk(answer, read)
        return chunk.last, [outcome(model, row) for row in chunk.rows], chunk.end or asked.position(chunk.rows[-1])
    except Exception as error:  # noqa: BLE001 - system attributes of other types are not foreseen
        return type(error)


def test_an_integer_that_sums_of_capacity_could_not_hold_is_left_to_the_transport() -> None:
    made = page_form.entities_of(definition(Plain))(reading(Plain, Bounds()), StreamRead(Source(0, "p"), 10))

    assert made(b'{"Items":[],"ConsumedCapacity":{"CapacityUnits":%b}}' % (b"9" * 400)) is None


def test_times_of_stored_items_keep_their_zone() -> None:
    item = {TYPE: {"S": "page.v1.Plain"}, REV: {"S": "r"}, "SK": {"S": "a"}, "id": {"S": "a"}}
    item["at"] = {"S": "2021-02-24T19:28:41.000001Z"}
    made = page_form.entities_of(definition(Plain))(reading(Plain, Bounds()), StreamRead(Source(0, "p"), 10))

    answer = made(orjson.dumps({"Items": [item]}))

    assert answer is not None
    assert answer["Items"].rows[0].at == datetime(2021, 2, 24, 19, 28, 41, 1, tzinfo=UTC)


def test_an_item_without_a_revision_is_one_that_was_stored_before_its_adoption() -> None:
    item = {TYPE: {"S": "page.v1.Plain"}, "SK": {"S": "a"}, "id": {"S": "a"}}
    made = page_form.entities_of(definition(Plain))(reading(Plain, Bounds()), StreamRead(Source(0, "p"), 10))

    answer = made(orjson.dumps({"Items": [item, {**item, REV: {"S": "r"}}]}))

    assert answer is not None
    assert [found.revision for found in answer["Items"].rows] == [UNREVISED, "r"]
