"""Valid declarations, and the definitions that they compile to."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import Annotated, Any, Literal, NewType
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from dynashard import Entity, Index, Key, Registry, Shards, created_at, definition, new_id, updated_at
from dynashard.codec import encode_value
from dynashard.entity import ItemKey
from dynashard.errors import InvalidKeyError, UndecodableItemError
from dynashard.placement import RANDOM, UNSHARDED
from tests.declaring import KEY, NAME, declare, declare_two, sorted_by

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a#{id}", "b#{id}"),
        ("a#{id}", "a{id}"),
        ("{id}", "{id}#x"),
        ("team", "shift#{id}"),
        ("a_{id}", "b_{id}"),
        ("a_{id}_z", "a__z"),
        ("{id}#a", "{id}#b"),
        ("{id}#{n}", "{id}|{n}"),
    ],
)
def test_entities_with_different_keys_can_share_a_prefix(one: str, other: str) -> None:
    registry = declare_two({"sort": one}, {"sort": other})

    assert set(registry) == {"one", "other"}
    assert len(registry) == 2
    assert registry["one"].prefix == registry["other"].prefix == "team"


class Slug(StrEnum):
    FIRST = "first"


TeamId = NewType("TeamId", str)
ShortText = Annotated[str, Field(max_length=20)]


@pytest.mark.parametrize(
    ("kind", "template", "value", "text"),
    [
        (str, "{x}", "a", "a"),
        (str, "{x:}", "a", "a"),
        (int, "{x}", -5, "-5"),
        (int, "{x:d}", 7, "7"),
        (int, "{x:012d}", 7, "000000000007"),
        (int, "{x:5d}", 7, "    7"),
        (int, "{x:04x}", 255, "00ff"),
        (UUID, "{x}", UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (date, "{x}", date(987, 6, 5), "0987-06-05"),
        (date, "{x:%Y/%m}", date(2026, 6, 5), "2026/06"),
        (datetime, "{x}", datetime(987, 6, 5, tzinfo=UTC), "0987-06-05T00:00:00.000000Z"),
        (datetime, "{x:%Y%m%d}", datetime(2026, 6, 5, tzinfo=UTC), "20260605"),
        (Slug, "{x}", Slug.FIRST, "first"),
        (IntEnum("Level", ["LOW"]), "{x}", 1, "1"),
        (TeamId, "{x}", TeamId("t"), "t"),
        (ShortText, "{x}", "t", "t"),
        (Literal["a", "b"], "{x}", "b", "b"),
        (str, "{{{x}}}", "a", "{a}"),
        (str, "a{x}b", "c", "acb"),
    ],
)
def test_kinds_of_key_fields_have_their_text(kind: Any, template: str, value: object, text: str) -> None:
    entity = definition(declare({"x": kind}, key=Key("{tenant}", template), any_width=True))

    assert entity.key_of({"tenant": "t", "x": value}) == ItemKey(f"{NAME}:t", text)


def test_times_in_keys_are_ordered_like_times_in_any_zone() -> None:
    entity = definition(declare({"x": datetime}, key=sorted_by("{x}")))
    zones = [UTC, timezone(timedelta(hours=5)), timezone(timedelta(hours=-9))]
    moments = [datetime(year, 1, 1, hour, tzinfo=zone) for year in (99, 999, 2026) for hour in (1, 2) for zone in zones]

    texts = [entity.key_of({"tenant": "t", "x": moment}).sort for moment in moments]

    assert [texts[i] for i in sorted(range(len(moments)), key=moments.__getitem__)] == sorted(texts)


def test_entity_without_sort_has_one_item_a_partition() -> None:
    entity = definition(declare(key=Key("{tenant}")))

    assert entity.key_of({"tenant": "t"}) == ItemKey(f"{NAME}:t", NAME)
    assert entity.key_fields == ("tenant",)
    assert entity.sort_fields == ()


def test_a_definition_has_the_declared_parts() -> None:
    class Thing(
        Entity,
        name=NAME,
        key=Key(partition="{tenant}", sort="{id}_{tenant}"),
        shards=Shards(8),
        indexes=[Index("GSI2", "by_mail", partition="{tenant}:{mail}", sort="{id}", shards=Shards(2), prefix="mails")],
        expires="until",
        registry=Registry(),
    ):
        tenant: str
        id: str = new_id()
        mail: str | None = None
        made: datetime = created_at()
        changed: datetime = updated_at()
        until: datetime | None = None

    entity = definition(Thing)
    index = entity.indexes["by_mail"]

    assert (entity.name, entity.model, entity.prefix, entity.shards) == (NAME, Thing, NAME, Shards(8))
    assert (entity.partition_fields, entity.sort_fields) == (("tenant",), ("id", "tenant"))
    assert entity.key_fields == ("tenant", "id")
    assert entity.created_fields == {"made"}
    assert entity.updated_fields == {"changed"}
    assert entity.server_fields == {"made", "changed"}
    assert entity.expires == "until"
    assert entity.optional == {"mail", "until"}
    assert (index.slot, index.prefix) == ("GSI2", "mails")
    assert index.fields == {"tenant", "mail", "id"}
    assert index.entry({"tenant": "t", "mail": None, "id": "1"}) is None
    assert index.entry({"tenant": "t", "mail": "m", "id": "1"}) == ItemKey("mails:t:m", "1")


def test_any_count_up_to_1024_is_declared_by_modulo() -> None:
    assert [definition(declare(shards=Shards(count, "modulo"))).shards for count in (1, 10, 1000, 1024)] == [
        Shards(1, "modulo"),
        Shards(10, "modulo"),
        Shards(1000, "modulo"),
        Shards(1024, "modulo"),
    ]


def test_start_is_another_name_of_the_count() -> None:
    grown = definition(declare(shards=Shards(start=1, max=256, placement="random"))).shards

    assert grown == Shards(1, "random", 256)
    assert repr(grown) == "Shards(count=1, placement='random', max=256, adopt=None, read_replicas=0)"
    assert grown is not None
    assert (grown.rule, grown.initial) == (RANDOM, 1)


def test_declared_shards_grow_to_1024_by_default() -> None:
    assert (Shards(16).max, Shards(16, max=16).max, Shards(1024).max) == (1024, 16, 1024)


def test_shards_are_copied_with_changes() -> None:
    assert replace(Shards(start=16, max=64), count=32) == Shards(32, max=64)


def test_items_to_be_adopted_are_stored_under_the_bare_partition_at_first() -> None:
    adopted = definition(declare(shards=Shards(16, adopt="unsharded"))).shards

    assert adopted is not None
    assert (adopted.count, adopted.initial) == (16, UNSHARDED)
    assert Shards(16).initial == 16


@pytest.mark.parametrize(
    ("shards", "counts"),
    [
        (Shards(1, read_replicas=1), [1]),
        (Shards(4, read_replicas=2), [4, 4]),
        (Shards(10, "modulo", read_replicas=1), [16]),
        (Shards(4), []),
    ],
    ids=str,
)
def test_read_replicas_have_as_many_shards_or_the_next_power_of_two(shards: Shards, counts: list[int]) -> None:
    entity = definition(declare(shards=shards))

    replicas = [index for index in entity.indexes.values() if index.replica]

    assert [each.shards.count for each in replicas if each.shards] == counts
    assert [each.name for each in replicas] == [f"replica_{number}" for number in range(1, len(counts) + 1)]


def test_any_entity_can_have_an_index_that_grows_to_a_ceiling() -> None:
    shards = Shards(4, max=64)
    for declared in (None, Shards(16), Shards(1, "random"), Shards(10, "modulo"), Shards(16, adopt="unsharded")):
        index = Index("GSI1", "by_id", "{tenant}", "{id}", shards=shards)
        entity = definition(declare(shards=declared, indexes=[index]))

        assert entity.indexes["by_id"].shards == shards


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Index("GSI1", "x", "{tenant}", "{id}", shards=Shards(4)), Index("GSI1", "y", "{tenant}", "{n}", Shards(4))),
        (Index("GSI1", "x", "{tenant}", "{id}"), Index("GSI1", "y", "{tenant}", "{n}")),
        (Index("GSI1", "x", "{tenant}", "{id}", Shards(4)), Index("GSI2", "x", "{tenant}", "{id}", Shards(8))),
        (Index("GSI1", "x", "{tenant}", "{id}", Shards(4)), Index("GSI1", "x", "{tenant}", "{id}", prefix="else")),
    ],
    ids=["equal shards", "both unsharded", "other slots", "unsharded under another prefix"],
)
def test_entities_that_share_partitions_share_index_slots(one: Index, other: Index) -> None:
    registry = declare_two({"sort": "a#{id}", "indexes": [one]}, {"sort": "b#{id}", "indexes": [other]})

    assert set(registry) == {"one", "other"}


@pytest.mark.parametrize("shards", [Shards(1, "random"), Shards(start=16, max=64), Shards(16, adopt="unsharded")])
def test_entities_that_share_partitions_have_any_shards_they_agree_on(shards: Shards) -> None:
    registry = declare_two({"sort": "a#{id}", "shards": shards}, {"sort": "b#{id}", "shards": shards})

    assert registry["one"].shards == registry["other"].shards == shards


def test_new_ids_have_27_characters_and_differ() -> None:
    thing = declare({"id": (str, new_id())})
    ids = {thing(tenant="t").id for _ in range(100)}  # type: ignore[attr-defined, call-arg]

    assert {len(each) for each in ids} == {27}
    assert len(ids) == 100


def test_frozen_entities_can_be_declared_checked_and_read() -> None:
    class Frozen(Entity, name=NAME, key=KEY, registry=Registry()):
        model_config = ConfigDict(frozen=True)

        tenant: str
        id: str = Field(frozen=True)
        ttl: timedelta | None = None

    entity = definition(Frozen)

    assert entity.assignment.check("id", "x") == "x"
    assert entity.decode_fields({"id": {"S": "y"}, "ttl": {"N": "0.000001"}}, ["id", "ttl"]) == {
        "id": "y",
        "ttl": timedelta(microseconds=1),
    }
    assert entity.decode({"tenant": {"S": "t"}, "id": {"S": "y"}, "Rev": {"S": "r"}}).revision == "r"


class Part(BaseModel, extra="forbid"):
    """A model with JSON somewhere below, and with parts of its own kind."""

    parts: list["Part"] = []
    more: JsonValue = None


class Weight(BaseModel, extra="forbid"):
    parts: list["Weight"] = []
    kilograms: Decimal


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        (JsonValue, float),
        (JsonValue | None, float),
        (dict[str, JsonValue], float),
        (list[Part] | None, float),
        (Decimal, Decimal),
        (dict[str, Decimal], Decimal),
        (list[Weight], Decimal),
    ],
    ids=str,
)
def test_a_fraction_is_a_float_where_json_of_any_kind_may_stand(kind: Any, number: type) -> None:
    entity = definition(declare({"x": kind}))

    [read] = entity.reference.value("x", encode_value([Decimal("1.5")], path="x"))

    assert (read, type(read)) == (number("1.5"), number)


def test_key_is_refused_for_unknown_and_missing_fields() -> None:
    entity = definition(declare())

    with pytest.raises(InvalidKeyError, match=r"role is not part of the key of thing\.v1\.Thing, which is tenant, id"):
        entity.key_of({"tenant": "t", "id": "1", "role": "x"})
    with pytest.raises(InvalidKeyError, match="id is part of the key and must be given") as missing:
        entity.key_of({"tenant": "t"})
    assert missing.value.field == "id"


def test_a_field_may_be_called_type() -> None:
    class Vehicle(Entity, name="vehicle.v1.Vehicle", key=Key("{tenant_id}", "{id}"), registry=Registry()):
        tenant_id: str
        id: str
        type: str

    assert Vehicle(tenant_id="abc", id="1", type="car").type == "car"


@pytest.mark.parametrize("value", [timedelta.max, timedelta.min, timedelta(microseconds=-1)], ids=repr)
def test_a_duration_is_read_exact_to_the_microsecond(value: timedelta) -> None:
    entity = definition(declare({"x": timedelta}))
    stored = {"x": encode_value(value, path="x")}

    assert entity.decode_fields(stored, ["x"]) == {"x": value}


def test_what_was_read_of_an_earlier_item_may_be_no_more_than_its_key() -> None:
    def halved(stored: dict[str, Any]) -> dict[str, Any]:
        return {**stored, "half": stored.pop("whole") / 2}

    class Halved(Entity, name=NAME, key=KEY, version=2, upgrade={1: halved}, registry=Registry()):
        tenant: str
        id: str
        half: float

    entity = definition(Halved)
    key = {"tenant": {"S": "t"}, "id": {"S": "y"}}

    assert entity.decode_fields(key, entity.key_fields) == {"tenant": "t", "id": "y"}
    assert entity.decode_fields({**key, "whole": {"N": "3"}}, ["id", "half"]) == {"id": "y", "half": 1.5}
    with pytest.raises(UndecodableItemError, match="whole"):
        entity.decode_fields(key, ["half"])
