"""Entities that share logical partitions must have equal shards and different keys."""

from datetime import datetime
from typing import Any

import pytest

from dynashard import Key, Registry, Shards
from dynashard.errors import DeclarationError
from tests.declaring import NAME, an_index, declare, declare_two

pytestmark = pytest.mark.unit


FAMILY: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "other shards": (
        {"shards": Shards(16)},
        {"shards": Shards(8), "sort": "b#{id}"},
        "entities in one logical partition have the same shards",
    ),
    "sharded and not": (
        {"shards": Shards(16)},
        {"sort": "b#{id}"},
        "entities in one logical partition have the same shards",
    ),
    "other placement": (
        {"shards": Shards(16)},
        {"shards": Shards(16, "modulo"), "sort": "b#{id}"},
        "entities in one logical partition have the same shards",
    ),
    "other ceiling": (
        {"shards": Shards(16)},
        {"shards": Shards(16, max=64), "sort": "b#{id}"},
        "entities in one logical partition have the same shards",
    ),
    "adopted and not": (
        {"shards": Shards(16, adopt="unsharded")},
        {"shards": Shards(16), "sort": "b#{id}"},
        "entities in one logical partition have the same shards",
    ),
    "one home and any": (
        {"shards": Shards(16)},
        {"shards": Shards(16, "random"), "sort": "b#{id}"},
        "entities in one logical partition have the same shards",
    ),
    "other index shards": (
        {"indexes": [an_index(shards=Shards(4))]},
        {"indexes": [an_index(shards=Shards(8))], "sort": "b#{id}"},
        "index by_id is declared with Shards(count=8, placement='calculated', max=1024, ",
    ),
    "other index ceiling": (
        {"indexes": [an_index(shards=Shards(4))]},
        {"indexes": [an_index(shards=Shards(4, max=64))], "sort": "b#{id}"},
        "give both the same shards, or use another slot",
    ),
    "index sharded and not": (
        {"indexes": [an_index(shards=Shards(4))]},
        {"indexes": [an_index()], "sort": "b#{id}"},
        "index by_id is declared with None, but by_id of one",
    ),
    "other shards of the second index only": (
        {"indexes": [an_index("GSI2", shards=Shards(4))]},
        {"indexes": [an_index(name="alone"), an_index("GSI2", shards=Shards(8))], "sort": "b#{id}"},
        "index by_id is declared with Shards(count=8, placement='calculated', max=1024, ",
    ),
    "other shards under another index prefix": (
        {"indexes": [an_index(shards=Shards(4))]},
        {"indexes": [an_index(shards=Shards(8), prefix="else")], "sort": "b#{id}"},
        "give both the same shards, or use another slot",
    ),
    "other partitions": (
        {},
        {"partition": "{tenant}-{id}", "sort": "b#{id}"},
        "partition templates of one shape",
    ),
    "other partition format": (
        {"partition": "{n}"},
        {"partition": "{n:04d}", "sort": "b#{id}"},
        "partition templates of one shape",
    ),
    "equal sort": ({}, {}, "'a#{id}' and 'a#{id}' could be equal"),
    "free text against a constant": ({"sort": "{id}"}, {"sort": "profile"}, "'profile' and '{id}' could be equal"),
    "start that continues another": ({"sort": "a#{id}"}, {"sort": "a{id}"}, ""),
    "starts that continue each other": ({"sort": "a#x{id}"}, {"sort": "a#xy{id}"}, "could be equal"),
    "ends that continue each other": ({"sort": "{id}x#a"}, {"sort": "{id}yx#a"}, "could be equal"),
    "fields against fields": ({"sort": "{id}#{n}"}, {"sort": "{n}#{id}"}, "could be equal"),
    "constant within reach": ({"sort": "a_{id}_z"}, {"sort": "a_b_z"}, "could be equal"),
    "time with colons": (
        {"sort": "a:{id}"},
        {"sort": "b:{at}"},
        "sort 'b:{at}' cannot hold a datetime: at may not contain ':': it divides keys",
    ),
}


@pytest.mark.parametrize(("one", "other", "reason"), [each for each in FAMILY.values() if each[2]],
                         ids=[name for name, each in FAMILY.items() if each[2]])  # fmt: skip
def test_entities_with_possibly_equal_keys_cannot_share_a_prefix(
    one: dict[str, Any], other: dict[str, Any], reason: str
) -> None:
    with pytest.raises(DeclarationError) as refused:
        declare_two(one, other)

    assert refused.value.entity == "other"
    assert reason in refused.value.reason


def test_a_refused_entity_is_not_registered() -> None:
    registry = Registry()
    declare(registry=registry, key=Key("{tenant}", "a#{id}", prefix="team"))
    with pytest.raises(DeclarationError):
        declare({"at": datetime}, name="late", registry=registry, key=Key("{tenant}", "b:{at}", prefix="team"))

    declare({"n": int}, name="late", registry=registry, key=Key("{tenant}", "b:{n:04d}", prefix="team"))

    assert set(registry) == {NAME, "late"}


def test_two_entities_cannot_use_one_separator_without_a_prefix() -> None:
    registry = Registry()
    declare(registry=registry, key=Key("{tenant}", "{id}", "", "_"), shards=Shards(4))

    with pytest.raises(DeclarationError, match=f"the keys of {NAME} use the separator '_' already; if this entity is "):
        declare(name="other", registry=registry, key=Key("{tenant}", "{id}", "", "_"), shards=Shards(4))
