"""Fences of ordered listings: they never hide a key, and stay where they are when they are rounded again."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random
from string import ascii_lowercase

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ksuid import Ksuid

from dynashard.reads.fences import ENDED, MAX_AGE_SECONDS, Fences, fences_after
from tests.depth import examples

pytestmark = pytest.mark.unit

KEYS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12),
    st.text("ab\x00 ~\x7fz\U0010ffff", min_size=1, max_size=12),
    st.text("abc", min_size=1, max_size=6),
)


def made(end: str, ahead: list[str], *, forward: bool) -> Fences | None:
    fences = fences_after([None, ["", len(ahead)]], 7.9, end, ahead, forward=forward)
    assert fences is None or Fences.unpack(orjson.loads(orjson.dumps(fences.pack()))) == fences
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

    first, others = fences.parted(limit)
    assert sorted([*first, *others]) == list(range(len(keys)))
    assert first
    for shard in others:
        place, through = fences.place(shard, forward=forward)
        if ahead[shard] == ENDED:
            assert through > 0
            continue
        assert not comes_before(ahead[shard], place, forward=forward)
        assert through < 0
        # A later page rounds it again, from the same end or a later one.
        again = made(end, [place], forward=forward)
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
        place, _ = fences.place(shard, forward=forward)
        assert not comes_before(key, place, forward=forward)
        assert comes_before(before, place, forward=forward)


def identifiers(count: int) -> list[str]:
    draw, start = Random(3), datetime(2026, 11, 1, tzinfo=UTC)
    return sorted(str(Ksuid(start + timedelta(seconds=second), draw.randbytes(16))) for second in range(count))


@pytest.mark.parametrize("forward", [True, False])
def test_of_many_shards_only_those_with_the_next_keys_come_first(*, forward: bool) -> None:
    keys = identifiers(256)[:: 1 if forward else -1]
    fences = made(keys[0], [*keys[1:], ENDED], forward=forward)

    assert fences is not None
    first, others = fences.parted(50)
    # 46.6 are expected, and 53 with the deviation.
    assert set(range(46)) <= set(first) <= set(range(60))
    assert 255 in others
    assert len(orjson.dumps(fences.pack())) < 450


def test_fences_hold_for_seconds_and_for_one_layout() -> None:
    fences = made("a", ["b"], forward=True)

    assert fences is not None
    assert fences.holds([None, ["", 1]], 7.5)
    assert not fences.holds([None, ["", 2]], 7.5)
    assert not fences.holds([None, ["", 1]], 7.5 + MAX_AGE_SECONDS)
    assert not fences.holds([None, ["", 1]], 6.0)


def test_keys_that_share_a_long_beginning_have_no_fences() -> None:
    assert made("a" * 65 + "b", ["a" * 65 + "c"], forward=True) is None
    assert made("a" * 64 + "b", ["a" * 64 + "c"], forward=True) is not None


def test_all_shards_come_first_if_all_have_ended() -> None:
    fences = made("a", [ENDED, ENDED], forward=True)

    assert fences is not None
    assert fences.parted(10) == ([0, 1], [])
