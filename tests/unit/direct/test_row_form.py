"""Generated functions make of an answer's bytes what parsing it and decoding its items one by one makes."""

import copy
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime, time
from enum import StrEnum
from functools import cache
from types import new_class
from typing import Annotated, Any
from uuid import UUID

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ConfigDict, Field, HttpUrl, PrivateAttr, StringConstraints, field_validator, model_validator

from dynashard import Entity, Key, Registry, created_at, definition, schema, updated_at
from dynashard.compiled.item_form import item_form
from dynashard.compiled.row_form import row_form
from dynashard.errors import UndecodableItemError
from dynashard.reads import page_form
from dynashard.reads.bounds import Bounds
from dynashard.reads.filters import FilterExpression
from dynashard.reads.sources import Chunk, Reading, Source, StreamRead
from dynashard.repository.conditions import is_live
from dynashard.schema import TYPE
from tests.depth import examples

pytestmark = pytest.mark.unit

KIND = "row.v1.Row"
LAST = {"PK": {"S": "p"}, "SK": {"S": "x"}}


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


def _noon() -> datetime:
    return datetime(2026, 11, 20, 12, tzinfo=UTC)


TYPES: dict[str, tuple[Any, list[Any]]] = {
    "text": (str, ["", "x"]),
    "maybe": (str | None, [None, "x"]),
    "short": (Annotated[str, Field(min_length=1, max_length=3)], ["x", "too long for itself"]),
    "bare": (Annotated[str, StringConstraints(strip_whitespace=True, to_lower=True)], ["X "]),
    "checked": (Annotated[str, Field(max_length=2, validate_default=True)], ["x", "too long"]),
    "whole": (int, [0]),
    "few": (Annotated[int, Field(ge=0, lt=10)] | None, [None, 3]),
    "ratio": (float, [0.5]),
    "flag": (bool, [False]),
    "at": (datetime, [_noon(), Field(default_factory=_noon)]),
    "day": (date | None, [None]),
    "clock": (time, [time(1)]),
    "uid": (UUID, [UUID(int=1)]),
    "colour": (Colour, [Colour.RED, "red"]),
    "made": (datetime, [created_at()]),
    "changed": (datetime, [updated_at()]),
    "page": (HttpUrl | None, [None]),
    "strict": (Annotated[str, Field(strict=True)], ["x"]),
}
"""Types of fields that are read from bytes, except the last, and defaults."""
STAMPS = ("made", "changed")
"""Fields whose defaults are the time of day."""
CONFIGS: list[ConfigDict] = [
    {},
    {},
    {},
    {"str_strip_whitespace": True},
    {"strict": True},
    {"use_enum_values": True},
    {"frozen": True},
]
UNUSUAL = "\ud7ff\U0001f600\\" + chr(34) + "}},{ é"
TEXTS = [
    "text", "", "much longer text", UNUSUAL, "7", " 7", "red", " RED ", "2021-02-24T19:28:41.000001Z", "2021-02-24",
    "x", "2021-02-24T19:28:41.000001+02:00", "19:28:41", "https://example.com/a", str(UUID(int=7)), "true",
    "1613000000",
]  # fmt: skip
NUMBERS = ["0", "7", "-12", "1.50", "1E2", "4_2", "99999999999999999999999", "NaN", "1E+125", "x"]
OTHERS: list[Any] = [
    {"NULL": True}, {"L": []}, {"L": [{"S": "a"}]}, {"M": {"S": {"S": "x"}}}, {"B": "AAEC"}, {"SS": ["a"]}, {},
    {"S": "x", "N": "7"}, {"S": None}, {"N": 7}, {"BOOL": "true"}, None, "x", [], {"S": ["x"]},
]  # fmt: skip
stored_texts = st.sampled_from(TEXTS).map(lambda text: {"S": text})
stored_numbers = st.sampled_from(NUMBERS).map(lambda text: {"N": text})
attributes = stored_texts | stored_numbers | st.sampled_from([{"BOOL": True}, {"BOOL": False}])
USUAL: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(TYPES, stored_texts),
    **dict.fromkeys(("whole", "few", "ratio"), stored_numbers),
    "flag": st.sampled_from([{"BOOL": True}, {"BOOL": False}]),
    **dict.fromkeys(STAMPS, st.sampled_from([{"S": "2021-02-24T19:28:41.000001Z"}, {"S": "2022-01-01"}, {"S": "x"}])),
}


def _after(self: Any) -> Any:
    if self.id == "7":
        raise ValueError("no seven")
    return self


def _upper(_cls: type, value: str) -> str:
    return value.upper()


def _refuse(_cls: type, *_arguments: Any, **_named: Any) -> Any:
    raise RuntimeError("not to be made")


