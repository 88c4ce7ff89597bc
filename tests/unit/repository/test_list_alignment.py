"""Which members of a list continue those of the list that it replaces."""

from typing import ClassVar

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


class Counted(str):
    """A member that counts its comparisons."""

    __slots__ = ()
    compared: ClassVar[int] = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return str.__hash__(self)


def test_lists_of_thousands_are_not_compared_member_by_member_with_each_other() -> None:
    old, new = ([Counted(f"{side}{number}") for number in range(3000)] for side in ("old", "new"))
    Counted.compared = 0

    assert aligned(old, new) == [*range(3000)]
    assert Counted.compared <= 10 * len(old)


def test_objects_are_compared_by_what_they_hold() -> None:
    """An object that only moved is not taken for the one at its new place."""
    one, two, three = ({"M": {"name": {"S": name}, "all": {"L": [{"N": "1"}]}}} for name in ("a", "b", "c"))

    assert aligned([one, two], [two, dict(reversed(three.items()))]) == [None, None]
    assert aligned([one, two], [three, {"M": {}}]) == [0, 1]
