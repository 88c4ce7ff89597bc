"""Ranges of sort keys."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dynashard.reads.bounds import Bounds
from dynashard.schema import MAX_SORT_KEY_BYTES

pytestmark = pytest.mark.unit

# Few letters, and the first and last characters, so that texts often share a prefix or touch each other.
letters = st.sampled_from(["a", "b", "\0", "\x7f", "\x80", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff"])
texts = st.text(letters, max_size=5)
keys = st.text(letters, min_size=1, max_size=5)
bounds = st.builds(Bounds, low=st.none() | keys, high=st.none() | keys, low_open=st.booleans(), high_open=st.booleans())


def lies_between(key: bytes, edges: Bounds) -> bool:
    low = edges.low is None or (key > edges.low.encode() if edges.low_open else key >= edges.low.encode())
    high = edges.high is None or (key < edges.high.encode() if edges.high_open else key <= edges.high.encode())
    return low and high


@given(bounds, keys)
def test_a_key_lies_between_bounds_by_its_bytes(edges: Bounds, key: str) -> None:
    assert edges.contains(key) == lies_between(key.encode(), edges)


@given(texts, keys)
def test_a_prefix_holds_the_keys_that_begin_with_it_and_no_others(prefix: str, key: str) -> None:
    edges = Bounds.of(prefix=prefix, start=None, end=None)

    assert edges.contains(key) == key.startswith(prefix)


@given(st.none() | keys, st.none() | keys, keys)
def test_a_range_includes_its_start_but_not_its_end(start: str | None, end: str | None, key: str) -> None:
    edges = Bounds.of(prefix=None, start=start, end=end)

    assert edges.contains(key) == ((start is None or key >= start) and (end is None or key < end))


@given(bounds, keys)
def test_empty_bounds_match_no_key(edges: Bounds, key: str) -> None:
    assert not (edges.empty and edges.contains(key))


def test_bounds_that_cross_or_meet_at_an_open_end_are_empty() -> None:
    assert Bounds(low="b", high="a").empty
    assert Bounds(low="a", high="a", high_open=True).empty
    assert Bounds(low="a", high="a", low_open=True).empty
    assert not Bounds(low="a", high="a").empty
    assert not Bounds(low="a").empty
    assert not Bounds(high="a", high_open=True).empty


@given(edges=bounds, at=keys, key=keys, forward=st.booleans())
def test_a_key_splits_a_range_into_the_part_before_and_the_part_after(
    edges: Bounds, at: str, key: str, *, forward: bool
) -> None:
    assume(edges.contains(at))
    after, onward = edges.after(at, forward=forward), edges.at(at, forward=forward)
    until = edges.until(at, forward=forward)

    assert after.contains(key) == (edges.contains(key) and (key > at if forward else key < at))
    assert onward.contains(key) == (edges.contains(key) and (key >= at if forward else key <= at))
    assert until.contains(key) == (edges.contains(key) and (key <= at if forward else key >= at))


@given(edges=bounds, key=keys, forward=st.booleans())
def test_a_condition_matches_the_whole_range_and_no_key_before_it(edges: Bounds, key: str, *, forward: bool) -> None:
    assume(not edges.empty)

    let_in = meets(edges.condition("SK", forward=forward), key)

    assert let_in or not edges.contains(key)
    near = (
        Bounds(low=edges.low, low_open=edges.low_open)
        if forward
        else Bounds(high=edges.high, high_open=edges.high_open)
    )
    assert near.contains(key) or not let_in


@pytest.mark.parametrize("last", ["a", "\x7f", "\u07ff", "\uffff", "\U0010ffff"])
@pytest.mark.parametrize("forward", [True, False])
def test_conditions_hold_no_text_that_is_too_long_for_a_sort_key(last: str, *, forward: bool) -> None:
    longest = "a" * (MAX_SORT_KEY_BYTES - len(last.encode())) + last
    beyond = "b"

    for edges in (
        Bounds.of(prefix=longest, start=None, end=None),
        Bounds(low=longest, low_open=True, high=beyond),
        Bounds(low=longest, low_open=True, high=beyond, high_open=True),
    ):
        condition, values = edges.condition("SK", forward=forward)
        assert all(len(value["S"].encode()) <= MAX_SORT_KEY_BYTES for value in values.values())
        assert meets((condition, values), longest) or not edges.contains(longest)
        assert meets((condition, values), "ab") or not edges.contains("ab")
    assert Bounds.of(prefix=longest, start=None, end=None).contains(longest)


def meets(condition: tuple[str, dict[str, dict[str, str]]], key: str) -> bool:
    """Return whether DynamoDB would match a key."""
    text, values = condition
    low, high = (values.get(name, {}).get("S", "") for name in (":low", ":high"))
    return {
        "": True,
        "SK BETWEEN :low AND :high": low <= key <= high,
        "SK > :low": key > low,
        "SK >= :low": key >= low,
        "SK < :high": key < high,
        "SK <= :high": key <= high,
    }[text]
