"""Python values that DynamoDB can store and that come back equal; for property tests."""

from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
ints = st.integers(min_value=-(10**38) + 1, max_value=10**38 - 1)
floats = st.floats(min_value=1e-130, max_value=9e125) | st.floats(min_value=-9e125, max_value=-1e-130)


@st.composite
def decimals(draw: st.DrawFn) -> Decimal:
    """Draw any number in DynamoDB's range, in any notation with at most 38 digits."""
    digits = draw(st.integers(min_value=1, max_value=38).flatmap(_of_length))
    magnitude = draw(st.integers(min_value=-130, max_value=125) | st.integers(min_value=-9, max_value=9))
    sign = draw(st.sampled_from([0, 1]))
    return Decimal((sign, digits, magnitude - len(digits) + 1))


def _of_length(length: int) -> st.SearchStrategy[tuple[int, ...]]:
    rest = st.lists(st.integers(0, 9), min_size=length - 1, max_size=length - 1)
    return st.tuples(st.integers(1, 9), rest).map(lambda pair: (pair[0], *pair[1]))


numbers = ints | decimals() | st.just(0)
scalars: st.SearchStrategy[Any] = texts | numbers | st.booleans() | st.none() | st.binary(max_size=30)
sets: st.SearchStrategy[set[Any]] = (
    st.sets(texts, min_size=1, max_size=5)
    | st.sets(numbers, min_size=1, max_size=5)
    | st.sets(st.binary(max_size=10), min_size=1, max_size=5)
)
values: st.SearchStrategy[Any] = st.recursive(
    scalars | sets,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(names, inner, max_size=5),
    max_leaves=15,
)
