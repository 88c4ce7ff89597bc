"""Routing uses the counts of the topology."""

from collections.abc import Mapping
from typing import Any

import pytest

from dynashard import Entity, EntityDefinition, Index, Key, Registry, Shards, definition
from dynashard.entity import IndexDefinition
from dynashard.placement import CALCULATED, MODULO
from dynashard.routing import Places, Router, home, settling, shard_keys
from dynashard.topology import DeclaredTopology, Phase, View
from tests.declaring import declare

pytestmark = pytest.mark.unit


class Counted:
    """A topology with the count 8 for one partition, 2 for others, and 4 for indexes."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def view(self, entity: EntityDefinition[Any], partition: str) -> View:
        self.asked.append(f"{entity.name}|{partition}")
        return View(8 if partition.endswith(":big") else 2)

    def index_view(self, entity: EntityDefinition[Any], index: IndexDefinition) -> View:
        self.asked.append(f"{entity.name}|{index.name}")
        return View(4)

    def refresh(self, entity: EntityDefinition[Any], partition: str) -> None:
        """Do nothing: the counts are fixed."""


class Thing(
    Entity,
    name="thing",
    key=Key("{tenant}", "{id}"),
    shards=Shards(16),
    indexes=[
        Index("GSI1", "sharded", partition="{tenant}", sort="{id}", shards=Shards(16)),
        Index("GSI2", "bare", partition="{tenant}", sort="{id}"),
    ],
    registry=Registry(),
):
    tenant: str
    id: str


def text(wire: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    return {name: value["S"] for name, value in wire.items()}


def test_each_logical_partition_has_the_count_of_the_topology_instead_of_the_declared_one() -> None:
    topology, entity = Counted(), definition(Thing)
    router = Router(topology)
    numbers = range(100)

    homes = {
        tenant: {
            text(router.stored_key(entity, entity.key_of({"tenant": tenant, "id": str(number)})))["PK"]
            for number in numbers
        }
        for tenant in ("big", "small")
    }

    assert homes == {
        "big": set(shard_keys(CALCULATED, "thing:big", ":", 8)),
        "small": set(shard_keys(CALCULATED, "thing:small", ":", 2)),
    }
    assert set(topology.asked) == {"thing|thing:big", "thing|thing:small"}


def test_an_index_has_the_count_of_the_topology() -> None:
    topology, entity = Counted(), definition(Thing)
    key = entity.key_of({"tenant": "big", "id": "1"})

    found = Router(topology).index_attributes(entity, entity.indexes["sharded"], key, {"tenant": "big", "id": "1"})

    shard = CALCULATED.hash("thing:big:1") & 3
    assert text(found) == {"GSI1PK": f"thing:big:{shard}", "GSI1SK": "1"}
    assert topology.asked == ["thing|sharded"]


def test_the_declared_topology_has_the_declared_counts() -> None:
    topology, entity = DeclaredTopology(), definition(Thing)
    unsharded = definition(declare())

    assert topology.view(entity, "thing:a") == View(16, Phase.STABLE)
    assert topology.view(entity, "thing:b") == topology.view(entity, "thing:a")
    assert topology.view(unsharded, "x") == View(0)
    assert topology.index_view(entity, entity.indexes["sharded"]) == View(16)
    assert topology.index_view(entity, entity.indexes["bare"]) == View(0)


def test_unsharded_entity_would_be_adopted_by_the_calculated_rule() -> None:
    assert definition(declare()).rule is CALCULATED
    assert definition(declare(shards=Shards(10, "modulo"))).rule is MODULO


class Changing(Counted):
    """A topology in which everything changes from 2 shards to 8."""

    def __init__(self, phase: Phase) -> None:
        super().__init__()
        self._view = View(2, phase, None if phase is Phase.STABLE else 8)

    def view(self, entity: EntityDefinition[Any], partition: str) -> View:
        del entity, partition
        return self._view

    def index_view(self, entity: EntityDefinition[Any], index: IndexDefinition) -> View:
        del entity, index
        return self._view


@pytest.mark.parametrize("phase", Phase)
def test_an_item_moves_if_its_home_under_the_target_of_a_resize_is_another(phase: Phase) -> None:
    entity = definition(Thing)
    router = Router(Changing(phase))
    keys = [entity.key_of({"tenant": "abc", "id": str(n)}) for n in range(100)]
    target = 2 if phase is Phase.STABLE else 8

    places = [router.places(entity, key) for key in keys]

    assert [place.old for place in places] == [home(entity, key, 2) for key in keys]
    assert [place.new for place in places] == [home(entity, key, target) for key in keys]
    assert {place.moving for place in places} == ({False} if phase is Phase.STABLE else {False, True})
    assert all(
        place.moving == (home(entity, key, 2) != home(entity, key, target))
        for place, key in zip(places, keys, strict=True)
    )


@pytest.mark.parametrize("phase", Phase)
def test_only_while_a_resize_settles_an_item_that_moves_may_still_be_at_its_old_home(phase: Phase) -> None:
    entity = definition(Thing)
    router = Router(Changing(phase))

    places = [router.places(entity, entity.key_of({"tenant": "abc", "id": str(n)})) for n in range(100)]

    assert [place for place in places if settling(place)] == [
        place for place in places if phase is Phase.SETTLE and place.moving
    ]


@pytest.mark.parametrize("placement", ["calculated", "random"])
def test_readers_look_at_the_places_of_the_key_or_in_all_shards_if_it_has_none(placement: str) -> None:
    entity = definition(declare(shards=Shards(2, placement)))
    router, key = Router(Changing(Phase.MOVE)), entity.key_of({"tenant": "abc", "id": "1"})
    shards = shard_keys(entity.rule, key.partition, entity.separator, 16)

    read = [shard for shard in shards if router.reads_at(entity, shard, key.sort)]

    own = {home(entity, key, count) for count in (2, 8)} if placement == "calculated" else set(shards[:8])
    assert set(read) == own


def test_places_under_a_given_view_do_not_ask_the_topology() -> None:
    topology, entity = Counted(), definition(Thing)
    key, view = entity.key_of({"tenant": "abc", "id": "1"}), View(4, Phase.MOVE, 16)

    place = Router(topology).places(entity, key, view)

    assert place == Places(view, home(entity, key, 4), home(entity, key, 16), 4)
    assert topology.asked == []


@pytest.mark.parametrize(
    ("phase", "count"), [(Phase.STABLE, 2), (Phase.PREPARE, 2), (Phase.MOVE, 8), (Phase.SETTLE, 8)]
)
def test_index_entries_are_written_under_the_target_once_all_clients_know_of_it(phase: Phase, count: int) -> None:
    entity = definition(Thing)

    assert Router(Changing(phase)).index_count(entity, entity.indexes["sharded"]) == count


def test_an_item_has_an_entry_in_an_index_if_all_fields_of_the_entry_are_set() -> None:
    class Sparse(
        Entity,
        name="sparse",
        key=Key("{tenant}", "{id}"),
        shards=Shards(16),
        indexes=[Index("GSI1", "by_kind", "{tenant}:{kind}", "{id}", shards=Shards(16))],
        registry=Registry(),
    ):
        tenant: str
        id: str
        kind: str | None = None

    entity, router = definition(Sparse), Router(Counted())
    index, key = entity.indexes["by_kind"], entity.key_of({"tenant": "t", "id": "1"})
    values = {"tenant": "t", "id": "1", "kind": "red"}

    attributes = router.index_attributes(entity, index, key, values)

    shards = {f"sparse:t:red:{number}" for number in range(4)}
    assert attributes["GSI1SK"] == {"S": "1"}
    assert router.index_homes(entity, index, key, values) == {attributes["GSI1PK"]["S"]} <= shards
    for unset in ({**values, "kind": None}, {"tenant": "t", "id": "1"}):
        assert router.index_attributes(entity, index, key, unset) == {}
        assert router.index_homes(entity, index, key, unset) == frozenset()
