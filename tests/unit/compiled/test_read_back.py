"""A generated function knows that readers get an item, which then need not be decoded, and it is never wrong."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, StringConstraints, model_validator

from dynashard import Entity, Index, Key, Registry, Retention, Shards, created_at, definition, updated_at
from dynashard.codec import register_encoder
from dynashard.entity import OutOfLine
from dynashard.errors import DynashardError, InputError
from dynashard.repository.write_builder import WriteBuilder
from tests.unit.compiled.reader_entities import Line, Size, Subject, subjects
from tests.unit.compiled.test_compiled_writer import STORE, VALUES, Bare
from tests.unit.compiled.test_compiled_writer import Plain as Written

pytestmark = pytest.mark.unit

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
ELSEWHERE = NOON.astimezone(timezone(timedelta(hours=1)))
SUBJECTS = subjects()


class Choice(StrEnum):
    """Texts."""

    A = "a"


class Shouted(StrEnum):
    """Texts that are stored as others."""

    LOUD = "loud"


register_encoder(Shouted, lambda each: each.value.upper())


def shorter(text: str) -> str:
    """Return at most two characters, and refuse none at all."""
    if not text:
        raise ValueError("empty")
    return text[:2]


def unstored(value: object) -> object:
    """Refuse what is stored in place of a float, a UUID or a day."""
    if isinstance(value, float | UUID | date):
        return value
    raise ValueError("as it is stored")


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


def stored(item: Entity) -> dict[str, Any] | None:
    """What is stored of an item, without its key; None if it cannot be."""
    builder: WriteBuilder[Any] = WriteBuilder(STORE, definition(type(item)))
    try:
        return dict(builder.wire_of(item, definition(type(item)).key_of(item), created=None))
    except (DynashardError, AttributeError, KeyError, TypeError):
        return None


def back(item: Entity) -> bool | None:
    """Whether the function knows that readers get an item."""
    return definition(type(item)).reads_back(item.__dict__, stored(item) or {})


def is_read(item: Entity) -> bool | None:
    """Whether readers get an item under the same keys, by decoding it; None if it cannot be stored."""
    entity, wire = definition(type(item)), stored(item)
    if wire is None:
        return None
    try:
        made = WriteBuilder(STORE, entity).as_read(wire, entity.key_of(item), item)
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


def test_other_values_are_validated_as_they_are_stored() -> None:
    class Listed(Entity, name="back.v1.Listed", key=Key("{id}#{size}", "{day}"), expires="until", registry=Registry()):
        id: str
        parts: list[int]
        tags: list[Annotated[str, Field(max_length=3)]] = Field(default_factory=list)
        names: set[str] = Field(default_factory=set)
        size: Size = Size.SMALL
        day: Annotated[date, AfterValidator(lambda day: day.replace(day=1))] = date(2026, 1, 1)
        line: Line | None = None
        late: Annotated[datetime, Field(ge=NOON)] = NOON
        clock: time | None = None
        weight: Annotated[float, BeforeValidator(unstored)] | None = None
        uid: Annotated[UUID, BeforeValidator(unstored)] | None = None
        born: Annotated[date, BeforeValidator(unstored)] | None = None
        voice: Shouted | None = None
        until: Annotated[datetime | None, AfterValidator(lambda time: time)] = None

    item = Listed(id="1", parts=[])
    fit: list[dict[str, Any]] = [
        {}, {"tags": ["abc"]}, {"names": {"a"}}, {"size": Size.LARGE}, {"size": 1}, {"clock": time(1)},
        {"line": Line(price=Decimal(1))}, {"late": NOON + timedelta(days=1)}, {"day": date(2026, 2, 1)},
    ]  # fmt: skip
    unfit: list[dict[str, Any]] = [
        {"tags": ["abcd"]}, {"tags": None}, {"parts": None}, {"names": [1]}, {"line": "x"},
        {"late": NOON.replace(2020)}, {"clock": "x"}, {"weight": 1.5}, {"uid": UUID(int=1)}, {"born": date(2026, 1, 1)},
        {"voice": Shouted.LOUD}, {"until": NOON}, {"day": date(2026, 2, 2)},
    ]  # fmt: skip

    assert [back(item.model_copy(update=changed)) for changed in fit] == [True] * len(fit)
    assert [is_read(item.model_copy(update=changed)) for changed in fit] == [True] * len(fit)
    assert [back(item.model_copy(update=changed)) for changed in unfit] == [None] * len(unfit)


def test_items_that_more_than_their_fields_make_are_decoded() -> None:
    class Attached(Entity, name="back.v1.Attached", key=Key("{id}"), registry=Registry()):
        id: str
        data: Annotated[JsonValue, OutOfLine()] = None

    class Whole(Entity, name="back.v1.Whole", key=Key("{id}"), registry=Registry()):
        id: str

        @model_validator(mode="after")
        def _never(self) -> "Whole":
            raise ValueError("no")

    class Ending(Entity, name="back.v1.Ending", key=Key("{id}"), expires="until", registry=Registry()):
        id: str
        made: datetime = created_at()
        until: Annotated[datetime | None, Retention("made", months=3), Field(validate_default=True)] = None

    items = [Attached(id="1"), Whole.model_construct(id="1"), Ending(id="1")]
    assert [back(item) for item in items] == [None] * 3


def test_a_default_of_none_that_is_validated_is_decoded() -> None:
    class Filled(Entity, name="back.v1.Filled", key=Key("{id}"), registry=Registry()):
        id: str
        note: Annotated[str | None, Field(validate_default=True)] = None

    assert back(Filled(id="1")) is None
