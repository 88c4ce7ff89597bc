"""A generated function knows that readers get an item, which then need not be decoded, and it is never wrong."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from enum import IntEnum, StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, StringConstraints, model_validator

from dynashard import Entity, Index, Key, Registry, Retention, Shards, created_at, definition, updated_at
from dynashard.codec import register_encoder
from dynashard.entity import OutOfLine
from dynashard.errors import DynashardError, InputError
from dynashard.repository.write_builder import WriteBuilder
from tests.unit.compiled.reader_entities import Subject, subjects
from tests.unit.compiled.test_compiled_writer import STORE, VALUES, Bare
from tests.unit.compiled.test_compiled_writer import Plain as Written

pytestmark = pytest.mark.unit

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
ELSEWHERE = NOON.astimezone(timezone(timedelta(hours=1)))
SUBJECTS = subjects()


class Choice(StrEnum):
    """Texts."""

    A = "a"


class Grade(IntEnum):
    """Numbers."""

    A = 1


class Shouted(StrEnum):
    """Texts that are stored as others."""

    LOUD = "loud"


register_encoder(Shouted, lambda each: each.value.upper())


def shorter(text: str) -> str:
    """Return at most two characters, and refuse none at all."""
    if not text:
        raise ValueError("empty")
    return text[:2]


def only_float(value: object) -> object:
    """Refuse what is stored in place of a float."""
    if isinstance(value, float):
        return value
    raise ValueError("no float")


class Known(
    Entity,
    name="back.v1.Known",
    key=Key("{tenant}", "{id}"),
    shards=Shards(4),
    indexes=[
        Index("GSI1", "by_code", "{tenant}", "{code}"),
        Index("GSI2", "by_time", "{tenant}", "{at}#{rank:03d}"),
    ],
    expires="until",
    registry=Registry(),
):
    """Fields of every type that the function knows."""

    tenant: str
    id: Annotated[str, Field(min_length=1)]
    code: Annotated[str, StringConstraints(to_lower=True)] = "x"
    at: datetime = NOON
    rank: Annotated[int, Field(ge=1)] = 1
    cut: Annotated[str, AfterValidator(shorter)] = "ab"
    word: Annotated[str, Field(pattern="^[a-z]+$")] | None = None
    kind: Literal["a", "b"] = "a"
    choice: Choice = Choice.A
    count: int | None = None
    ratio: float | None = None
    few: Annotated[float, Field(lt=2)] = 0.0
    flag: bool = False
    day: date | None = None
    uid: UUID | None = None
    note: str | None = "filled"
    seen: datetime | None = None
    until: datetime | None = None
    made: datetime = created_at()
    changed: datetime = updated_at()


ITEM = Known(tenant="t", id="1")


def back(item: Entity) -> bool | None:
    return definition(type(item)).reads_back(item.__dict__)


def is_read(item: Entity) -> bool | None:
    """Whether readers get an item under the same keys, by decoding it; None if it cannot be stored."""
    entity = definition(type(item))
    builder: WriteBuilder[Any] = WriteBuilder(STORE, entity)
    try:
        key = entity.key_of(item)
        wire = builder.wire_of(item, key, created=None)
    except DynashardError:
        return None
    except (AttributeError, KeyError, TypeError):
        return None
    try:
        made = builder.as_read(dict(wire), key, item)
    except InputError:
        return False
    return bool(entity.placing(made.__dict__) == entity.placing(item.__dict__))


def entities() -> Mapping[str, Entity]:
    """One item of every entity, by its name."""
    usual: list[Entity] = [ITEM, Bare(id="1"), Written(tenant="t", id="i", mail="m@x", boss="b")]
    read = [first_of(subject) for subject in SUBJECTS]
    return {definition(type(item)).name: item for item in [*usual, *read]}


def first_of(subject: Subject) -> Entity:
    item: Entity = subject.entity.decode(subject.items[0])
    return item


@pytest.mark.parametrize("item", entities().values(), ids=entities())
def test_no_value_that_readers_would_not_get_is_taken_for_one_that_they_get(item: Entity) -> None:
    wrong = []
    for name in type(item).model_fields:
        for value in VALUES:
            changed = item.model_copy(update={name: value})
            if back(changed) and is_read(changed) is False:
                wrong.append((name, value))

    assert not wrong


@pytest.mark.parametrize(
    "changed",
    [
        {}, {"word": "abc"}, {"kind": "b"}, {"count": 7, "ratio": 1e22}, {"few": 1.5}, {"flag": True}, {"note": "é"},
        {"day": date(2026, 1, 2), "uid": UUID(int=1)}, {"seen": ELSEWHERE}, {"until": NOON}, {"cut": "abc"},
    ],
)  # fmt: skip
def test_usual_items_are_known_to_be_read(changed: Mapping[str, Any]) -> None:
    item = ITEM.model_copy(update=changed)

    assert back(item) is True
    assert is_read(item) is True


@pytest.mark.parametrize(
    "changed",
    [
        {"id": ""}, {"code": "X"}, {"rank": 0}, {"cut": ""}, {"word": "7"}, {"kind": "c"}, {"choice": "a"},
        {"count": True}, {"count": "7"}, {"few": 2.0}, {"flag": 1}, {"day": NOON}, {"uid": "x"}, {"note": None},
        {"seen": "noon"}, {"until": NOON.replace(year=9999)}, {"until": NOON.replace(year=1970)}, {"tenant": None},
        {"at": ELSEWHERE}, {"until": "x"},
    ],
)  # fmt: skip
def test_all_others_are_decoded(changed: Mapping[str, Any]) -> None:
    assert back(ITEM.model_copy(update=changed)) is None


def test_items_of_which_some_field_is_never_known_are_decoded() -> None:
    class Unread(Entity, name="back.v1.Unread", key=Key("{id}"), registry=Registry()):
        id: str
        tags: list[str] = Field(default_factory=list)

    class Attached(Entity, name="back.v1.Attached", key=Key("{id}"), registry=Registry()):
        id: str
        data: Annotated[JsonValue, OutOfLine()] = None

    class Renamed(Entity, name="back.v1.Renamed", key=Key("{id}"), registry=Registry()):
        id: str
        voice: Shouted = Shouted.LOUD

    class Graded(Entity, name="back.v1.Graded", key=Key("{id}"), registry=Registry()):
        id: str
        grade: Grade = Grade.A

    class Raw(Entity, name="back.v1.Raw", key=Key("{id}"), registry=Registry()):
        id: str
        weight: Annotated[float, BeforeValidator(only_float)] = 1.5

    class Whole(Entity, name="back.v1.Whole", key=Key("{id}"), registry=Registry()):
        id: str

        @model_validator(mode="after")
        def _never(self) -> "Whole":
            raise ValueError("no")

    class Ending(Entity, name="back.v1.Ending", key=Key("{id}"), expires="until", registry=Registry()):
        id: str
        made: datetime = created_at()
        until: Annotated[datetime | None, Retention("made", months=3), Field(validate_default=True)] = None

    class Late(Entity, name="back.v1.Late", key=Key("{id}"), registry=Registry()):
        id: str
        at: Annotated[datetime, Field(ge=NOON)] = NOON

    models: list[type[Entity]] = [Unread, Attached, Renamed, Graded, Raw, Whole, Ending, Late]
    values: dict[str, Any] = {"id": "1", "made": NOON, "until": None}
    items = [model.model_construct(**{n: v for n, v in values.items() if n in model.model_fields}) for model in models]
    assert [back(item) for item in items] == [None] * 8


def test_a_field_that_is_rarely_set_is_decoded_only_then() -> None:
    class Tagged(Entity, name="back.v1.Tagged", key=Key("{id}"), registry=Registry()):
        id: str
        tags: list[str] | None = None

    class Rounded(Entity, name="back.v1.Rounded", key=Key("{id}"), expires="until", registry=Registry()):
        id: str
        until: Annotated[datetime | None, AfterValidator(lambda time: time)] = None

    assert [back(Tagged(id="1")), back(Tagged(id="1", tags=["a"]))] == [True, None]
    assert [back(Rounded(id="1")), back(Rounded(id="1", until=NOON))] == [True, None]


def test_a_default_of_none_that_is_validated_is_decoded() -> None:
    class Filled(Entity, name="back.v1.Filled", key=Key("{id}"), registry=Registry()):
        id: str
        note: Annotated[str | None, Field(validate_default=True)] = None

    assert back(Filled(id="1")) is None
