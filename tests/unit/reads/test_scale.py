"""Numbers of sort keys: they keep the order, and a number's text divides earlier keys from later ones."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynashard.reads.scale import MAX_PREFIX, Scale, scale_of
from tests.depth import examples

pytestmark = pytest.mark.unit

KEYS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12),
    st.text("ab0:\x00 ~\x7fz\U0010ffff", min_size=1, max_size=8),
    st.datetimes().map(lambda at: at.isoformat()),
    st.uuids().map(str),
)


@settings(max_examples=examples(500))
@given(
    shown=st.lists(KEYS, min_size=2, max_size=8),
    keys=st.lists(KEYS, min_size=2, max_size=8),
    shared=st.sampled_from(["", "tenant#"]),
)
def test_numbers_rise_with_keys_and_a_text_divides_them(shown: list[str], keys: list[str], shared: str) -> None:
    shown = [shared + key for key in shown]
    scale = scale_of(min(shown), max(shown), shown)
    assert scale is not None
    rising = sorted([*shown, *keys, *(shared + key for key in keys)])

    numbers = [scale.number(key) for key in rising]

    assert numbers == sorted(numbers)
    for number in {*numbers, *(number + 1 for number in numbers), *(number // 2 for number in numbers)} - {0}:
        text = scale.text(number)
        assert all((key >= text) is (scale.number(key) >= number) for key in rising)


def test_a_place_has_the_smallest_alphabet_with_the_characters_that_keys_have_there() -> None:
    keys = ["a#2026-11-08T09:15", "a#2026-11-21T17:48Z", "a#2026-12-03T23:01"]

    assert scale_of(keys[0], keys[2], keys) == Scale("a#2026-1", "0=-00=T00=:00=Z")
    assert scale_of("0fa~", "c3qä", ["0fa~", "c3qä"]) == Scale("", "ffz~")


def test_a_place_in_which_all_keys_have_one_character_takes_no_numbers() -> None:
    scale = Scale("", "0=-0")

    assert [scale.number(f"{tens}-{units}") for tens in "012" for units in "09"] == [0, 9, 10, 19, 20, 29]


def test_keys_that_share_a_long_beginning_have_no_scale() -> None:
    long = "a" * MAX_PREFIX

    assert scale_of(long + "b", long + "c", []) == Scale(long, "")
    assert scale_of(long + "ab", long + "ac", []) is None
