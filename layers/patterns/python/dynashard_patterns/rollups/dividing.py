"""Dividing a whole number by weights, so that the parts are whole and sum up to it."""

from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import TypeVar

from dynashard.errors import InvalidValueError

K = TypeVar("K", bound=Hashable)


def divide(total: int, weights: Mapping[K, int | Fraction]) -> dict[K, int]:
    """Parts of a total in proportion to weights: none is off by one or more, and their sum is the total.

    Each part is the whole number below the exact one; the rest goes, one each, to the largest remainders,
    and among equal remainders to the first in the order of the mapping. Source: the method of largest remainders
    (Hamilton's).

    Args:
        total: what is divided, in the smallest unit there is, such as cents; not negative.
        weights: by whom; not negative. If all are zero, all parts are zero.

    Raises:
        InvalidValueError: a negative total or weight.
    """
    if total < 0 or any(weight < 0 for weight in weights.values()):
        raise InvalidValueError("the total and the weights must not be negative")
    whole = sum(weights.values())
    if not whole:
        return dict.fromkeys(weights, 0)
    parts = {key: int(total * weight // whole) for key, weight in weights.items()}
    remainders = sorted(weights, key=lambda key: total * weights[key] % whole, reverse=True)
    for key in remainders[: total - sum(parts.values())]:
        parts[key] += 1
    return parts
