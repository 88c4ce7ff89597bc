"""The JSON of a page is that of the same items decoded, byte for byte, and so is what it leaves out."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any
from uuid import UUID

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AfterValidator, Field, computed_field, field_serializer, model_serializer, model_validator

from domain.samples.incidents import Incident
from domain.samples.teams import Shift, Team
from domain.samples.users import User
from dynashard import Entity, Key, Registry, definition
from dynashard.compiled.reader import document_reader
from dynashard.entity import Undecodable, judged
from dynashard.reads import answers
from dynashard.reads.bounds import Bounds
from dynashard.reads.filters import FilterExpression
from dynashard.reads.sources import Reading, Source, StreamRead
from dynashard.schema import EXPIRES_AT, MOVED_TO, TYPE
from dynashard_serving.documents import REVISION, item_texts, list_text
from dynashard_serving.operations.pages import stored_text
from tests.depth import examples
from tests.every_field import Colour, Everything
from tests.storable_values import floats, ints, texts

pytestmark = pytest.mark.unit

Row = Mapping[str, Any]
NEVER_BEFORE = datetime(2000, 1, 1, tzinfo=UTC)
EPOCH, LATER = datetime(1970, 1, 1), datetime(2200, 1, 1)  # noqa: DTZ001 - a strategy adds time zones
FIRST, LAST = datetime(1, 1, 2), datetime(9999, 12, 30)  # noqa: DTZ001 - in all of them within the calendar
SYSTEM: Row = {"PK": {"S": "form.v1.Plain:p"}, "SK": {"S": "i"}, TYPE: {"S": "form.v1.Plain"}, "GSI1PK": {"S": "g"}}
UNUSUAL = st.sampled_from(
    [
        {"S": "text"}, {"S": ""}, {"S": "7"}, {"S": "true"}, {"S": "2021-02-24"}, {"S": "2021-02-24T19:28:41"},
        {"S": "2021-02-24T19:28:41.1+05:30"}, {"S": "2021-02-24 19:28:41.000000Z"},
        {"S": "2021-02-24T19:28:41.000001Z"}, {"S": "2021-02-30T19:28:41.000001Z"}, {"S": "2021-02-28T19:28:41.00001Z"},
        {"S": "0999-02-28T19:28:41.000001Z"}, {"S": "2021-02-28T24:28:41.000001Z"}, {"S": "2021-02-28T19:28:41.00001z"},
        {"S": "1600000000"},
        {"S": "6F9619FF8B86D011B42D00CF4FC964FF"}, {"S": "red"}, {"S": "green"},
        {"S": '\x00\x1f\x7f"\\/\u2028\U0001f600'},
        {"N": "0"}, {"N": "-7"}, {"N": "1.50"}, {"N": "4.2E1"}, {"N": "1E-7"}, {"N": "1E+22"}, {"N": "1E+400"},
        {"N": "18446744073709551616"}, {"N": "99999999999999999999999"}, {"N": "4_2"}, {"BOOL": True}, {"NULL": True},
        {"B": "AAEC"}, {"L": []}, {"M": {}}, {"SS": ["a"]}, {"X": "unknown"}, {},
    ]
)  # fmt: skip
"""Attributes by another writer, or of an earlier declaration."""


def _short(text: str) -> str:
    if len(text) > 20:
        raise ValueError("too long")
    return text.strip()


class Plain(Entity, name="form.v1.Plain", key=Key("p", sort="{id}"), expires="until", registry=Registry()):
    """Fields of every type that is written without an entity."""

    id: str = "i"
    text: Annotated[str, Field(max_length=30)] | None = None
    coded: Annotated[str, Field(pattern=r"^\w*$")] = ""
    whole: int = 0
    few: Annotated[int, Field(ge=-5, le=5)] | None = None
    ratio: float = 0.5
    flag: bool | None = None
    at: datetime | None = None
    late: Annotated[datetime, Field(ge=NEVER_BEFORE)] | None = None
    day: date | None = None
    uid: UUID | None = None
    colour: Colour = Colour.RED
    until: datetime | None = None


def written(rows: Sequence[Any]) -> Any:
    """The JSON of the items of a page, and the verdicts on what it leaves out."""
    text = stored_text([row for row in rows if not isinstance(row, Undecodable)])
    return text, [row for row in rows if isinstance(row, Undecodable)]


def decoded(model: type[Entity], rows: Sequence[Row]) -> Any:
    """What `written` returns of entities."""
    found = [judged(definition(model).reference.decode, row) for row in rows]
    texts = item_texts([each for each in found if isinstance(each, model)])
    return list_text(texts), [each for each in found if isinstance(each, Undecodable)]


def placed(row: Row) -> Row:
    """A stored item at the key of its fields."""
    return {**row, "SK": row.get("id", SYSTEM["SK"])}


READING = Reading(
    "table", None, Bounds(), forward=True, visible=lambda row: MOVED_TO not in row, filters=FilterExpression("", {}, {})
)


def as_read(model: type[Entity], found: Sequence[Row]) -> list[Any]:
    """What a page of the API has of stored items: documents, in tuples, of those that the compiled reader knows."""
    reader = answers.documents_of(definition(model), REVISION)(READING, StreamRead(Source(0, "p"), 10))
    answer = reader(orjson.dumps({"Items": found}))
    assert answer is not None
    rows: list[Any] = answer["Items"].rows
    return rows


usual = st.builds(
    Plain,
    id=texts,
    text=st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    whole=ints,
    few=st.none() | st.integers(-5, 5),
    ratio=floats,
    flag=st.none() | st.booleans(),
    at=st.none() | st.datetimes(FIRST, LAST, timezones=st.timezones()),
    late=st.none() | st.datetimes(datetime(2000, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    day=st.none() | st.dates(),
    uid=st.none() | st.uuids(),
    colour=st.sampled_from(Colour),
    until=st.none() | st.datetimes(EPOCH, LATER, timezones=st.timezones()),
)


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    """Draw stored items. Most attributes are as the layer stores them; others are unusual, or missing."""
    drawn: list[Row] = []
    for item in draw(st.lists(usual, max_size=3)):
        row = dict(placed({**SYSTEM, **definition(Plain).encode(item.__dict__)}))
        row |= draw(st.sampled_from([{"Rev": {"S": "r-1"}}, {}, {"Rev": {"S": "r"}, "Prev": {"S": "a b"}}]))
        names = [*definition(Plain).attributes_of(Plain.model_fields), "removed", "until", TYPE]
        for name in draw(st.lists(st.sampled_from(names), max_size=2)):
            row[name] = draw(UNUSUAL)
        for name in draw(st.lists(st.sampled_from(names), max_size=2)):
            row.pop(name, None)
        drawn.append(row)
    return drawn


@settings(max_examples=examples(1500))
@given(rows())
def test_the_text_of_a_page_is_that_of_its_items_decoded(found: list[Row]) -> None:
    parsed = [judged(lambda stored: definition(Plain).document(stored, REVISION), row) for row in found]

    assert written(as_read(Plain, found)) == decoded(Plain, found)
    assert written(parsed) == decoded(Plain, found)


def test_items_as_they_are_usually_stored_become_documents_when_they_are_read() -> None:
    items = [Plain(id="a", at=NEVER_BEFORE, day=date(2021, 2, 24)), Plain(id="b", uid=UUID(int=7), few=3)]
    found = [placed({**SYSTEM, "Rev": {"S": "r"}, **definition(Plain).encode(item.__dict__)}) for item in items]

    read = as_read(Plain, found)

    assert [type(row) for row in read] == [tuple, tuple]
    assert list(read[0][0]) == [*Plain.model_fields, REVISION]
    assert written(read) == decoded(Plain, found)


@pytest.mark.parametrize(
    ("unusual", "kind"),
    [
        ({EXPIRES_AT: {"N": "86400.7"}}, tuple),
        ({"few": {"N": "6"}}, Undecodable),
        ({"few": {"NULL": True}}, Plain),
        ({"text": {"S": "longer than thirty characters: " * 2}}, Undecodable),
        ({TYPE: {"S": "another"}}, Undecodable),
        ({"Rev": {"N": "1"}}, Undecodable),
    ],
    ids=str,
)
def test_an_unusual_item_is_no_document_and_the_others_of_its_page_are(unusual: Row, kind: type) -> None:
    usual_row = placed({**SYSTEM, "Rev": {"S": "r"}, "id": {"S": "a"}})
    found = [usual_row, {**usual_row, **unusual}, usual_row]

    read = as_read(Plain, found)

    assert [type(row) for row in read] == [tuple, kind, tuple]
    assert written(read) == decoded(Plain, found)


@pytest.mark.parametrize("changed", ["2021-02-24T19:28:41.000001Z", "2022-02-24T19:28:41.100000Z", "2022-02-24"])
def test_the_times_of_creation_and_of_the_last_change_are_those_of_the_item(changed: str) -> None:
    item = User(tenant_id="t", email="ada@example.com", display_name="Ada", created_at=NEVER_BEFORE)
    row = {**SYSTEM, TYPE: {"S": "user.v1.User"}, "Rev": {"S": "r"}, **definition(User).encode(item.__dict__)}
    row |= {"PK": {"S": "user.v1.User:t:0"}, "SK": {"S": item.id}}
    row |= {"created_at": {"S": "2021-02-24T19:28:41.000001Z"}, "updated_at": {"S": changed}}

    [read] = as_read(User, [row])

    assert isinstance(read, tuple)
    assert written([read]) == decoded(User, [row])


def test_a_marker_is_not_part_of_a_page() -> None:
    usual_row = placed({**SYSTEM, "Rev": {"S": "r"}, "id": {"S": "a"}})

    assert len(as_read(Plain, [usual_row, {**usual_row, MOVED_TO: {"N": "4"}}])) == 1


TIMES = [
    "2021-02-24T19:28:41.000000Z", "2021-02-24T19:28:41.000001Z", "2021-02-24T19:28:41.100000Z",
    "2021-02-24T19:28:41Z", "2021-02-29T19:28:41.000001Z", "2021-02-30T19:28:41.000001Z",
    "2021-12-31T23:59:59.999999Z", "2021-13-01T00:00:00.000001Z", "2021-02-24T24:28:41.000001Z",
    "2021-02-24T19:60:41.000001Z", "2021-02-24T19:28:60.000001Z", "0999-02-24T19:28:41.000001Z",
    "0000-02-24T19:28:41.000001Z", "1999-12-28T19:28:41.000001Z", "2021-02-24T19:28:41.000001z",
    " 2021-02-24T19:28:41.000001Z", "2021-02-24T19:28:41.000001Z\n", "2021-02-24T19:28:41.00001Z",
    "2021-02-24T19:28:41.0000001Z", "2021-00-10T19:28:41.000001Z", "2021-02-24T19:28:41.000001+00:00",
    "2021-02-24T19:28:41.000001", "2021-02-00T19:28:41.000001Z",
]  # fmt: skip


@pytest.mark.parametrize("field", ["at", "late", "until"])
@pytest.mark.parametrize("text", TIMES)
def test_a_time_is_written_as_it_would_be_after_parsing(field: str, text: str) -> None:
    page = [{**SYSTEM, "Rev": {"S": "r"}, field: {"S": text}}]

    assert written(as_read(Plain, page)) == decoded(Plain, page)


def test_what_orjson_does_not_write_is_written_by_pydantic() -> None:
    page = [{**SYSTEM, "Rev": {"S": "r"}, "whole": {"N": "18446744073709551616"}, "at": {"S": "2021-02-24T19:28:41Z"}}]

    # Beside it is an item that pydantic writes.
    page.append({**SYSTEM, "few": {"NULL": True}, "Rev": {"S": "r"}})

    assert [type(row) for row in as_read(Plain, page)] == [tuple, Plain]
    assert written(as_read(Plain, page)) == decoded(Plain, page)
    assert b'"whole":18446744073709551616' in written(as_read(Plain, page))[0]


def test_a_time_of_expiry_is_written_under_its_own_name() -> None:
    page = [{**SYSTEM, "Rev": {"S": "r"}, EXPIRES_AT: {"N": "86400.7"}}]

    assert [type(row) for row in as_read(Plain, page)] == [tuple]
    assert b'"until":"1970-01-02T00:00:00Z"' in written(as_read(Plain, page))[0]


class Declared(Entity, name="form.v1.Declared", key=Key("{id}"), registry=Registry()):
    id: str = "i"


class Computing(Declared, name="form.v1.Computing", key=Key("{id}"), registry=Registry()):
    @computed_field
    def double(self) -> str:
        return self.id * 2


class SerializingAField(Declared, name="form.v1.SerializingAField", key=Key("{id}"), registry=Registry()):
    name: str

    @field_serializer("name")
    def _shout(self, value: str) -> str:
        return value.upper()


class SerializingItself(Declared, name="form.v1.SerializingItself", key=Key("{id}"), registry=Registry()):
    @model_serializer
    def _other(self) -> dict[str, str]:
        return {"other": self.id}


class Checking(Declared, name="form.v1.Checking", key=Key("{id}"), registry=Registry()):
    @model_validator(mode="after")
    def _never(self) -> "Checking":
        raise ValueError("never")


class Preparing(Declared, name="form.v1.Preparing", key=Key("{id}"), registry=Registry()):
    def model_post_init(self, _context: Any, /) -> None:
        self.id = "prepared"


class Calling(Declared, name="form.v1.Calling", key=Key("{id}"), registry=Registry()):
    name: Annotated[str, AfterValidator(_short)] = ""


class Hiding(Declared, name="form.v1.Hiding", key=Key("{id}"), registry=Registry()):
    secret: str = Field(default="", exclude=True)


class Timed(
    Declared,
    name="form.v1.Timed",
    key=Key("{id}"),
    registry=Registry(),
    ser_json_temporal="seconds",
):
    at: datetime | None = None


class Priced(Declared, name="form.v1.Priced", key=Key("{id}"), registry=Registry()):
    price: Decimal = Decimal(0)


@pytest.mark.parametrize(
    "model",
    [
        Everything, Incident, Shift, Computing, SerializingAField, SerializingItself, Checking, Preparing, Hiding,
        Timed, Priced,
    ],
)  # fmt: skip
def test_a_model_with_rules_of_its_own_is_written_by_the_entity(model: type[Entity]) -> None:
    assert document_reader(definition(model), REVISION) is None


@pytest.mark.parametrize("model", [User, Team, Calling])
def test_plain_entities_are_written_without_one(model: type[Entity]) -> None:
    assert document_reader(definition(model), REVISION) is not None
