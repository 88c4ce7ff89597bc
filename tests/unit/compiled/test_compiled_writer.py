"""Items are made by a generated function, with the attributes, keys and errors of the codec and the key templates."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import product
from typing import Annotated, Any
from unittest.mock import patch
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from pydantic import Field, JsonValue
from pydantic_core import TzInfo

from dynashard import Entity, EntityDefinition, Index, Key, Registry, Shards, created_at, definition, updated_at
from dynashard.codec import item_size
from dynashard.entity import ItemKey, OutOfLine
from dynashard.errors import DeclarationError, DynashardError, InvalidKeyError
from dynashard.repository.store import Store
from dynashard.repository.write_builder import WriteBuilder
from dynashard.routing import IndexCounts, Router
from dynashard.runtime import Runtime
from dynashard.schema import MAX_ITEM_BYTES
from dynashard.topology import DeclaredTopology
from dynashard.transactions.single_writes import TransactedWrites
from tests.depth import examples
from tests.every_field import Colour, Everything, Level
from tests.every_field import items as everything

pytestmark = pytest.mark.unit

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
LATER = datetime(2026, 11, 20, 13, tzinfo=UTC)
STORE: Any = Store(
    transport=None,  # type: ignore[arg-type]  # nothing is sent
    table="t",
    router=Router(DeclaredTopology()),
    runtime=Runtime(clock=NOW.timestamp),
    new_revisions=lambda count: ["revision"] * count,
    exactly_once=TransactedWrites,
)


class Plain(
    Entity,
    name="written.v1.Plain",
    key=Key("{tenant}", "{id}"),
    shards=Shards(16),
    indexes=[
        Index("GSI1", name="by_mail", partition="{tenant}", sort="{mail}"),
        Index("GSI2", name="by_boss", partition="{tenant}:{team}", sort='{{{boss}"}}#{id}', shards=Shards(4)),
        Index("GSI3", name="by_time", partition="{tenant}", sort="{made}", shards=Shards(8), shard_by="index_key"),
    ],
    registry=Registry(),
):
    """What most items look like."""

    tenant: str
    id: str
    mail: str
    team: str = "none"
    boss: str | None = None
    note: str | None = "x"
    count: int = 0
    flag: bool = False
    seen: datetime | None = None
    made: datetime = created_at()
    changed: datetime = updated_at()


class Unusual(
    Entity,
    name="written.v1.Unusual",
    key=Key("{day}", "n\\{number:06d}_{at:%Y%m}/{text}"),
    shards=Shards(2),
    indexes=[
        Index("GSI1", name="by_level", partition="{level}", sort="é{number:06d}--{text}", shards=Shards(4)),
        Index("GSI2", name="by_uid", partition="{text}", sort="{uid}#{at}", prefix="other"),
        Index("GSI3", name="by_month", partition="{made:%Y-%m}", sort="{text}"),
    ],
    expires="until",
    registry=Registry(),
):
    """Templates with formats, literals that code must quote, and types whose key text the layer makes."""

    day: date
    number: int
    at: datetime
    text: str
    level: Level = Level.LOW
    colour: Colour = Colour.RED
    uid: UUID | None = None
    until: datetime | None = None
    either: int | str = 0
    amount: Decimal = Decimal(0)
    names: set[str] = Field(default_factory=set)
    apart: Annotated[JsonValue, OutOfLine()] = None
    made: datetime = created_at()


class Alone(
    Entity,
    name="written.v1.Alone",
    key=Key("{id}"),
    indexes=[
        Index("GSI1", name="by_rank", partition="{id}", sort="{rank}", unpadded=("rank",)),
        Index("GSI2", name="by_time", partition="{id}", sort="{seen}"),
        Index("GSI3", name="by_mail", partition="{id}", sort="{mail}"),
    ],
    registry=Registry(),
):
    """Indexes sorted by one field: only a text that is never missing is the same attribute there and in the item."""

    id: str
    rank: int
    mail: str
    seen: datetime | None = None


class Bare(Entity, name="written.v1.Bare", key=Key("{id}"), registry=Registry()):
    """Neither shards, nor a sort key, nor indexes."""

    id: str
    data: dict[str, Any] | None = None


class Text(str):
    """A text that prints itself differently."""

    __slots__ = ()

    def __str__(self) -> str:
        return "other"


class Moment(datetime):
    """A time that writes itself differently."""

    def isoformat(self, sep: str = "T", timespec: str = "auto") -> str:
        return f"other{super().isoformat(sep, timespec)}"


TIMES = [
    at.replace(tzinfo=zone)
    for at in (NOW, datetime(1, 1, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
    for zone in (None, UTC, TzInfo(0), TzInfo(3600), timezone(timedelta(seconds=1)))
]
VALUES: Sequence[Any] = [
    None, True, 0, -1, 10**6, 10**37, -(10**38), 10**38, 10**38 + 1, 10**126, 1.5, float("nan"), Decimal("1.5"), b"x",
    date(2026, 1, 2), UUID(int=1), Level.HIGH, Colour.BLUE, [], {}, {"a": [None]}, set(), {"a"}, {1, "a"}, object(),
    "", "a", "b:c", "#", "_", "/", "--", "é", "😀", "\ud800", "\n", "{", '"', "x" * 1025, "é" * 600, "x" * 2044,
    "x" * 410_000, Text("t"), Moment(2026, 1, 2, tzinfo=UTC), *TIMES,
]  # fmt: skip
values = st.sampled_from(VALUES) | st.text(max_size=5)
USUAL: dict[Any, st.SearchStrategy[Any]] = {
    "tenant": st.sampled_from(["t", "acme"]), "id": st.text("ab-", min_size=1), "day": st.dates(),
    "number": st.integers(0, 999_999), "at": st.datetimes(timezones=st.just(UTC)), "text": st.text("xyz", min_size=1),
    "level": st.sampled_from(Level), "mail": st.text("@ae", min_size=1), "made": st.just(NOW),
    "until": st.none() | st.datetimes(timezones=st.just(UTC)),
}  # fmt: skip


@st.composite
def items(draw: st.DrawFn, model: type[Entity]) -> Entity:
    """Draw an item whose fields are as declared, or not validated."""
    if model is Everything:
        return draw(everything)
    fields = {name: draw(USUAL[name]) for name in model.model_fields if name in USUAL}
    item = model.model_construct(**fields)
    for name in draw(st.lists(st.sampled_from([*model.model_fields, "unknown"]), max_size=3, unique=True)):
        item.__dict__[name] = draw(values)
    for name in draw(st.lists(st.sampled_from(list(model.model_fields)), max_size=1)) if draw(st.booleans()) else ():
        item.__dict__.pop(name, None)
    return item


@contextmanager
def step_by_step(entity: EntityDefinition[Any]) -> Iterator[None]:
    """Make items and keys without the generated functions."""
    nothing = {"writer": lambda *_: None, "_compiled_key": lambda _: None}
    with patch.dict(entity.__dict__, nothing):
        yield


def outcome(model: type[Entity], item: Entity, **more: Any) -> Any:
    """What is stored for an item, with its key and its size, or the error."""
    builder: WriteBuilder[Any] = WriteBuilder(STORE, definition(model))
    try:
        key = definition(model).key_of(item)
        wire = builder.wire_of(item, key, **{"created": None, **more})
    except DynashardError as error:
        return type(error), str(error), getattr(error, "field", None), getattr(error, "size", None)
    except Exception as error:  # noqa: BLE001 - whatever an odd value leads to
        return type(error)
    return type(key), key, sorted(wire.items()), item_size(wire)


@pytest.mark.parametrize("model", [Plain, Unusual, Alone, Bare, Everything])
@settings(max_examples=examples(600))
@given(data=st.data())
def test_a_generated_function_has_the_attributes_keys_sizes_and_errors_of_each_step(
    model: type[Entity], data: st.DataObject
) -> None:
    item = data.draw(items(model))
    more = {
        "created": data.draw(st.none() | st.sampled_from(TIMES)),
        "stamp": data.draw(st.sampled_from([NOW, LATER])),
        "replaces": data.draw(st.none() | st.just("before")),
    }
    assert definition(model).writer is not None
    made = outcome(model, item, **more)

    with step_by_step(definition(model)):
        assert made == outcome(model, item, **more)


@pytest.mark.parametrize("model", [Plain, Unusual, Alone, Bare])
def test_it_has_them_for_every_odd_value_of_every_field(model: type[Entity]) -> None:
    usual = next(item for item, _ in MADE if type(item) is model)
    different = []
    for name, value in product(model.model_fields, VALUES):
        item = usual.model_copy(update={name: value})
        made = outcome(model, item)
        with step_by_step(definition(model)):
            if made != outcome(model, item):
                different.append((name, value))

    assert not different


@pytest.mark.parametrize("value", [None, "x"])
@pytest.mark.parametrize("model", [Plain, Unusual, Alone, Bare])
def test_it_has_them_for_an_unknown_attribute_in_place_of_any_field(model: type[Entity], value: str | None) -> None:
    usual = next(item for item, _ in MADE if type(item) is model)
    different = []
    for name in model.model_fields:
        item = usual.model_copy()
        del item.__dict__[name]
        item.__dict__["unknown"] = value
        made = outcome(model, item)
        with step_by_step(definition(model)):
            if made != outcome(model, item):
                different.append(name)

    assert not different


TYPES: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text("ab-_#", max_size=4),
    int: st.integers(-20, 20),
    bool: st.booleans(),
    datetime: st.datetimes(timezones=st.just(UTC)),
    date: st.dates(),
    list[int]: st.lists(st.integers(), max_size=2),
}
TEMPLATES = ["{%s}", "{%s}:", "a{%s}", "{id}#{%s}", "{%s}_{id}", "{%s}--{id}"]


@st.composite
def declared(draw: st.DrawFn) -> tuple[type[Entity], Entity]:
    """Draw an entity and an item of it."""
    kinds = draw(st.lists(st.tuples(st.sampled_from(list(TYPES)), st.booleans()), min_size=1, max_size=5))
    fields: dict[str, Any] = {"id": str} | {
        f"f{at}": kind | None if no else kind for at, (kind, no) in enumerate(kinds)
    }
    defaults = {name: None for name, (_, no) in zip(list(fields)[1:], kinds, strict=True) if no and draw(st.booleans())}

    def template() -> str:
        return draw(st.sampled_from(TEMPLATES)) % draw(st.sampled_from(list(fields)[1:]))

    indexes = []
    for slot in draw(st.lists(st.sampled_from(["GSI1", "GSI2", "GSI3"]), unique=True)):
        shards = draw(st.none() | st.just(Shards(4)))
        by: Any = draw(st.sampled_from(["item_key", "index_key"])) if shards else "item_key"
        indexes.append(Index(slot, f"by_{slot.lower()}", template(), template(), shards, shard_by=by))
    namespace = {"__annotations__": fields, "__module__": __name__, "__qualname__": "Drawn", **defaults}
    key = Key(draw(st.sampled_from(["{id}", "{id}#x"])), draw(st.none() | st.builds(template)))
    declare: Any = type(Entity)
    try:
        model = declare(
            "Drawn", (Entity,), namespace, name="drawn.v1.Drawn", key=key, indexes=indexes, registry=Registry()
        )
    except DeclarationError:
        reject()
    values = {f"f{at}": draw(st.none() | TYPES[kind] if no else TYPES[kind]) for at, (kind, no) in enumerate(kinds)}
    return model, model.model_construct(id=draw(TYPES[str]), **values)


@settings(max_examples=examples(500), suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(drawn=declared())
def test_this_holds_for_any_declaration(drawn: tuple[type[Entity], Entity]) -> None:
    model, item = drawn
    assert definition(model).writer is not None
    made = outcome(model, item)

    with step_by_step(definition(model)):
        assert made == outcome(model, item)


LARGE = "x" * (MAX_ITEM_BYTES - 4096)
MADE: Sequence[tuple[Entity, bool]] = [
    (Plain(tenant="t", id="é", mail="m@x", boss="b", note="ü😀", seen=NOW), True),
    (Unusual(day=date(2026, 1, 2), number=7, at=NOW, text="x", uid=UUID(int=1), until=NOW, names={"a"}), True),
    (Alone(id="1", rank=7, mail="m@x", seen=NOW), True),
    (Alone(id="1", rank=7, mail="m@x"), True),
    (Bare(id="1", data={"a": [1]}), True),
    (Plain(tenant="t", id="i", mail="m@x", seen=NOW.astimezone(timezone(timedelta(hours=1)))), False),
    (Plain(tenant="t", id="i", mail="m@x", note=LARGE), False),
    (Plain.model_construct(tenant="t", id="i", mail="m@x", note="\ud800"), False),
    (Plain.model_construct(tenant="t", id="i", mail="\ud800"), False),
    (Plain(tenant="t", id="i", mail="m" * 1024), True),
    (Plain(tenant="t", id="i", mail="m" * 1025), False),
    (Plain(tenant="t", id="i", mail="\U0001f600" * 256), True),
    (Plain(tenant="t", id="i", mail="\U0001f600" * 257), False),
    (Plain.model_construct(tenant="t", id="i", mail="m@x", count=True), False),
]


@pytest.mark.parametrize(("item", "known"), MADE)
def test_what_is_usual_is_made_at_once_and_the_rest_step_by_step(item: Entity, *, known: bool) -> None:
    entity = definition(type(item))
    key = entity.key_of(item)
    counts = IndexCounts(STORE.router, entity)

    assert (entity.writer(item.__dict__, key, NOW, NOW, "revision", counts) is not None) == known


def test_characters_that_divide_a_family_are_refused_from_its_second_entity_on() -> None:
    registry = Registry()

    class First(Entity, name="written.v1.First", key=Key("{t}", "{id}", prefix="f"), registry=registry):
        t: str
        id: str

    item = First(t="t", id="a#b")
    assert outcome(First, item)[1] == ItemKey("f:t", "a#b")

    class Second(Entity, name="written.v1.Second", key=Key("{t}", "s#{id}", prefix="f"), registry=registry):
        t: str
        id: str

    with pytest.raises(InvalidKeyError, match="it divides keys"):
        definition(First).key_of(item)


def test_checks_of_an_entity_hold_for_items_that_are_made_at_once() -> None:
    seen: list[Any] = []

    def check(values: Mapping[str, Any]) -> None:
        seen.append(values["made"])
        raise InvalidKeyError("refused")

    item = Plain(tenant="t", id="i", mail="m@x")
    assert outcome(Plain, item)[1] == ItemKey("written.v1.Plain:t", "i")
    with patch.dict(definition(Plain).checks, {"one": check}):
        assert outcome(Plain, item)[:2] == (InvalidKeyError, "refused")
    assert set(seen) == {NOW}
