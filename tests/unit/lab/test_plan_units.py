"""Units of operations: rounded as DynamoDB bills them."""

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynashard.schema import MAX_ITEM_BYTES
from dynashard_lab.plan.units import (
    Consistency,
    batch_read_units,
    index_write_units,
    query_units,
    read_units,
    write_units,
)

pytestmark = pytest.mark.unit

SIZES = st.integers(1, MAX_ITEM_BYTES)
KB = 1024


@pytest.mark.parametrize(
    ("size", "eventual", "strong", "transactional"),
    [
        (1, 0.5, 1, 2), (4096, 0.5, 1, 2), (4097, 1, 2, 4), (8192, 1, 2, 4), (8193, 1.5, 3, 6),
        (400 * KB, 50, 100, 200), (0, 0.5, 1, 2),
    ],
)  # fmt: skip
def test_reads_are_rounded_up_to_4_kb(size: int, eventual: float, strong: float, transactional: float) -> None:
    assert [read_units(size, each) for each in Consistency] == [eventual, strong, transactional]


@pytest.mark.parametrize(("size", "units"), [(1, 1), (1024, 1), (1025, 2), (2048, 2), (3500, 4), (400 * KB, 400)])
def test_writes_are_rounded_up_to_1_kb(size: int, units: int) -> None:
    assert write_units(size) == units
    assert write_units(size, transactional=True) == 2 * units


def test_a_query_rounds_the_sum_and_a_batch_rounds_each_item() -> None:
    sizes = [1536, 6656]

    assert query_units(sum(sizes), Consistency.STRONG) == 2
    assert batch_read_units(sizes, Consistency.STRONG) == 3


def test_a_write_is_billed_by_the_larger_of_both_sizes() -> None:
    assert write_units(100, before=5000) == write_units(5000, before=100) == 5


@pytest.mark.parametrize(
    ("entry", "before", "key_changes", "changes", "units"),
    [
        (1500, None, False, True, 2),  # a new entry
        (1500, 1500, False, True, 2),  # a changed attribute
        (1500, 1500, False, False, 0),  # nothing that the index stores
        (1500, 2500, True, True, 5),  # one delete and one put
        (0, 1500, False, True, 2),  # the item leaves the index
        (0, None, False, True, 0),  # never in it
    ],
)
def test_an_index_costs_what_it_stores(
    entry: int, before: int | None, *, key_changes: bool, changes: bool, units: int
) -> None:
    assert index_write_units(entry, before=before, key_changes=key_changes, changes=changes) == units


def test_wrong_sizes_and_transactional_queries_are_refused() -> None:
    with pytest.raises(ValueError, match="-1 bytes"):
        write_units(-1)
    with pytest.raises(ValueError, match="transactional"):
        query_units(1, Consistency.TRANSACTIONAL)


@given(SIZES)
def test_rounding_is_exact(size: int) -> None:
    assert read_units(size, Consistency.STRONG) == ceil(Fraction(size, 4096))
    assert write_units(size) == ceil(Fraction(size, 1024))


@given(SIZES)
def test_the_consistencies_are_in_the_ratio_1_to_2_to_4(size: int) -> None:
    eventual, strong, transactional = (read_units(size, each) for each in Consistency)

    assert (strong, transactional) == (2 * eventual, 4 * eventual)


@given(SIZES, SIZES)
def test_units_never_fall_as_items_grow(one: int, other: int) -> None:
    small, large = sorted((one, other))

    assert read_units(small) <= read_units(large)
    assert write_units(small) <= write_units(large)


@given(st.lists(SIZES, min_size=1, max_size=25))
def test_a_query_never_costs_more_than_a_batch_of_the_same_items(sizes: list[int]) -> None:
    assert query_units(sum(sizes)) <= batch_read_units(sizes)


@given(SIZES, SIZES)
def test_a_changed_index_key_costs_a_delete_and_a_put(old: int, new: int) -> None:
    assert index_write_units(new, before=old, key_changes=True) == write_units(old) + write_units(new)