SPECIALS: dict[str, Callable[[], dict[str, Any]]] = {
    "": dict,
    "after": lambda: {"after": model_validator(mode="after")(_after)},
    "private": lambda: {"__annotations__": {"_seen": list[int]}, "_seen": PrivateAttr(default_factory=list)},
    "post_init": lambda: {"model_post_init": lambda self, _context: self.__dict__.update(added="changed")},
    "new": lambda: {"__new__": _refuse},
    "before": lambda: {"before": model_validator(mode="before")(lambda _cls, values: {"id": "before", **values})},
    "field": lambda: {"field": field_validator("id")(classmethod(_upper))},
    "init": lambda: {"__init__": lambda self, **values: super(Entity, self).__init__(**values)},
}
"""What else a model may have, which runs when an item is made."""


@cache
def model_of(chosen: tuple[tuple[str, int], ...], config: int, special: str) -> type[Entity]:
    """Return a model with these fields and defaults, -1 for none."""

    def fill(namespace: dict[str, Any]) -> None:
        more = SPECIALS[special]()
        annotations = more.pop("__annotations__", {})
        namespace |= {"__module__": __name__, "model_config": CONFIGS[config], **more}
        namespace["__annotations__"] = {"id": str, **annotations, **{name: TYPES[name][0] for name, _ in chosen}}
        namespace |= {name: TYPES[name][1][default] for name, default in chosen if default >= 0}

    model = new_class("Row", (Entity,), {"name": KIND, "key": Key("p", sort="{id}"), "registry": Registry()}, fill)
    # The first item is decoded without the functions that are compared, and may be refused where they are lenient.
    with suppress(Exception):
        definition(model).decode({})
    return model


@st.composite
def models(draw: st.DrawFn) -> type[Entity]:
    names = draw(st.lists(st.sampled_from(list(TYPES)), max_size=5, unique=True))
    chosen = tuple((name, draw(st.integers(-1, len(TYPES[name][1]) - 1))) for name in names)
    special = draw(st.sampled_from(["", "", "", *SPECIALS]))
    return model_of(chosen, draw(st.integers(0, len(CONFIGS) - 1)), special)


@st.composite
def rows(draw: st.DrawFn, model: type[Entity], number: int) -> dict[str, Any]:
    """Draw a stored item. Most are as the layer stores them."""
    item: dict[str, Any] = {"PK": {"S": f"{KIND}:p"}, "SK": {"S": f"{number}"}, TYPE: {"S": KIND}, "Rev": {"S": "r"}}
    item |= {"id": {"S": f"{number}"}, "GSI1PK": {"S": "g"}}
    for name, field in model.model_fields.items():
        if name != "id" and (field.is_required() or draw(st.booleans())):
            item[name] = draw(USUAL[name])
    odd = st.sampled_from([*model.model_fields, "removed", *schema.SYSTEM_ATTRIBUTES - {"SK"}])
    item |= draw(
        st.dictionaries(odd, attributes | st.sampled_from(OTHERS), max_size=draw(st.sampled_from([0, 0, 0, 2])))
    )
    for name in draw(st.lists(odd, max_size=draw(st.sampled_from([0, 0, 0, 1])))):
        item.pop(name, None)
    more = st.sampled_from(
        [{"Prev": {"S": "q o"}}, {"Born": {"S": "b"}}, {"MovedTo": {"N": "4"}}, {"ExpiresAt": {"N": "9"}}]
    )
    return item | draw(st.just({}) | st.just({}) | more)


@st.composite
def answers(draw: st.DrawFn, model: type[Entity]) -> dict[str, Any]:
    items = [draw(rows(model, number)) for number in range(draw(st.integers(0, 3)))]
    answer = {"Count": len(items), "Items": items, "ConsumedCapacity": {"TableName": "t", "CapacityUnits": 9.5}}
    return answer | draw(st.sampled_from([{}, {"LastEvaluatedKey": LAST}, {"LastEvaluatedKey": None}]))


def visible(row: Any) -> bool:
    return is_live(row, 1_000) and (TYPE not in row or row[TYPE]["S"] == KIND)


READING = Reading("table", None, Bounds(), forward=True, visible=visible, filters=FilterExpression("", {}, {}))
READ = StreamRead(Source(0, "p"), 10)


def found(item: Any) -> Any:
    """What a caller can see of a row: an entity or its fields, down to types and order, or a stored item."""
    if not isinstance(item, Entity):
        return repr(item)
    revision: Any = item.revision
    given = item.model_fields_set
    values = [(name, "now" if name in {*STAMPS} - given else value) for name, value in item.__dict__.items()]
    return (
        type(item), repr(values), item.model_fields_set, item.__pydantic_extra__, repr(revision),
        type(revision), getattr(revision, "replaced", None), getattr(revision, "born", None),
        repr(item.__pydantic_private__),
    )  # fmt: skip


