"""A table that was never sharded is adopted by the command line under traffic."""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dynashard import Entity, Index, Key, Registry, Shards, definition
from dynashard.entity import ItemKey
from dynashard.errors import NotFoundError
from dynashard.placement import UNSHARDED
from dynashard.resharding import Scope
from dynashard.routing import home
from dynashard.service import Collection as Items
from dynashard_serving.declare import Exposed
from dynashard_serving.domain import domain_of
from tests.engine.tools.reshard_world import ReshardWorld, reshard_world

pytestmark = pytest.mark.engine


class Pet(
    Entity,
    name="pet.v1.Pet",
    key=Key(partition="{owner}", sort="{id}"),
    shards=Shards(16, adopt="unsharded"),
    indexes=[Index("GSI1", "by_kind", partition="{owner}:{kind}", sort="{id}")],
    registry=Registry(),
):
    owner: str
    id: str
    kind: str
    name: str


Pets = Items[Pet]
ENTITY = definition(Pet)
OWNERS = ("ada", "bob", "cyd")
PETS = 40
KINDS = ("cat", "dog")


@pytest.fixture
def world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[ReshardWorld]:
    domain = domain_of(Exposed(Pet, path="pets", operations=()))
    monkeypatch.setattr("dynashard_tools.entities.declared", lambda: domain)
    with reshard_world(tmp_path, monkeypatch, capsys) as world:
        yield world


def write_as_before(world: ReshardWorld) -> dict[tuple[str, str], str]:
    """Write items as a service without shards did, and some of them as the layer does."""
    names = {}
    for number in range(PETS * len(OWNERS)):
        owner, name, kind = OWNERS[number % len(OWNERS)], f"p{number:03}", KINDS[number % len(KINDS)]
        item: dict[str, Any] = {
            "PK": f"pet.v1.Pet:{owner}", "SK": name, "owner": owner, "id": name, "kind": kind, "name": f"Pet {number}",
            "GSI1PK": f"pet.v1.Pet:{owner}:{kind}", "GSI1SK": name,
        }  # fmt: skip
        if number % 3 == 0:
            item |= {"Type": "pet.v1.Pet", "Rev": f"revision{number}"}
        wire = {attribute: {"S": value} for attribute, value in item.items()}
        world.wire.call("PutItem", {"TableName": world.table, "Item": wire})
        names[owner, name] = f"Pet {number}"
    return names


@dataclass
class Client:
    """Writes and reads pets, and checks every answer against its model."""

    pets: Pets
    names: dict[tuple[str, str], str]
    random: Random

    def work(self) -> None:
        self.random.choice([self.create, self.replace, self.change, self.delete, self.read, self.list_all])()

    def create(self) -> None:
        owner, name = self.random.choice(OWNERS), f"n{self.random.randrange(10**9)}"
        self.pets.create(Pet(owner=owner, id=name, kind="cat", name="New"))
        self.names[owner, name] = "New"

    def replace(self) -> None:
        owner, name = self.chosen()
        self.pets.put(Pet(owner=owner, id=name, kind="dog", name="Replaced"))
        self.names[owner, name] = "Replaced"

    def change(self) -> None:
        owner, name = self.chosen()
        self.pets.update({"owner": owner, "id": name}, set={"name": "Changed"})
        self.names[owner, name] = "Changed"

    def delete(self) -> None:
        owner, name = self.chosen()
        self.pets.delete({"owner": owner, "id": name})
        del self.names[owner, name]

    def read(self) -> None:
        owner, name = self.chosen()
        assert self.pets.get({"owner": owner, "id": name}, consistent=True).name == self.names[owner, name]
        with pytest.raises(NotFoundError):
            self.pets.get({"owner": owner, "id": "none"})

    def list_all(self) -> None:
        owner = self.random.choice(OWNERS)
        pages = self.pets.pages({"owner": owner}, limit=7, consistent=True)
        assert sorted(pet.id for page in pages for pet in page.items) == self.of(owner)

    def chosen(self) -> tuple[str, str]:
        return self.random.choice(sorted(self.names))

    def of(self, owner: str) -> list[str]:
        return sorted(name for whose, name in self.names if whose == owner)


def stored(world: ReshardWorld) -> list[tuple[str, str]]:
    items = world.wire.call("Scan", {"TableName": world.table, "ConsistentRead": True})["Items"]
    assert not any("MovedTo" in item for item in items)
    return sorted((item["PK"]["S"], item["SK"]["S"]) for item in items)


def homes(names: dict[tuple[str, str], str], adopted: Collection[str], count: int) -> list[tuple[str, str]]:
    """Return the places of items after those of some owners were adopted."""
    return sorted(
        (home(ENTITY, ItemKey(f"pet.v1.Pet:{owner}", name), count if owner in adopted else UNSHARDED), name)
        for owner, name in names
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("partition", ["ada", None])
def test_items_that_were_never_sharded_are_adopted_under_traffic(
    world: ReshardWorld, seed: int, partition: str | None
) -> None:
    scope = Scope(ENTITY, partition=f"pet.v1.Pet:{partition}" if partition else None)
    named = [partition] if partition else []
    names = write_as_before(world)
    random = Random(seed)
    clients = [Client(world.layer().collection(Pet), names, random) for _ in range(2)]
    stages: Counter[str] = Counter()
    assert world.run("topology", "pets", "ada").out.count("pet.v1.Pet:ada ") == 1

    def go_on() -> None:
        stages[world.resharder().status(scope).stage] += 1
        for _ in range(3):
            random.choice(clients).work()
        world.nibble(scope.key)

    with world.between_looks(go_on):
        ended = world.run("reshard", "start", "pets", *named, "--to", "16", "--wait", "--json", "--budget", "4000")

    assert ended.status == 0
    assert (ended.summary["count"], ended.summary["error"]) == (16, None)
    assert ended.err.splitlines()[1] == f"{' '.join(['pet.v1.Pet', *named])}: unsharded -> 16; waits to begin"
    while world.resharder().busy():
        go_on()
    assert stages.keys() >= {"pending", "prepare", "move", "settle", "sweep"}
    assert stored(world) == homes(names, named or OWNERS, 16)
    pets = world.layer().collection(Pet)
    for owner in OWNERS:
        found = {pet.id: pet.name for pet in pets.scan({"owner": owner})}
        assert found == {name: text for (whose, name), text in names.items() if whose == owner}
        by_kind = [pet.id for kind in KINDS for pet in pets.scan({"owner": owner, "kind": kind}, index="by_kind")]
        assert sorted(by_kind) == sorted(found)


def test_one_partition_of_a_table_can_be_adopted_before_the_others(world: ReshardWorld) -> None:
    names = write_as_before(world)

    with world.between_looks(world.go_on):
        ended = world.run("reshard", "start", "pets", "bob", "--to", "4", "--wait")

    assert ended.status == 0
    world.bring_to(Scope(ENTITY, partition="pet.v1.Pet:bob"), "stable")
    assert stored(world) == homes(names, ["bob"], 4)
    pets = world.layer().collection(Pet)
    assert sorted(pet.id for owner in OWNERS for pet in pets.scan({"owner": owner})) == sorted(n for _, n in names)
