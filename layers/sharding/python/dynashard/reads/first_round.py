"""How many items the first round of an ordered page reads from each source, and how far the second reads."""

from math import ceil, exp, sqrt
from typing import Final

from dynashard.reads.by_shard import FILTERED_READ

BLOCK_BYTES: Final = 4096
"""The unit in which DynamoDB bills a Query."""
LARGE_BYTES: Final = 4 * BLOCK_BYTES
"""The size from which on an item that was read in vain costs more than a second round."""
MAX_ROUND_BYTES: Final = 32 * 1024 * 1024
"""The most bytes that round 1 reads from all sources together, because they are held in memory. One item of each source
is always read."""
FIRST_GUESS: Final = 1024.0
"""The size of an item in bytes that is assumed until some were read, if more items cost less than another round."""


def first_limit(limit: int, sources: int, item_bytes: float | None, *, filtered: bool = False) -> int:
    """Return how many items round 1 reads from each source for a page of `limit`.

    Of small items this is a source's share of the page, P/N, and its standard deviation, rounded up to fill the 4 KB
    blocks billed. Without a filter it is no more than 6 deviations: hardly any page needs more, and each item takes CPU
    time. Of large items, and while their size is unknown (None), it is the share and a quarter of the deviation,
    because each item more may be billed, and round 2 reads what is missing up to H.
    """
    share = limit / sources
    if item_bytes is None and filtered:
        item_bytes = FIRST_GUESS
    if item_bytes is None:
        return min(limit, _least_billed(share))
    items = _least_billed(share) if item_bytes >= LARGE_BYTES else ceil(share + sqrt(share))
    blocks = ceil(items * item_bytes / BLOCK_BYTES)
    most = max(1, int(MAX_ROUND_BYTES / sources / item_bytes))
    filled = min(limit, most, max(items, int(blocks * BLOCK_BYTES / item_bytes)))
    return min(filled * 4, FILTERED_READ) if filtered else min(filled, ceil(share + 6 * sqrt(share)))


def read_ahead(limit: int, known: int, item_bytes: float | None) -> int:
    """Return up to which of the known items, by its place in the order, round 2 reads where it reads beyond H.

    `item_bytes` is the size of small items if round 1 read one of each source; None otherwise. A source that has none
    up to that key gets its fence there, and a page that comes to many fences at one key reads them all. So n items of
    a source should come before it, as many as fill a block. A part 1 - exp(-n) of all first items does, then.
    """
    least = (limit + known) // 2
    if item_bytes is None:
        return least - 1
    return max(least, round(known * (1 - exp(-BLOCK_BYTES / item_bytes)))) - 1


def _least_billed(share: float) -> int:
    """The items of round 1 with which both rounds together read the fewest, as computed for 4 to 256 sources.

    With the share alone, H is the last item of a source that has many, and round 2 reads all others up to there.
    """
    return ceil(share + sqrt(share) / 4)
