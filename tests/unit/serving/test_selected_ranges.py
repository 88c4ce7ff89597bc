"""Sort keys of a listing: those that a prefix or sort fields select, between `from` and `to`."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynashard.errors import ValidationFailedError
from dynashard.reads.bounds import Bounds
from dynashard_serving.operations.choosing import ranged
from dynashard_serving.operations.requests import Choice

pytestmark = pytest.mark.unit

texts = st.text("ab\U0010ffff", min_size=1, max_size=3)
LONGEST = "k" * 1024


def selected(keys: list[str], **choice: Any) -> list[str]:
    """Return the keys that a choice selects; none if it is refused because it selects none."""
    sort = choice.pop("sort", {})
    try:
        options = ranged(Choice(tenant="abc", **choice), sort)
    except ValidationFailedError:
        return []
    bounds = Bounds.of(**options)
    return [] if bounds.empty else [key for key in keys if bounds.contains(key)]


@given(st.lists(texts), texts, st.none() | texts, st.none() | texts)
def test_a_prefix_and_a_range_select_what_both_select(
    keys: list[str], prefix: str, start: str | None, end: str | None
) -> None:
    expected = [k for k in keys if k.startswith(prefix) and (start is None or k >= start) and (end is None or k < end)]

    assert selected(keys, prefix=prefix, start=start, end=end) == expected
    assert selected(keys, sort={"prefix": prefix}, start=start, end=end) == expected


@given(st.lists(texts), texts, st.none() | texts, st.none() | texts)
def test_a_whole_key_and_a_range_select_what_both_select(
    keys: list[str], key: str, start: str | None, end: str | None
) -> None:
    expected = [k for k in keys if k == key and (start is None or k >= start) and (end is None or k < end)]

    assert selected(keys, sort={"start": key, "end": key + "\0"}, start=start, end=end) == expected


def test_a_prefix_as_long_as_a_key_selects_one_key() -> None:
    keys = ["j", LONGEST, "l"]

    for start, end in (("j", None), (LONGEST, None), (None, "l")):
        assert selected(keys, prefix=LONGEST, start=start, end=end) == [LONGEST]
    for start, end in (("l", None), (None, LONGEST)):
        assert selected(keys, prefix=LONGEST, start=start, end=end) == []


def test_filters_of_a_selection_stay() -> None:
    assert ranged(Choice(tenant="abc", start="ab"), {"prefix": "a", "filters": ["one"]})["filters"] == ["one"]
