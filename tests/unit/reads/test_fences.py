"""Fences of ordered listings: they never hide a key, and stay where they are when they are rounded again."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import ceil, inf
from random import Random
from string import ascii_lowercase

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ksuid import Ksuid

from dynashard.reads.fences import ENDED, LIFE_SECONDS, Ahead, Fences, fences_after, turn_of
from tests.depth import examples

pytestmark = pytest.mark.unit

TURN = 256 * 400_000 + 100
"""Of the shards that are due next, none has the next keys of a test."""
KEYS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12),
    st.text("ab\x00 ~\x7fz\U0010ffff", min_size=1, max_size=12),
    st.text("abc", min_size=1, max_size=6),
)


def made(end: str, ahead: list[str], *, forward: bool, beyond: bool = False) -> Fences | None:
    places = [Ahead(key, beyond=beyond) for key in ahead]
    fences = fences_after([None, ["", len(ahead)]], TURN, end, places, forward=forward)
    assert fences is None or Fences.unpack(orjson.loads(orjson.dumps(fences.pack())), end) == fences
    return fences


def comes_before(one: str, other: str, *, forward: bool) -> bool:
    return one < other if forward else one > other


@settings(max_examples=examples(1500))
@given(
    end=KEYS,
    keys=st.lists(st.one_of(st.just(ENDED), KEYS), min_size=1, max_size=8),
    shared=st.sampled_from(["", "tenant#", "\U0010ffff"]),
    forward=st.booleans(),
    limit=st.integers(1, 60),
)
def test_no_fence_lies_beyond_the_next_key(
    end: str, keys: list[str], shared: str, limit: int, *, forward: bool
) -> None:
    end = shared + end
    ahead = [shared + key if key else ENDED for key in keys]
    ahead = [end if key and comes_before(key, end, forward=forward) else key for key in ahead]
    fences = made(end, ahead, forward=forward)
    assert fences is not None

    first, others = fences.parted(limit, TURN)
    assert sorted([*first, *others]) == list(range(len(keys)))
    assert first
    for shard in others:
        place, through = fences.place(shard, forward=forward)
        if ahead[shard] == ENDED:
            assert through > 0
            continue
        assert not comes_before(ahead[shard], place, forward=forward)
        assert through < 0 or not forward
        assert through < 0 or ahead[shard] != place
        # A later page rounds it again, from the same end or a later one.
        again = made(end, [place], forward=forward, beyond=True)
        assert again is not None
        assert not comes_before(ahead[shard], again.place(0, forward=forward)[0], forward=forward)


@pytest.mark.parametrize("forward", [True, False])
def test_a_fence_separates_neighbouring_keys(*, forward: bool) -> None:
    # Between a key and its own beginning the eight characters that count include the last one: no two keys are rounded
    # to one fence.
    end, *ahead = sorted(["partkey", *("partkey" + letter for letter in ascii_lowercase)], reverse=not forward)
    fences = made(end, ahead, forward=forward)

    assert fences is not None
    for shard, (before, key) in enumerate(pairwise([end, *ahead])):
        place, through = fences.place(shard, forward=forward)
        assert not comes_before(key, place, forward=forward)
        assert (place, through) != (key, inf)
        assert comes_before(before, place, forward=forward) or (place, through) == (before, inf)


def identifiers(count: int) -> list[str]:
    draw, start = Random(3), datetime(2026, 11, 1, tzinfo=UTC)
    return sorted(str(Ksuid(start + timedelta(seconds=second), draw.randbytes(16))) for second in range(count))


@pytest.mark.parametrize("forward", [True, False])
def test_of_many_shards_only_those_with_the_next_keys_come_first(*, forward: bool) -> None:
    keys = identifiers(256)[:: 1 if forward else -1]
    fences = made(keys[0], [*keys[1:], ENDED], forward=forward)

    assert fences is not None
    first, others = fences.parted(50, TURN)
    # 46.6 are expected, and 53 with the deviation.
    assert set(range(46)) <= set(first) <= set(range(60))
    assert 255 in others
    assert len(orjson.dumps(fences.pack())) < 500


@pytest.mark.parametrize("forward", [True, False])
def test_a_fence_that_is_carried_on_stays_where_it_is(*, forward: bool) -> None:
    keys = identifiers(400)[:: 1 if forward else -1]
    fences = made(keys[0], keys[1:257], forward=forward)
    assert fences is not None
    places = [fences.place(shard, forward=forward)[0] for shard in range(255)]
    kept = [Ahead(place, beyond=True) for place in places[100:]]

    # The page's end and the nearest shards go on by 50 items; the last key stays, so numbers are rounded alike.
    ahead = [*map(Ahead, keys[51:151]), *kept, Ahead(keys[256])]
    later = fences_after(fences.shape, TURN, keys[50], ahead, forward=forward)

    assert later is not None
    assert [later.place(shard, forward=forward)[0] for shard in range(100, 255)] == places[100:]


@pytest.mark.parametrize("shards", [2, 16, 256, 1000])
def test_each_shard_is_due_once_in_a_life_and_all_are_after_one(shards: int) -> None:
    fences = made("a", ["b"] * shards, forward=True)
    assert fences is not None

    due = [{shard for shard in range(shards) if fences.due(shard, TURN + later)} for later in range(257)]

    assert due[0] == set()
    assert due[256] == set(range(shards))
    assert all(earlier <= later for earlier, later in pairwise(due))
    # They come one after the other, not all at once.
    assert max(len(later - earlier) for earlier, later in pairwise(due)) == ceil(shards / 256)


def test_pages_of_a_life_ask_each_shard_once_in_its_turn() -> None:
    turns = range(TURN, TURN + 257, 16)
    pages = [fences_after([None, ["", 256]], turn, "a", [Ahead("b")] * 256, forward=True) for turn in turns]

    asked = [
        [shard for shard in range(256) if page and page.due(shard, turn)]
        for page, turn in zip(pages, turns[1:], strict=False)
    ]

    assert {len(each) for each in asked} == {16}
    assert sorted(shard for each in asked for shard in each) == list(range(256))


def test_a_life_has_256_turns() -> None:
    assert turn_of(1000 + LIFE_SECONDS, LIFE_SECONDS) == turn_of(1000, LIFE_SECONDS) + 256


def test_fences_of_a_clock_that_is_ahead_are_not_used() -> None:
    fences = made("a", ["b", "c"], forward=True)

    assert fences is not None
    assert not any(fences.due(shard, TURN) for shard in range(2))
    assert all(fences.due(shard, TURN - 1) for shard in range(2))


def test_shards_that_are_due_are_asked_first() -> None:
    keys = identifiers(256)
    fences = made(keys[0], [*keys[1:], ENDED], forward=True)

    assert fences is not None
    expected, _ = fences.parted(50, TURN)
    first, others = fences.parted(50, TURN + 20)
    assert set(first) - set(expected) <= {shard for shard in range(256) if fences.due(shard, TURN + 20)}
    assert set(first) > set(expected)
    assert sorted([*first, *others]) == list(range(256))


def test_fences_of_0_1_0_are_not_used() -> None:
    assert Fences.unpack([[None, ["", 2]], 1000, 8, 3, "ff", 2, "AAAA"], "a") is None


def test_keys_that_share_a_long_beginning_have_no_fences() -> None:
    assert made("a" * 65 + "b", ["a" * 65 + "c"], forward=True) is None
    assert made("a" * 64 + "b", ["a" * 64 + "c"], forward=True) is not None


def test_all_shards_come_first_if_all_have_ended() -> None:
    fences = made("a", [ENDED, ENDED], forward=True)

    assert fences is not None
    assert fences.parted(10, TURN) == ([0, 1], [])
