"""Which members of a list continue those of the list that it replaces."""

import pytest

from dynashard.repository.list_alignment import aligned

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("abc", "abc", [0, 1, 2]),
        ("abc", "axc", [0, 1, 2]),
        ("abc", "xyz", [0, 1, 2]),
        ("abc", "abcd", [0, 1, 2, None]),
        ("abc", "ac", [0, 2]),
        ("abc", "c", [2]),
        ("abc", "", []),
        ("", "ab", [None, None]),
        ("abc", "xabc", [None, 0, 1, 2]),
        ("abc", "axyc", [0, None, None, 2]),
        ("abc", "acb", [0, None, None]),
        ("abc", "bxc", [None, None, 2]),
        ("abc", "xac", [None, None, 2]),
        ("aab", "ab", [0, 2]),
        ("aa", "a", [0]),
        ("a", "aa", [0, None]),
    ],
)
def test_equal_ends_and_new_members_at_equal_places_continue_old_ones(
    old: str, new: str, expected: list[int | None]
) -> None:
    assert aligned(old, new) == expected
