"""The arithmetic of a counter's parts: pure functions.

A part stores two numbers. `value` is its share of the counter's value, and `spare` is its share of the room below the
ceiling. Adding k to a part adds k to `value` and takes k from `spare`; taking is the reverse. So over all parts

    value of the counter = sum of `value` = - sum of `spare`

Part 0 stands for the bounds: its `value` may fall to the floor, and its `spare` to minus the ceiling. Those of all
other parts may fall to 0. Then the counter keeps to its bounds, although each part is judged by itself:

    sum of `value` >= floor            because part 0 >= floor, and each other part >= 0
    - sum of `spare` <= ceiling        because part 0 >= - ceiling, and each other part >= 0

What a part may still give is its room. A part that lacks room gets some of another part's, which changes neither sum.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

LIMIT: Final = 10**38 - 1
"""The largest whole number of 38 digits, which are stored exactly."""

Side = Literal["value", "spare"]


class Bounds(NamedTuple):
    """What a counter may not fall below, and not rise above; None for no bound."""

    floor: int | None = None
    ceiling: int | None = None

    def least(self, side: Side, part: int) -> int:
        """Return what one number of a part may not fall below."""
        bound = self.floor if side == "value" else None if self.ceiling is None else -self.ceiling
        if bound is None:
            return -LIMIT
        return 0 if part else bound

    def rooms(self, side: Side, numbers: Sequence[int]) -> list[int]:
        """Return by how much one number of each part may fall."""
        return [number - self.least(side, part) for part, number in enumerate(numbers)]


def borrowed(rooms: Sequence[int], part: int, amount: int) -> Mapping[int, int] | None:
    """Return what each other part must give so that a part has room for an amount; None if all have too little.

    The last one that gives keeps as much as the part has afterwards, so that both can serve the next ones.
    """
    missing = amount - rooms[part]
    given: dict[int, int] = {}
    for other in sorted((each for each in range(len(rooms)) if each != part), key=lambda each: (-rooms[each], each)):
        if missing <= 0:
            break
        room = max(0, rooms[other])
        given[other] = (room + missing + 1) // 2 if room >= missing else room
        missing -= given[other]
    return {other: share for other, share in given.items() if share} if missing <= 0 else None
