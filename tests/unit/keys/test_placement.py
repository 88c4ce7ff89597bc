"""The placement of keys on shards: the published vectors, and an even distribution."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, Literal

import pytest
from ksuid import Ksuid

from dynashard import Entity, EntityDefinition, Index, Key, Registry, Shards, definition
from dynashard.entity import ItemKey
from dynashard.errors import DeclarationError
from dynashard.placement import CALCULATED, MODULO, PLACEMENTS, RANDOM, Placement, is_power_of_two
from dynashard.routing import Router, home, index_home, logical_partition_of, shard_keys
from dynashard.schema import PK, SK
from dynashard.topology import DeclaredTopology
from tests.declaring import KEY, NAME, declare

pytestmark = pytest.mark.unit

PART = Key("{tenant}", "{part:04d}")
VECTORS: dict[str, Any] = json.loads((Path(__file__).parents[2] / "vectors" / "shards.json").read_text("utf-8"))


def stored_key(entity: EntityDefinition[Any], **fields: str) -> tuple[str, str]:
    stored = Router(DeclaredTopology()).stored_key(entity, entity.key_of(fields))
    return stored[PK]["S"], stored[SK]["S"]


def test_keys_are_placed_by_their_times_in_epochs_alone() -> None:
    assert [name for name, rule in PLACEMENTS.items() if rule.by_time] == ["epochs"]
    assert [name for name, rule in PLACEMENTS.items() if not rule.fixed] == ["random"]


def test_a_resize_moves_no_parts_and_no_items_of_random_placement() -> None:
    assert [name for name, rule in PLACEMENTS.items() if not rule.moves] == ["parts", "random"]


@pytest.mark.parametrize(("user", "shard"), VECTORS["article"]["shards"].items())
def test_article_users_have_their_published_keys(user: str, shard: int) -> None:
    class User(
        Entity,
        name=VECTORS["article"]["prefix"],
        key=Key(partition="{tenant}", sort="{id}"),
        shards=Shards(VECTORS["article"]["count"]),
        registry=Registry(),
    ):
        tenant: str
        id: str

    stored = stored_key(definition(User), tenant=VECTORS["article"]["tenant"], id=user)

    assert stored == (f"user.v1.User:abc:{shard}", user)


@pytest.mark.parametrize("example", VECTORS["generated_example"], ids=lambda example: example["hashed"])
def test_generated_examples_have_their_published_keys(example: dict[str, Any]) -> None:
    class User(
        Entity,
        name="examplepb_v1_user",
        key=Key(partition="{tenant}", sort="{id}"),
        shards=Shards(example["count"]),
        registry=Registry(),
    ):
        tenant: str
        id: str

    _, tenant, user = example["hashed"].split(":")

    assert CALCULATED.shard(CALCULATED.hash(example["hashed"]), example["count"]) == example["shard"]
    assert stored_key(definition(User), tenant=tenant, id=user) == (example["PK"], example["SK"])


@pytest.mark.parametrize("example", VECTORS["counts"], ids=lambda example: example["hashed"])
def test_every_count_takes_the_lowest_bits_of_one_hash(example: dict[str, Any]) -> None:
    hashed = CALCULATED.hash(example["hashed"])

    shards = {count: CALCULATED.shard(hashed, int(count)) for count in example["shards"]}

    assert hashed == int(example["xxh64"])
    assert shards == example["shards"]
    assert len(shards) == 11


@pytest.mark.parametrize("example", VECTORS["md5_modulo"], ids=lambda example: example["hashed"])
def test_modulo_counts_shards_from_1_as_published(example: dict[str, Any]) -> None:
    shard = MODULO.shard(MODULO.hash(example["hashed"]), example["count"]) + MODULO.first

    assert shard == example["shard"]


@pytest.mark.parametrize(
    ("path", "number", "stored"),
    [
        ("/shared/firetvGen2.txt", "123456789101", "/shared/firetvGen2.txt_5"),
        ("/shared/firetvGen2.txt", "123456789102", "/shared/firetvGen2.txt_8"),
        ("/home/a", "1", "/home/a_10"),
    ],
)
def test_published_paths_can_be_declared_and_adopted(path: str, number: str, stored: str) -> None:
    class SharedFile(
        Entity,
        name="file.v1.Shared",
        key=Key(partition="{path}", sort="{number}", prefix="", separator="_"),
        shards=Shards(10, placement="modulo"),
        registry=Registry(),
    ):
        path: str
        number: str

    entity = definition(SharedFile)

    assert stored_key(entity, path=path, number=number) == (stored, number)
    assert logical_partition_of(entity, stored) == path
    assert stored in shard_keys(MODULO, path, "_", 10)


def test_only_keys_with_random_placement_have_no_home() -> None:
    assert {name: placement.fixed for name, placement in PLACEMENTS.items()} == {
        "calculated": True,
        "epochs": True,
        "modulo": True,
        "parts": True,
        "random": False,
    }


def test_a_part_has_the_shard_of_its_number_under_every_count() -> None:
    entity = definition(declare({"part": int}, key=PART, shards=Shards(4, "parts", max=64)))
    keys = [entity.key_of({"tenant": "abc", "part": number}) for number in (0, 3, 63)]

    assert [key.sort for key in keys] == ["0000", "0003", "0063"]
    for count in (1, 4, 64):
        assert [home(entity, key, count) for key in keys] == [f"{NAME}:abc:{number}" for number in (0, 3, 63)]


def test_a_value_has_at_most_64_parts() -> None:
    declare({"part": int}, key=PART, shards=Shards(4, "parts", max=64))

    with pytest.raises(DeclarationError, match="max is 128; a value has at most 64 parts"):
        declare({"part": int}, key=PART, shards=Shards(4, "parts", max=128))


def test_random_shards_are_numbered_like_calculated_ones() -> None:
    assert shard_keys(RANDOM, "log:abc", ":", 4) == shard_keys(CALCULATED, "log:abc", ":", 4)
    assert shard_keys(RANDOM, "log:abc", ":", 2) == ["log:abc:0", "log:abc:1"]


def test_unsharded_layout_has_the_bare_partition_and_a_single_shard_the_suffix_0() -> None:
    class Bare(Entity, name="bare", key=Key(partition="{t}", sort="{id}"), registry=Registry()):
        t: str
        id: str

    class Single(Entity, name="single", key=Key(partition="{t}", sort="{id}"), shards=Shards(1), registry=Registry()):
        t: str
        id: str

    assert stored_key(definition(Bare), t="abc", id="1") == ("bare:abc", "1")
    assert stored_key(definition(Single), t="abc", id="1") == ("single:abc:0", "1")
    assert logical_partition_of(definition(Bare), "bare:abc") == "bare:abc"
    assert logical_partition_of(definition(Single), "single:abc:0") == "single:abc"
    assert shard_keys(CALCULATED, "bare:abc", ":", 0) == ["bare:abc"]
    assert shard_keys(CALCULATED, "single:abc", ":", 1) == ["single:abc:0"]


def test_doubling_a_count_moves_items_only_from_a_shard_to_its_twin() -> None:
    hashes = [CALCULATED.hash(f"user.v1.User:abc:{number}") for number in range(2000)]

    moves = Counter(CALCULATED.shard(each, 32) - CALCULATED.shard(each, 16) for each in hashes)

    assert set(moves) == {0, 16}
    assert 800 < moves[16] < 1200


def test_index_entries_with_equal_keys_spread_by_the_item_by_default() -> None:
    class Member(
        Entity,
        name="member",
        key=Key(partition="{t}", sort="{id}"),
        shards=Shards(16),
        indexes=[
            Index("GSI1", "by_team", partition="{t}", sort="{team}", shards=Shards(8)),
            Index("GSI2", "published", partition="{t}", sort="{team}", shards=Shards(8), shard_by="index_key"),
        ],
        registry=Registry(),
    ):
        t: str
        id: str
        team: str

    entity = definition(Member)
    homes: dict[str, set[str]] = {"by_team": set(), "published": set()}
    for number in range(200):
        key = entity.key_of({"t": "abc", "id": str(number)})
        for name, index in entity.indexes.items():
            entry = index.entry({"t": "abc", "id": str(number), "team": "blue"})
            assert entry == ItemKey("member:abc", "blue")
            homes[name].add(index_home(index, entry, key, 8))

    assert homes["by_team"] == {f"member:abc:{shard}" for shard in range(8)}
    assert homes["published"] == {f"member:abc:{CALCULATED.hash('member:abc:blue') & 7}"}


def test_a_home_depends_on_the_requested_count() -> None:
    class User(
        Entity, name="user.v1.User", key=Key(partition="{t}", sort="{id}"), shards=Shards(16), registry=Registry()
    ):
        t: str
        id: str

    key = ItemKey("user.v1.User:abc", "123")

    assert [home(definition(User), key, count) for count in (0, 1, 4, 16, 256)] == [
        "user.v1.User:abc",
        "user.v1.User:abc:0",
        "user.v1.User:abc:3",
        "user.v1.User:abc:11",
        "user.v1.User:abc:203",
    ]


def test_powers_of_two_are_recognised() -> None:
    powers = [count for count in range(-1, 1100) if is_power_of_two(count)]

    assert powers == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]


def ksuids(random: Random) -> list[str]:
    # The identifiers of a day, with several thousand per second.
    return [
        str(Ksuid.from_bytes((400_000_000 + n // 2000).to_bytes(4, "big") + random.randbytes(16))) for n in range(KEYS)
    ]


def sequential(random: Random) -> list[str]:
    first = random.randrange(10**6)
    return [str(first + n) for n in range(KEYS)]


def emails(random: Random) -> list[str]:
    names = ["ada", "grace", "alan", "edsger", "barbara", "donald", "margaret"]
    return [f"{random.choice(names)}.{n}@{random.choice(['example.com', 'example.org'])}" for n in range(KEYS)]


def paths(random: Random) -> list[str]:
    folders = ["home", "shared", "var/log", "srv/data"]
    return [f"/{random.choice(folders)}/{n % 97}/file{n}.txt" for n in range(KEYS)]


KEYS = 20_000
# Upper 0.1% of the chi-squared distribution for 15, 63 and 255 degrees of freedom (NIST/SEMATECH e-Handbook, 1.3.6.7.4,
# the last by the Wilson-Hilferty approximation). The keys have a fixed seed, so the result never changes.
CRITICAL = {16: 37.70, 64: 103.44, 256: 330.5}


def unevenness(keys: Sequence[str], count: int, placement: Placement) -> float:
    """Return chi-squared of the shards of these keys, compared with equal shares."""
    found = Counter(placement.shard(placement.hash(f"user.v1.User:abc{placement.joiner}{k}"), count) for k in keys)
    share = len(keys) / count
    assert set(found) <= set(range(count))
    return sum((found[shard] - share) ** 2 / share for shard in range(count))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("placement", [CALCULATED, MODULO], ids=lambda placement: placement.name)
@pytest.mark.parametrize("count", CRITICAL)
@pytest.mark.parametrize("make", [ksuids, sequential, emails, paths])
def test_shards_get_even_shares(make: Callable[[Random], list[str]], count: int, placement: Placement) -> None:
    keys = make(Random(20261120))

    assert len(set(keys)) == KEYS
    assert unevenness(keys, count, placement) < CRITICAL[count]


@pytest.mark.parametrize("count", CRITICAL)
def test_a_placement_that_prefers_a_shard_is_uneven(count: int) -> None:
    def favouring(text: str) -> int:
        hashed = CALCULATED.hash(text)
        return 0 if hashed >> 32 & 15 == 0 else hashed

    biased = Placement("calculated", joiner=":", first=0, powers_of_two=True, hash=favouring)

    assert unevenness(ksuids(Random(1)), count, biased) > CRITICAL[count]


@pytest.mark.parametrize("count", CRITICAL)
def test_a_placement_by_leading_characters_is_uneven(count: int) -> None:
    by_start = Placement("calculated", joiner="", first=0, powers_of_two=True, hash=lambda text: ord(text[20]))

    assert unevenness(paths(Random(1)), count, by_start) > CRITICAL[count]


@pytest.mark.parametrize("placement", ["calculated", "random", "parts"])
def test_counts_that_can_change_under_traffic_are_powers_of_two(
    placement: Literal["calculated", "random", "parts"],
) -> None:
    with pytest.raises(DeclarationError, match="the shard count is 3; it must be a power of two"):
        declare({"part": int}, key=PART if placement == "parts" else KEY, shards=Shards(3, placement))


def test_a_modulo_count_need_not_be_a_power_of_two() -> None:
    entity = definition(declare(shards=Shards(3, "modulo")))

    assert entity.shards is not None
    assert entity.shards.count == 3
