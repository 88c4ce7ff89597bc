"""Declarations of counters that are refused, with the correction."""

from typing import Any

import pytest

from dynashard import Index, Key, Registry, Shards
from dynashard.errors import DeclarationError
from dynashard_patterns.counters import Counter, bounds_of

pytestmark = pytest.mark.unit

KEY = Key(partition="{tenant_id}:{id}")


def declare(key: Key = KEY, fields: Any = None, **declared: Any) -> Any:
    """Declare a counter as a class statement does."""
    namespace = {"__module__": __name__, "__annotations__": {"tenant_id": str, "id": str, **(fields or {})}}
    meta: Any = type(Counter)
    return meta("Stock", (Counter,), namespace, name="refused.v1.Stock", key=key, registry=Registry(), **declared)


@pytest.mark.parametrize(
    ("declared", "advice"),
    [
        ({"indexes": [Index("GSI1", "by_id", partition="{tenant_id}", sort="{id}")]}, "which has no indexes: leave it"),
        ({"expires": "expires_at"}, "which has no expires: leave it out"),
        ({"unique": ("id",)}, "which has no unique: leave it out"),
        ({"version": 2}, "which has no version: leave it out"),
        ({"upgrade": {1: dict}}, "which has no upgrade: leave it out"),
        ({"key": Key("{tenant_id}", "{id}")}, 'write key=Key(partition="{tenant_id}:{id}")'),
        ({"shards": Shards(4, placement="random")}, "write shards=Shards(4)"),
        ({"fields": {"colour": str}}, "colour is not a part of its key"),
        ({"min": 0}, "unique, handling, version, upgrade, registry, floor, ceiling"),
        ({"floor": 1}, "floor is 1; it must be at most 0"),
        ({"ceiling": -1}, "ceiling is -1; it must be at least 0"),
        ({"floor": -0.5}, "floor is -0.5; it must be a whole number"),
        ({"ceiling": True}, "ceiling is True; it must be a whole number"),
        ({"ceiling": 10**38}, "at most 38 digits"),
    ],
    ids=str,
)
def test_a_wrong_counter_is_refused_with_the_correction(declared: dict[str, Any], advice: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        declare(**declared)

    assert advice in refused.value.reason


def test_a_class_between_has_no_bounds_of_its_own() -> None:
    class Base(Counter):
        pass

    with pytest.raises(DeclarationError, match="declares no counter: write class Stock"):
        bounds_of(Base)


def test_a_declared_counter_has_its_bounds() -> None:
    assert bounds_of(declare(floor=-3, ceiling=10**38 - 1)) == (-3, 10**38 - 1)
