"""An entity with a field of every type that can be stored, and a strategy for its items."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from pydantic import BaseModel, Field, JsonValue

from dynashard import Entity, Key, Registry
from tests.storable_values import decimals, floats, ints, texts


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Line(BaseModel, extra="forbid"):
    price: Decimal
    tags: set[str] | None = None
    more: list["Line"] = []


class Everything(Entity, name="form.v1.Everything", key=Key("{tenant_id}", "{id}"), registry=Registry()):
    tenant_id: str = "t"
    id: str = "i"
    text: str = ""
    whole: int = 0
    ratio: float = 0.0
    price: Decimal = Decimal(0)
    maybe: Decimal | None = None
    flag: bool = False
    raw: bytes = b""
    at: datetime | None = None
    day: date | None = None
    hour: time | None = None
    span: timedelta | None = None
    uid: UUID | None = None
    colour: Colour = Colour.RED
    level: Level = Level.LOW
    names: set[str] | None = None
    prices: set[Decimal] | None = None
    blobs: frozenset[bytes] | None = None
    pair: tuple[int, Decimal] | None = None
    listed: list[Decimal] = Field(default_factory=list)
    mapped: dict[str, Decimal] = Field(default_factory=dict)
    line: Line | None = None
    lines: list[Line] = Field(default_factory=list)
    free: JsonValue = None
    objects: dict[str, JsonValue] = Field(default_factory=dict)


_lines: st.SearchStrategy[Line] = st.recursive(
    st.builds(Line, price=decimals(), tags=st.none() | st.sets(texts, min_size=1, max_size=4), more=st.just([])),
    lambda inner: st.builds(Line, price=decimals(), more=st.lists(inner, max_size=2)),
    max_leaves=3,
)
_json: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | floats | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", min_size=1), inner, max_size=3),
    max_leaves=6,
)
items = st.builds(
    Everything,
    text=texts,
    whole=ints,
    ratio=floats | st.sampled_from([0.0, -0.0, 1.0, 1e22]),
    price=decimals() | st.just(Decimal("-0.00")),
    maybe=st.none() | decimals(),
    flag=st.booleans(),
    raw=st.binary(max_size=9),
    at=st.none() | st.datetimes(timezones=st.just(UTC)),
    day=st.none() | st.dates(),
    hour=st.none() | st.times(),
    span=st.none() | st.timedeltas(timedelta(days=-9999), timedelta(days=9999)),
    uid=st.none() | st.uuids(),
    colour=st.sampled_from(Colour),
    level=st.sampled_from(Level),
    names=st.none() | st.sets(texts, min_size=1, max_size=6),
    prices=st.none() | st.sets(decimals(), min_size=1, max_size=4),
    blobs=st.none() | st.frozensets(st.binary(max_size=5), min_size=1, max_size=4),
    pair=st.none() | st.tuples(st.integers(), decimals()).filter(lambda pair: abs(pair[0]) < 10**38),
    listed=st.lists(decimals(), max_size=3),
    mapped=st.dictionaries(texts.filter(bool), decimals(), max_size=3),
    line=st.none() | _lines,
    lines=st.lists(_lines, max_size=2),
    free=_json,
    objects=st.dictionaries(st.text("abc", min_size=1), _json, max_size=3),
)
