"""Values that cannot be stored exactly are refused with their place in the item and a remedy."""

from datetime import UTC, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any

import orjson
import pytest

from dynashard.codec import encode_value, register_encoder
from dynashard.errors import InvalidValueError

pytestmark = pytest.mark.unit


class Colour(Enum):
    RED = "red"


def nested(levels: int, value: object) -> object:
    for level in range(levels):
        value = [value] if level % 2 else {"inner": value}
    return value


def endless() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


REFUSED: list[tuple[object, str]] = [
    (float("nan"), "finite"),
    (float("inf"), "finite"),
    (float("-inf"), "finite"),
    (Decimal("NaN"), "finite"),
    (Decimal("-Infinity"), "finite"),
    (1e126, "out of range"),
    (-1e300, "out of range"),
    (1e-131, "out of range"),
    (-5e-324, "out of range"),
    (Decimal("1E126"), "out of range"),
    (Decimal("9.9E-131"), "out of range"),
    (10**126, "too large"),
    (10**10_000, "too large"),
    (10**38 + 1, "39 significant digits"),
    (Decimal("1." + "0" * 37 + "1"), "39 significant digits"),
    (Decimal("1" * 5000 + "E-4950"), "5000 significant digits"),
    ("broken \ud800 pair", "surrogate pair at position 7"),
    (set(), "an empty set"),
    (frozenset(), "an empty set"),
    ({1, "a"}, "all text, all numbers or all binary"),
    ({True}, "use a list"),
    ({None}, "use a list"),
    ({(1, 2)}, "use a list"),
    ({0.1, Decimal("0.1")}, "equal once stored"),
    ({Colour.RED, "red"}, "equal once stored"),
    (datetime(2021, 2, 24, 19, 28), "no time zone"),  # noqa: DTZ001 - the point of the test
    (datetime.min.replace(tzinfo=timezone(timedelta(hours=1))), "years 1 to 9999"),
    (time(9, 30, tzinfo=UTC), "without"),
    ({1: "a"}, "keys of a map are text, not int"),
    ({None: "a"}, "keys of a map are text, not NoneType"),
    ({"": "a"}, "1 to 65535 bytes"),
    ({"n" * 65536: "a"}, "1 to 65535 bytes"),
    ({"é" * 32768: "a"}, "1 to 65535 bytes"),
    ({"red": 1, Colour.RED: 2}, "same text once stored"),
    ({Colour.RED: 2, "red": 1}, "same text once stored"),
    ({"\udfff": "a"}, "surrogate pair"),
    (object(), "builtins.object cannot be stored"),
    (1j, "builtins.complex cannot be stored"),
    (nested(32, "deep"), "32 levels"),
    (endless(), "32 levels"),
]


@pytest.mark.parametrize(
    ("value", "reason"), REFUSED, ids=[f"{index}-{reason}" for index, (_, reason) in enumerate(REFUSED)]
)
def test_a_value_that_cannot_be_stored_exactly_is_refused(value: object, reason: str) -> None:
    with pytest.raises(InvalidValueError, match=reason):
        encode_value(value)


@pytest.mark.parametrize("innermost", ["deep", [], {}, {1}, None])
def test_a_value_may_stand_in_31_lists_and_maps(innermost: object) -> None:
    assert encode_value(nested(31, innermost))
    with pytest.raises(InvalidValueError):
        encode_value(nested(32, innermost))


@pytest.mark.parametrize(
    ("item", "field"),
    [
        ({"score": float("nan")}, "score"),
        ({"address": {"lines": ["a", "b", float("nan")]}}, "address.lines[2]"),
        ({"matrix": [[0], [0, float("nan")]]}, "matrix[1][1]"),
        ({"ok": 1, "tags": {"a", 1}}, "tags"),
        ({"colours": {Colour.RED: [set()]}}, "colours.red[0]"),
        ({"map": {"a": 1, 7: 2}}, "map.7"),
    ],
)
def test_a_refusal_names_the_place_of_the_value(item: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidValueError) as refused:
        encode_value(item)

    assert refused.value.field == field
    assert str(refused.value).startswith(f"{field}: ")


def test_a_refusal_of_a_single_value_starts_with_the_given_path() -> None:
    with pytest.raises(InvalidValueError) as refused:
        encode_value(["a", float("nan")], path="address.lines")

    assert refused.value.field == "address.lines[1]"


def test_a_refusal_of_a_single_value_without_a_path_names_no_field() -> None:
    with pytest.raises(InvalidValueError) as refused:
        encode_value(float("nan"))

    assert refused.value.field is None
    assert refused.value.details == {}


@pytest.mark.parametrize("name", ["plain", "n" * 60_000, "\udfff", "é\ud800" * 1000])
@pytest.mark.parametrize("value", [float("nan"), "\udc80", Decimal("1" * 4000)], ids=["nan", "text", "digits"])
def test_a_refusal_is_short_and_valid_json(name: str, value: object) -> None:
    with pytest.raises(InvalidValueError) as refused:
        encode_value({"field": {name: value}})

    answer = orjson.dumps({"detail": str(refused.value), **refused.value.details})

    assert len(answer) < 1200


def test_an_encoder_that_returns_its_own_type_is_refused() -> None:
    class Same:
        pass

    register_encoder(Same, lambda same: same)

    with pytest.raises(InvalidValueError, match="returns a"):
        encode_value(Same())