def outcome(pages: Any, body: bytes, *, ordinary: bool) -> Any:
    """The answer that a reader makes of a body, None if it refuses it, or that there will be an error."""
    read = pages._decoded if ordinary else pages.reader
    try:
        answer = read(READING, READ, body) if ordinary else read(READING, READ)(body)
    except RuntimeError:
        # A model's own code fails.
        return "an error"
    if answer is None:
        return None
    chunk = answer.pop("Items", None)
    if not isinstance(chunk, Chunk):
        # System attributes of other types are not foreseen. The error is raised when the answer's turn comes.
        return "an error"
    known = {name: answer[name] for name in page_form._MEMBERS if name in answer}
    return known, chunk.last, chunk.end, [found(item) for item in chunk.rows]


def decoded(decode: Callable[[Any], Any], item: Any) -> Any:
    """What a caller can see of a decoded item, or the error."""
    try:
        return found(decode(item))
    except UndecodableItemError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - system attributes of other types are not foreseen
        return type(error)


def formed_of(entity: Any, item: Any) -> Any:
    """What a caller can see of an item that is made by a generated function; None if there is none, or it has none."""
    form = item_form(entity)
    made = None if form is None else form(item)
    return None if made is None else found(made)


def pages_of(model: type[Entity], names: tuple[str, ...] | None) -> Any:
    """What reads answers as entities, or as mappings of some fields."""
    made: Any = (
        page_form.entities_of(definition(model)) if names is None else page_form.fields_of(definition(model), names)
    )
    return made.__self__


@st.composite
def spoilt(draw: st.DrawFn, body: bytes) -> bytes:
    """Draw a change of a body: other bytes at some place, or a cut."""
    at = draw(st.integers(0, len(body)))
    return body[:at] + draw(st.sampled_from(CHANGES)) + body[at + draw(st.sampled_from([0, 0, 1, 2])) :]


CHANGES = [
    b"", b"\xff", b"\xc3", b"\xc3\xa9", b"\xed\xa0\x80", b"\\ud800", b"\\udc00", b"\\ud83d\\ude00", b"\\u0000", b"\x00",
    b"\n", b"\\", b"\\x", b'"', b"{", b"}", b"[", b"]", b",", b":", b"1", b"01", b"-", b"1e5", b"null", b"true", b" ",
    b'"id":{"S":"other"},', b'"id":{"N":"7"},', b'"S":"other",', b'"N":"1",', b'"Items":[],', b'"z":{"S":"\\ud800"},',
    b'"z":{"S":"\xff"},', b'"z":[[{"S":1.5e3}]],', b"9" * 30, b"}]}", b"\xef\xbb\xbf",
]  # fmt: skip


@settings(max_examples=examples(3000))
@given(data=st.data())
def test_rows_are_those_of_decoding_one_by_one(data: st.DataObject) -> None:
    model = data.draw(models())
    names = data.draw(st.none() | st.lists(st.sampled_from(list(model.model_fields)), unique=True).map(tuple))
    pages = pages_of(model, names)
    body = orjson.dumps(data.draw(answers(model)))

    assert outcome(pages, body, ordinary=False) == outcome(pages, body, ordinary=True)


@settings(max_examples=examples(3000))
@given(data=st.data())
def test_items_are_those_of_decoding_their_attributes_one_by_one(data: st.DataObject) -> None:
    entity = definition(data.draw(models()))
    item = data.draw(rows(entity.model, 0))
    # Decoded singly, an attribute with two types is refused; DynamoDB sends none.
    item = {name: attribute for name, attribute in item.items() if attribute != {"S": "x", "N": "7"}}
    formed = formed_of(entity, item)

    assert formed is None or formed == decoded(entity.decode_singly, item)


@pytest.mark.parametrize("name", ["text", "maybe", "whole", "few", "flag", "at"])
def test_an_odd_attribute_is_left_to_decoding_it(name: str) -> None:
    entity = definition(model_of(((name, 0),), 0, ""))
    usual = {TYPE: {"S": KIND}, "Rev": {"S": "r"}, "id": {"S": "a"}}

    assert formed_of(entity, usual) == decoded(entity.decode_singly, usual)
    for odd in [*OTHERS, {"S": 7}, {"N": True}, {"BOOL": 1}]:
        if odd != {"S": "x", "N": "7"}:
            assert formed_of(entity, {**usual, name: odd}) is None


