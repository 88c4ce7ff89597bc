"""The consumed capacity in answers, and the meters that add it up."""

from typing import Any

import pytest

from dynashard.transport.interface import Consumed, consumed_of, metered, meters

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("operation", "capacity", "expected"),
    [
        ("GetItem", {"CapacityUnits": 0.5}, Consumed(0.5, 0.0, 1)),
        ("Query", {"CapacityUnits": 12.5}, Consumed(12.5, 0.0, 1)),
        ("PutItem", {"CapacityUnits": 3.0}, Consumed(0.0, 3.0, 1)),
        ("BatchGetItem", [{"CapacityUnits": 2.0}, {"CapacityUnits": 1.5}], Consumed(3.5, 0.0, 1)),
        ("BatchWriteItem", [{"CapacityUnits": 25.0}], Consumed(0.0, 25.0, 1)),
        ("TransactGetItems", [{"CapacityUnits": 4.0, "ReadCapacityUnits": 4.0}], Consumed(4.0, 0.0, 1)),
        ("TransactWriteItems", [{"CapacityUnits": 4.0, "WriteCapacityUnits": 4.0}], Consumed(0.0, 4.0, 1)),
        (
            "TransactWriteItems",
            [{"CapacityUnits": 6.0, "WriteCapacityUnits": 4.0, "ReadCapacityUnits": 2.0}],
            Consumed(2.0, 4.0, 1),
        ),
        ("GetItem", None, Consumed(0.0, 0.0, 1)),
    ],
)
def test_units_go_to_reading_or_writing_by_operation(operation: str, capacity: Any, expected: Consumed) -> None:
    answer = {} if capacity is None else {"ConsumedCapacity": capacity}

    assert consumed_of(operation, answer) == expected


def test_meters_nest_and_the_outer_one_counts_what_the_inner_one_does() -> None:
    with metered() as outer:
        with metered() as inner:
            for meter in meters():
                meter.record("Query", Consumed(1.5, 0.0, 1))
        for meter in meters():
            meter.throttled("TableReadKeyRangeThroughputExceeded")

    assert meters() == ()
    assert (inner.consumed, inner.queries, inner.throttles) == (Consumed(1.5, 0.0, 1), 1, {})
    assert outer.consumed == Consumed(1.5, 0.0, 1)
    assert outer.throttles == {"TableReadKeyRangeThroughputExceeded": 1}
