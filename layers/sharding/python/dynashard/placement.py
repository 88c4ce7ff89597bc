"""From a key to its shard: pure functions.

A shard count of `UNSHARDED` (0) is the layout of tables that were never sharded: the stored partition key is the bare
logical partition. A count of 1 is sharded, with the suffix of its one shard.
"""

from collections.abc import Callable
from hashlib import md5
from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from xxhash import xxh64_intdigest

UNSHARDED: Final = 0
PART_DIGITS: Final = 4
"""How many digits a part's number has in its sort key."""
MAX_PARTS: Final = 64
"""The most parts of one value: one transaction reads all of them, or writes all of them and more."""


class Placement(Struct, frozen=True, eq=False):
    """A rule that gives every key one of `count` shards.

    Attributes:
        name: its name in declarations.
        joiner: the text between logical partition and sort key in the hashed text.
        first: number of the first shard in stored keys; the others follow without gaps.
        powers_of_two: whether counts must be powers of two, so that a resize moves as few keys as possible.
        hash: from the hashed text to an integer. A shard's number depends on it and the count alone.
        fixed: whether a key has one home. If not, writers choose a shard and readers look in all of them.
        moves: whether a resize moves items. If not, readers widen to a larger count first, and then writers use it.
        by_time: whether the count by which a key is placed may depend on the time that the key begins with.
    """

    name: str
    joiner: str
    first: int
    powers_of_two: bool
    hash: Callable[[str], int]
    fixed: bool = True
    by_time: bool = False
    moves: bool = True

    def shard(self, hashed: int, count: int) -> int:
        """Return the shard for a hash under a count of at least 1, counted from 0."""
        return hashed & (count - 1) if self.powers_of_two else hashed % count


def _xxh64(text: str) -> int:
    return xxh64_intdigest(text.encode())


def _md5(text: str) -> int:
    return int.from_bytes(md5(text.encode(), usedforsecurity=False).digest(), "big")


CALCULATED: Final = Placement("calculated", joiner=":", first=0, powers_of_two=True, hash=_xxh64)
"""xxh64 of `<prefix>:<partition>:<sort>`, lowest bits. Source: ConductorOne's protoc-gen-dynamo."""

MODULO: Final = Placement("modulo", joiner="", first=1, powers_of_two=False, hash=_md5)
"""md5 of partition and sort key put together, `% count + 1`. Source: AWS, 'Choosing the right number of shards'.

Its counts cannot change while traffic flows: nearly every key would move.
"""

RANDOM: Final = Placement("random", joiner=":", first=0, powers_of_two=True, hash=_xxh64, fixed=False, moves=False)
"""A shard drawn at random for every new item. Source: AWS, 'Choosing the right number of shards'.

Nothing moves when the count changes, so it grows within one wait, but a read by key looks into every shard.
"""

EPOCHS: Final = replace(CALCULATED, name="epochs", by_time=True)
"""As calculated, under the count of the epoch in which the key's own time lies.

A new count holds for keys from some time on, and a key that was placed keeps its place. So the count grows within one
wait and nothing moves, and a read by key looks into one shard. With one count for all times it is calculated placement.
"""


class _Numbered(Placement, frozen=True, eq=False):
    """A rule by which the sort key names the shard."""

    def shard(self, hashed: int, count: int) -> int:  # noqa: ARG002 - the same under every count
        """Return the number that the sort key names."""
        return hashed


PARTS: Final = _Numbered("parts", ":", 0, powers_of_two=True, hash=lambda text: int(text[-PART_DIGITS:]), moves=False)
"""The number that the sort key consists of, such as 0003: each shard holds one part of a value that is spread.

A part has the same place under every count. Nothing moves when the count grows: readers know the new parts before
writers use them. `dynashard_patterns.Counter` declares it.
"""

PLACEMENTS: Final[dict[str, Placement]] = {p.name: p for p in (CALCULATED, EPOCHS, MODULO, PARTS, RANDOM)}


def is_power_of_two(count: int) -> bool:
    """Whether `count` is 1, 2, 4, 8, ..."""
    return count > 0 and count & (count - 1) == 0