@settings(max_examples=examples(3000))
@given(data=st.data())
def test_what_is_not_an_answer_is_refused_as_by_the_parser(data: st.DataObject) -> None:
    model = data.draw(models())
    names = data.draw(st.none() | st.just(("id",)))
    pages = pages_of(model, names)
    body = orjson.dumps(data.draw(answers(model)))
    for _ in range(data.draw(st.integers(1, 2))):
        body = data.draw(spoilt(body))

    assert outcome(pages, body, ordinary=False) == outcome(pages, body, ordinary=True)


PLAIN = {"made": {"S": "2021-02-24T19:28:41Z"}, "changed": {"S": "2022-02-24T19:28:41Z"}}
CASES: list[tuple[dict[str, int], int, str, dict[str, Any]]] = [
    ({"made": 0, "changed": 0}, 0, "", PLAIN),
    ({"made": 0, "changed": 0}, 0, "", {"changed": {"S": "2022-02-24T19:28:41Z"}}),
    ({"made": 0, "changed": 0}, 0, "", {**PLAIN, "changed": PLAIN["made"]}),
    ({"text": -1}, 3, "", {"text": {"S": " x "}}),
    ({"text": 1}, 3, "", {"text": {"S": " x "}}),
    ({"text": -1}, 0, "new", {"text": {"S": "x"}}),
    ({"text": -1}, 0, "private", {"text": {"S": "x"}}),
    ({"text": -1}, 0, "", {"text": {"S": "x"}, TYPE: {"N": "1"}}),
    ({"text": -1}, 0, "", {"text": {"S": "x"}, "Rev": {"S": ""}}),
    ({"text": -1}, 0, "", {"text": {"S": "x"}, TYPE: {"S": "another"}}),
    ({"short": -1}, 0, "", {"short": {"S": "four"}}),
    ({"short": 0}, 0, "", {"short": {"S": ""}}),
    ({"short": -1}, 0, "", {"short": {"S": "\U0001f600\U0001f600\U0001f600"}}),
    ({"checked": 1}, 0, "", {}),
    ({"colour": 1}, 5, "", {}),
]


@pytest.mark.parametrize("names", [None, ()], ids=["entity", "fields"])
@pytest.mark.parametrize(("fields", "config", "special", "row"), CASES, ids=str)
def test_an_unusual_row_is_that_of_decoding_it(
    fields: dict[str, int], config: int, special: str, row: dict[str, Any], names: tuple[str, ...] | None
) -> None:
    pages = pages_of(model_of(tuple(fields.items()), config, special), None if names is None else tuple(fields))
    whole = {TYPE: {"S": KIND}, "Rev": {"S": "r"}, "SK": {"S": "a"}, "id": {"S": "a"}, **row}
    body = orjson.dumps({"Items": [whole]})

    assert outcome(pages, body, ordinary=False) == outcome(pages, body, ordinary=True)


ENTITY = model_of((("text", -1), ("maybe", 0), ("whole", 0), ("at", 1)), 0, "")


def entities(*items: dict[str, Any]) -> list[Any]:
    """Return what is made of rows with these attributes, without parsing the answer."""
    whole = {TYPE: {"S": KIND}, "Rev": {"S": "r"}, "PK": {"S": f"{KIND}:p"}, "SK": {"S": "a"}, "id": {"S": "a"}}
    whole["text"] = {"S": "x"}
    body = orjson.dumps({"Items": [{**whole, **item} for item in items]})
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(page_form, "loads")
        answer = pages_of(ENTITY, None).reader(READING, READ)(body)
    made: list[Any] = answer["Items"].rows
    return made


@pytest.mark.parametrize("special", ["", "after", "private", "post_init"])
def test_items_of_plain_fields_are_read_without_parsing_the_answer(special: str) -> None:
    assert row_form(definition(model_of((("text", -1),), 0, special))) is not None
    assert [item.text for item in entities({}, {"text": {"S": "y"}})] == ["x", "y"]


@pytest.mark.parametrize("special", ["before", "field", "init"])
def test_a_validator_that_sees_values_first_gets_decoded_ones(special: str) -> None:
    assert row_form(definition(model_of((), 0, special))) is None


def test_items_that_were_read_together_are_changed_alone() -> None:
    first, second = entities(*[{"maybe": {"S": "x"}, "whole": {"N": "1"}, "at": {"S": "2021-02-24T19:28:41Z"}}] * 2)

    first.model_fields_set.discard("text")
    first.text = "changed"
    copied = first.model_copy(update={"whole": 2})
    copied.__pydantic_fields_set__.clear()

    assert (first.text, second.text, second.whole) == ("changed", "x", 1)
    assert first.model_fields_set == second.model_fields_set == ENTITY.model_fields.keys()
    assert copy.deepcopy(second) == second


def test_a_field_that_is_set_later_counts_as_given() -> None:
    first, second = entities({}, {})

    first.whole = 3

    assert "whole" in first.model_fields_set
    assert "whole" not in second.model_fields_set
