"""How traffic is spread over logical partitions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from math import log
from typing import Final

KEPT: Final = 1000
"""Shares that are kept; smaller partitions are never the hottest."""
MAX_PARTITIONS: Final = 1_000_000_000
_SUMMED: Final = 100_000
"""Terms of a harmonic sum that are added one by one; an integral stands for the rest."""


@dataclass(frozen=True, slots=True)
class Skew:
    """The traffic of logical partitions.

    Attributes:
        partitions: how many have traffic.
        shares: their shares of all traffic, the largest first, at most `KEPT`.
        source: where the shares come from, in words.
    """

    partitions: int
    shares: tuple[float, ...]
    source: str

    @property
    def hottest(self) -> float:
        """The share of the hottest one."""
        return self.shares[0]

    @property
    def rest(self) -> tuple[int, float]:
        """How many partitions are not among the shares, and the mean share of one of them."""
        number = self.partitions - len(self.shares)
        return number, max(0.0, 1 - sum(self.shares)) / number if number else 0.0

    def above(self, share: float) -> int:
        """Return how many partitions have more than a share of all traffic; those of the rest have their mean."""
        number, mean = self.rest
        return sum(1 for each in self.shares if each > share) + (number if mean > share else 0)


def even(partitions: int) -> Skew:
    """Return equal shares."""
    share = 1 / partitions
    return Skew(partitions, (share,) * min(partitions, KEPT), "even")


def one_hot(partitions: int, hottest: float) -> Skew:
    """Return one hot partition and equal shares for all others.

    Raises:
        ValueError: the share is not above 0 and at most 1, is less than an even one, or a single partition has less
            than all.
    """
    least = 1 / partitions
    if not least <= hottest <= 1:
        raise ValueError(f"the hottest share is {hottest:g}; of {partitions:,} partitions it is from {least:g} to 1")
    rest = () if partitions == 1 else ((1 - hottest) / (partitions - 1),) * min(partitions - 1, KEPT - 1)
    return Skew(partitions, (hottest, *rest), f"the hottest has {hottest:.1%}")


def zipf(partitions: int, exponent: float) -> Skew:
    """Return shares in proportion to `1 / rank ** exponent`. 1 is common for tenants of a service; 0 is even."""
    total = harmonic(partitions, exponent)
    shares = tuple(rank**-exponent / total for rank in range(1, min(partitions, KEPT) + 1))
    return Skew(partitions, shares, f"Zipf, exponent {exponent:g}")


def harmonic(number: int, exponent: float) -> float:
    """Return the sum of `1 / k ** exponent` for k from 1 to `number`, exact to about nine digits."""
    direct = min(number, _SUMMED)
    total = sum(float(k) ** -exponent for k in range(1, direct + 1))
    if number == direct:
        return float(total)
    # Euler and Maclaurin: the integral between the ends, and half of the difference of the end terms.
    if exponent == 1:
        integral = log(number / direct)
    else:
        integral = (number ** (1 - exponent) - direct ** (1 - exponent)) / (1 - exponent)
    return float(total + integral + (number**-exponent - direct**-exponent) / 2)


def by_counts(own: Sequence[int], common: int, partitions: int) -> Skew:
    """Return shares in proportion to shard counts, which have grown where there was traffic.

    Args:
        own: the counts of the logical partitions that have their own.
        common: the count of all others; 0 for no shards.
        partitions: how many logical partitions have traffic.

    Raises:
        ValueError: there are more counts than partitions.
    """
    if len(own) > partitions:
        raise ValueError(f"partitions is {partitions:,}, but {len(own):,} of them have a shard count of their own")
    others = partitions - len(own)
    weights = sorted([*own, *[max(common, 1)] * min(others, KEPT)], reverse=True)
    total = sum(own) + others * max(common, 1)
    return Skew(partitions, tuple(each / total for each in weights[:KEPT]), "in proportion to the live shard counts")


def measured(counts: Mapping[str, int] | Iterable[int], source: str) -> Skew:
    """Return the shares that counted traffic has.

    Raises:
        ValueError: there is none.
    """
    numbers = list(counts.values() if isinstance(counts, Mapping) else counts)
    total = sum(numbers)
    if total <= 0:
        raise ValueError(f"{source} has no keys")
    return Skew(len(numbers), tuple(each / total for each in nlargest(KEPT, numbers)), source)
