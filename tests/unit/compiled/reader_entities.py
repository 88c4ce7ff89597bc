"""Entities whose random answers are read: those of the sample domain, and some with fields and rules of every kind."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import IntEnum, StrEnum
from random import Random
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    HttpUrl,
    JsonValue,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from dynashard import Entity, EntityDefinition, Index, Key, Registry, Shards, created_at, definition, new_id, updated_at
from dynashard_serving.domain import declared

Wire = dict[str, Any]
PARTITION: Final = "t"
"""The tenant of all items."""
_POOL: Final = 24
_OWN: Final = Registry()


class Colour(StrEnum):
    """Some colours."""

    RED = "red"
    BLUE = "blue"


class Size(IntEnum):
    """Some sizes."""

    SMALL = 1
    LARGE = 2


class Plain(
    Entity,
    name="fuzz.v1.Plain",
    key=Key("{tenant_id}", "{id}"),
    shards=Shards(4),
    indexes=[Index("GSI1", "by_text", "{tenant_id}", "{text}")],
    registry=_OWN,
):
    """A field of each type that is read from bytes, with and without restrictions and defaults."""

    tenant_id: str
    id: str = new_id()
    text: str
    maybe: str | None = None
    short: Annotated[str, Field(min_length=1, max_length=3)] = "x"
    coded: Annotated[str, Field(pattern=r"^\w*$")] = ""
    whole: int
    few: Annotated[int, Field(ge=-5, le=5)] | None = None
    ratio: float | None = None
    flag: bool = False
    at: datetime | None = None
    late: Annotated[datetime, Field(ge=datetime(2000, 1, 1, tzinfo=UTC))] | None = None
    day: date | None = None
    uid: UUID | None = None
    colour: Colour = Colour.RED
    created_at: datetime = created_at()
    updated_at: datetime = updated_at()


class Trimmed(Entity, name="fuzz.v1.Trimmed", key=Key("{tenant_id}", "{id}"), registry=_OWN):
    """An entity whose texts are changed when they are validated, with types that have no JSON of their own."""

    model_config = ConfigDict(str_strip_whitespace=True)

    tenant_id: str
    id: str
    text: Annotated[str, Field(max_length=12)] = ""
    clock: time | None = None
    page: HttpUrl | None = None


class Checked(Entity, name="fuzz.v1.Checked", key=Key("{tenant_id}", "{id}"), registry=_OWN):
    """An entity that is checked as a whole, and has a private attribute."""

    tenant_id: str
    id: str
    text: str = ""
    whole: int = 0
    _seen: list[int] = PrivateAttr(default_factory=list)

    @model_validator(mode="after")
    def _no_seven(self) -> "Checked":
        if self.whole == 7:
            raise ValueError("no seven")
        return self


class Line(BaseModel, extra="forbid"):
    """A part of an item."""

    price: Decimal
    tags: set[str] | None = None
    more: list["Line"] = []


class Nested(Entity, name="fuzz.v1.Nested", key=Key("{tenant_id}", "{id}"), expires="until", registry=_OWN):
    """An entity with a field of each type that the codec decodes first."""

    tenant_id: str
    id: str
    text: str = ""
    price: Decimal = Decimal(0)
    raw: bytes = b""
    span: timedelta | None = None
    size: Size = Size.SMALL
    names: set[str] | None = None
    prices: set[Decimal] | None = None
    blobs: frozenset[bytes] | None = None
    pair: tuple[int, Decimal] | None = None
    lines: list[Line] = Field(default_factory=list)
    mapped: dict[str, Decimal] = Field(default_factory=dict)
    free: JsonValue = None
    until: datetime | None = None


def _in_utc(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time


class Ruled(
    Entity,
    name="fuzz.v1.Ruled",
    key=Key("{tenant_id}", "{colour}#{few:02d}#{id}"),
    shards=Shards(4),
    indexes=[Index("GSI2", "by_time", "{tenant_id}:{kind}", "{at}#{few:02d}", shards=Shards(2))],
    expires="until",
    registry=_OWN,
):
    """An entity with literals, unions, validators of single fields, and a key of several types."""

    tenant_id: str
    colour: Colour
    few: int = 0
    id: str
    kind: Literal["a", "b"] = "a"
    at: Annotated[datetime, AfterValidator(_in_utc)]
    number: Literal[1, 2] = 1
    either: int | str = 0
    bounded: str = Field(default="long enough", min_length=4, validate_default=True)
    upper: str = "X"
    rounded: Decimal = Decimal(1)
    exact: int = Field(default=3, strict=True)
    until: datetime | None = None

    @field_validator("upper")
    @classmethod
    def _in_capitals(cls, value: str) -> str:
        return value.upper()

    @field_validator("rounded", mode="before")
    @classmethod
    def _round(cls, value: Any) -> Any:
        return round(value, 1) if isinstance(value, Decimal) else value


class Informed(Entity, name="fuzz.v1.Informed", key=Key("{tenant_id}", "{id}"), registry=_OWN):
    """An entity with a validator that asks for another field, and a setting that replaces members by their values."""

    model_config = ConfigDict(use_enum_values=True, frozen=True)

    tenant_id: str
    id: str
    colour: Colour = Colour.RED
    text: str = ""

    @field_validator("text")
    @classmethod
    def _with_colour(cls, value: str, info: ValidationInfo) -> str:
        return f"{value}{info.data.get('colour')}" if value == "x" else value


class Exact(Entity, name="fuzz.v1.Exact", key=Key("{tenant_id}", "{id}"), registry=_OWN):
    """An entity that converts nothing."""

    model_config = ConfigDict(strict=True)

    tenant_id: str
    id: str
    text: str = ""
    whole: int = 0
    flag: bool = False


class Prepared(Entity, name="fuzz.v1.Prepared", key=Key("{tenant_id}", "{id}"), registry=_OWN):
    """An entity whose validator must see all values decoded."""

    tenant_id: str
    id: str
    whole: int = 0

    @model_validator(mode="before")
    @classmethod
    def _count(cls, values: Any) -> Any:
        return {"whole": len(values), **values}


TEXTS: Final = (
    "", "x", "Ada Lovelace", "red", "7", " padded ", "2021-02-24", "é", "e\u0301", "\ud7ff\U0001f600", '"\\/', "}},{",
    "\x00\x1f\x7f\u2028", "x" * 300, "https://example.com/a?b=ü",
)  # fmt: skip
_TIMES: Final = (
    datetime(2021, 2, 24, 19, 28, 41, 1, tzinfo=UTC),
    datetime(2021, 2, 24, 19, 28, 41, tzinfo=UTC),
    datetime(2026, 11, 20, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(2021, 3, 31, 1, 2, 3, 500_000, tzinfo=UTC),
)
_TRIES: Final = 10_000
_NAMES: Final = ("a", "b-1", "C_2", "x" * 40)
_DECIMALS: Final = (Decimal(0), Decimal("1.5"), Decimal("-12.345"), Decimal("1E+20"), Decimal("0.00000001"), Decimal(7))
_LINES: Final = (Line(price=Decimal("9.99"), tags={"a", "b"}), Line(price=Decimal(1), more=[Line(price=Decimal(2))]))
_VALUES: Final[Mapping[str, Sequence[Any]]] = {
    "tenant_id": [PARTITION],
    **dict.fromkeys(
        ("id", "slug", "series", "episode", "session_id", "viewer_id", "licensor_id", "incident_id", "method_id"),
        _NAMES,
    ),
    **dict.fromkeys(("team_id", "schedule_id", "shift_id", "override_id", "rule_id", "user_id"), (*_NAMES, "Zoë")),
    **dict.fromkeys(("text", "maybe", "title", "target", "address", "method", "name", "other_type"), TEXTS),
    **dict.fromkeys(("display_name", "author", "request", "manager_id", "department"), (None, "Ada", "Zoë \U0001f600")),
    **dict.fromkeys(("at", "late", "since", "start", "created_at", "updated_at", "published_at", "closed_at"), _TIMES),
    **dict.fromkeys(("accessed_at", "expires_at", "until"), (None, datetime(2200, 1, 1, tzinfo=UTC), *_TIMES)),
    "year": [2021, 2024],
    **dict.fromkeys(("screening", "of"), _NAMES),
    "steps": [
        [{"targets": ["user_a"]}],
        [{"targets": ["user_a", "user_b-1"], "wait_minutes": 5}, {"targets": ["user_c"]}],
    ],
    "starts_at": _TIMES[:2],
    "ends_at": _TIMES[2:],
    "email": ["ada@example.com", "zoë@exämple.org"],
    "path": ["/a/b.txt", "/ü"],
    "status": [None, "active", "disabled", "TRIGGERED", 201],
    "state": ["OPEN", "CLOSED", "pending", "done"],
    "action": ["read", "write"],
    "channel": ["sms", "push"],
    "severity": ["any", "critical"],
    "level": ["minute", "month"],
    "way": ["FAN_OF", "FANNED_BY"],
    **dict.fromkeys(("node", "other"), ("User.1", "Actor.é")),
    **dict.fromkeys(("participant", "team"), (None, "team_a", "user_b-1")),
    "participants": [[], ["user_a"], ["user_a", "team_b"]],
    "problem": [None, {}, {"code": "x", "status": 409, "more": [1, 2.5, None]}],
    **dict.fromkeys(("number", "whole", "count", "pings", "seconds", "after_minutes", "parts"), (1, 2, 60, 1000)),
    **dict.fromkeys(("few", "slot"), (0, 3, 5)),
    "ratio": [None, 0.0, 0.5, -1e-7, 1e22, 123456.789],
    "flag": [True, False],
    "short": ["x", "abc", "\U0001f600é"],
    "coded": ["", "word", "wörd"],
    "day": [None, date(2021, 2, 24), date(1, 1, 1)],
    "uid": [None, UUID(int=7), UUID("6f9619ff-8b86-d011-b42d-00cf4fc964ff")],
    "colour": list(Colour),
    "clock": [None, time(1), time(23, 59, 59, 1)],
    "price": _DECIMALS,
    "raw": [b"", b"\x00\x01\x02", b"x" * 40],
    "span": [None, timedelta(days=3, microseconds=1), timedelta(seconds=-1)],
    "size": list(Size),
    "kind": ["a", "b"],
    "exact": [0, 7],
    "either": [0, 7, "x"],
    "bounded": ["long enough", "four"],
    "upper": ["X", "ABC"],
    "rounded": [Decimal(1), Decimal("2.5")],
    "names": [None, {"a"}, {"a", "b", "é"}],
    "prices": [None, {Decimal(1), Decimal("2.5")}],
    "blobs": [None, frozenset({b"a", b"\xff"})],
    "pair": [None, (1, Decimal("2.5"))],
    "lines": [[], [_LINES[0]], list(_LINES)],
    "mapped": [{}, {"a": Decimal(1), "é": Decimal("2.50")}],
    "free": [None, 1, "x", [1, {"a": [None, True]}], {"b": 1.5, "a": {}}],
}
"""Values of fields, by name. Those that an entity does not accept are not drawn for it."""


@dataclass(frozen=True, slots=True)
class Subject:
    """An entity with some of its items, as they are stored.

    Attributes:
        items: with system attributes, without table keys.
        keys: the key fields of the items.
        sorts: the sort keys of the items.
        partition: the fields of a logical partition.
        listings: the names of indexes, each with the fields of one of their logical partitions.
        selections: some fields that callers ask for.
    """

    model: type[Entity]
    entity: EntityDefinition[Any]
    items: Sequence[Wire]
    keys: Sequence[Mapping[str, Any]]
    sorts: Sequence[str]
    partition: Mapping[str, Any]
    listings: Sequence[tuple[str, Mapping[str, Any]]]
    selections: Sequence[tuple[str, ...]]


def subjects() -> list[Subject]:
    """Return all entities, each with the same items in every process."""
    in_order: list[type[Entity]] = sorted(set(declared().models), key=lambda model: definition(model).name)
    own: list[type[Entity]] = [Plain, Trimmed, Checked, Nested, Ruled, Informed, Exact, Prepared]
    return list(map(_subject, [*own, *in_order]))


def _subject(model: type[Entity]) -> Subject:
    entity, random = definition(model), Random(definition(model).name)
    made = [_item(random, model) for _ in range(_POOL)]
    keys = [{name: getattr(item, name) for name in entity.key_fields} for item in made]
    partition = {name: keys[0][name] for name in entity.partition_fields}
    names = [name for name in model.model_fields if name not in entity.attachments]
    selections = [tuple(names), *(tuple(random.sample(names, random.randrange(min(4, len(names))))) for _ in range(3))]
    listings = []
    for index in entity.indexes.values():
        fields = [{name: getattr(item, name) for name in index.partition.fields} for item in made]
        whole = [each for each in fields if None not in each.values()]
        listings += [(index.name, whole[0])] if whole and not index.replica else []
    return Subject(
        model=model,
        entity=entity,
        items=[_stored(random, entity, item) for item in made],
        keys=keys,
        sorts=[entity.key_of(key).sort for key in keys],
        partition=partition,
        listings=listings,
        selections=selections,
    )


def _item(random: Random, model: type[Entity]) -> Entity:
    """A valid item; fields with a default are left out at times."""
    for _ in range(_TRIES):
        values = {}
        for name, field in model.model_fields.items():
            # Functions that make defaults would take the time of day.
            wanted = field.is_required() or field.default_factory or random.random() < 0.7
            if wanted and name in _VALUES:
                values[name] = random.choice(_VALUES[name])
        try:
            return model(**values)
        except ValidationError:
            continue
    raise AssertionError(f"{definition(model).name} accepts no values: name those of its new fields in _VALUES")


def _stored(random: Random, entity: EntityDefinition[Any], item: Entity) -> Wire:
    stored = {"Type": {"S": entity.name}, "Rev": {"S": f"r-{random.randrange(100)}"}}
    stored |= entity.encode({name: value for name, value in item.__dict__.items() if name not in entity.attachments})
    if random.random() < 0.2:
        stored["Prev"] = {"S": random.choice(["r-old", "r-2 r-1 r-0"])}
        stored |= random.choice([{}, {"Born": {"S": "r-0"}}])
    return stored
