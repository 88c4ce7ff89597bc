"""The stored form of values, and the values that are read back."""

from collections import OrderedDict, defaultdict
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynashard.codec import decode_value, encode_value, register_encoder
from dynashard.errors import ConfigurationError, UndecodableItemError
from tests.storable_values import floats, names, values

pytestmark = pytest.mark.unit


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Status(StrEnum):
    ACTIVE = "active"


class OldLevel(int, Enum):
    LOW = 1


class Point(NamedTuple):
    x: int
    y: int


class Tag(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "not what is held"


class Loud(int):
    def __repr__(self) -> str:
        return "not what is held"


class LoudFloat(float):
    __slots__ = ()

    def __repr__(self) -> str:
        return "not what is held"


@pytest.mark.parametrize(
    ("value", "wire"),
    [
        ("", {"S": ""}),
        ("é\U0001f600", {"S": "é\U0001f600"}),
        (0, {"N": "0"}),
        (-12, {"N": "-12"}),
        (10**38 - 1, {"N": "9" * 38}),
        (10**125, {"N": "1" + "0" * 125}),
        (1.5, {"N": "1.5"}),
        (0.1, {"N": "0.1"}),
        (1e22, {"N": "1e+22"}),
        (-0.0, {"N": "0"}),
        (Decimal("1.50"), {"N": "1.5"}),
        (Decimal("-0.000"), {"N": "0"}),
        (Decimal("1E-130"), {"N": "0." + "0" * 129 + "1"}),
        (Decimal("9" * 38 + "E88"), {"N": "9" * 38 + "0" * 88}),
        (Decimal("1." + "0" * 60), {"N": "1"}),
        (Decimal("-12" + "0" * 50), {"N": "-12" + "0" * 50}),
        (True, {"BOOL": True}),
        (None, {"NULL": True}),
        (b"hi", {"B": "aGk="}),
        (bytearray(b"hi"), {"B": "aGk="}),
        (memoryview(b"h.i.")[::2], {"B": "aGk="}),
        ([1, "a"], {"L": [{"N": "1"}, {"S": "a"}]}),
        ((), {"L": []}),
        (Point(1, 2), {"L": [{"N": "1"}, {"N": "2"}]}),
        ({"a": {"b": None}}, {"M": {"a": {"M": {"b": {"NULL": True}}}}}),
        (OrderedDict(a=1), {"M": {"a": {"N": "1"}}}),
        (defaultdict(int, a=1), {"M": {"a": {"N": "1"}}}),
        ({Status.ACTIVE: 1}, {"M": {"active": {"N": "1"}}}),
        ({Tag("a"): 1}, {"M": {"a": {"N": "1"}}}),
        ({"é": 1}, {"M": {"é": {"N": "1"}}}),
        ({"b", "a"}, {"SS": ["a", "b"]}),
        (frozenset([2, 1, Decimal("1.5")]), {"NS": ["1", "1.5", "2"]}),
        ({b"hi"}, {"BS": ["aGk="]}),
        ({Colour.RED}, {"SS": ["red"]}),
        (Colour.RED, {"S": "red"}),
        (Level.HIGH, {"N": "3"}),
        (OldLevel.LOW, {"N": "1"}),
        (Status.ACTIVE, {"S": "active"}),
        (Tag("held"), {"S": "held"}),
        (Loud(7), {"N": "7"}),
        (LoudFloat(7.5), {"N": "7.5"}),
        (datetime(2021, 2, 24, 19, 28, 41, tzinfo=UTC), {"S": "2021-02-24T19:28:41.000000Z"}),
        (
            datetime(2021, 2, 24, 19, 28, 41, 5, tzinfo=timezone(timedelta(hours=2))),
            {"S": "2021-02-24T17:28:41.000005Z"},
        ),
        (date(2021, 2, 24), {"S": "2021-02-24"}),
        (time(9, 30), {"S": "09:30:00.000000"}),
        (timedelta(0), {"N": "0"}),
        (timedelta(days=1, seconds=1), {"N": "86401"}),
        (timedelta(microseconds=-1), {"N": "-0.000001"}),
        (timedelta.max, {"N": "86399999999999.999999"}),
        (UUID(int=1), {"S": "00000000-0000-0000-0000-000000000001"}),
    ],
)
def test_a_value_is_stored_in_its_documented_form(value: object, wire: dict[str, Any]) -> None:
    assert encode_value(value) == wire


def test_text_of_a_subclass_is_stored_as_plain_text() -> None:
    assert type(encode_value(Tag("held"))["S"]) is str


@given(values)
def test_every_storable_value_comes_back_equal_and_of_the_same_kind(value: object) -> None:
    wire = encode_value(value)

    decoded = decode_value(wire)

    assert decoded == value
    assert encode_value(decoded) == wire  # True equals 1 in Python, so a cache could confuse them


@given(st.dictionaries(names, values))
def test_an_item_comes_back_with_the_same_names_and_values(item: dict[str, object]) -> None:
    assert decode_value(encode_value(item)) == item


@given(floats)
def test_every_float_in_range_comes_back_as_the_same_float(value: float) -> None:
    assert float(decode_value(encode_value(value))) == value


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("-12", -12),
        ("1" + "0" * 125, 10**125),
        ("1.5", Decimal("1.5")),
        ("1E3", 1000),
        ("-7.00", -7),
        ("-0.0", 0),
        ("15E-1", Decimal("1.5")),
    ],
)
def test_a_whole_number_is_an_int_and_any_other_a_decimal(text: str, number: int | Decimal) -> None:
    decoded = decode_value({"N": text})

    assert decoded == number
    assert type(decoded) is type(number)
    assert str(decoded) == str(number)


@pytest.mark.parametrize(
    ("strategy", "order"),
    [
        (st.datetimes(timezones=st.just(UTC)), lambda value: value),
        (st.dates(), lambda value: value),
        (st.times(), lambda value: value),
        (st.uuids(), lambda value: value.int),
    ],
)
def test_the_order_of_the_stored_text_is_the_order_of_the_values(
    strategy: st.SearchStrategy[Any], order: Callable[[Any], Any]
) -> None:
    @given(strategy, strategy)
    def check(one: Any, other: Any) -> None:
        assert (encode_value(one)["S"] < encode_value(other)["S"]) == (order(one) < order(other))

    check()


@given(st.timedeltas())
def test_a_duration_is_its_seconds_exact_to_the_microsecond(value: timedelta) -> None:
    seconds = Decimal(decode_value(encode_value(value)))

    assert seconds * 1_000_000 == value // timedelta(microseconds=1)


def test_equal_sets_make_equal_requests_in_any_iteration_order() -> None:
    members = [f"member {number}" for number in range(50)]

    assert encode_value(set(members)) == {"SS": sorted(members)}


def test_a_registered_type_and_its_subclasses_are_stored_as_their_encoder_returns() -> None:
    class Money:
        def __init__(self, amount: Decimal, currency: str) -> None:
            self.amount = amount
            self.currency = currency

    class Price(Money):
        pass

    register_encoder(Money, lambda money: {"amount": money.amount, "currency": money.currency})

    stored = encode_value([Money(Decimal("1.5"), "EUR"), Price(Decimal(2), "CHF")])

    assert decode_value(stored) == [
        {"amount": Decimal("1.5"), "currency": "EUR"},
        {"amount": 2, "currency": "CHF"},
    ]


def test_an_encoder_applies_to_a_subclass_that_was_stored_before() -> None:
    class Words(list[str]):
        pass

    before = encode_value(Words(["a", "b"]))
    register_encoder(Words, " ".join)

    assert before == {"L": [{"S": "a"}, {"S": "b"}]}
    assert encode_value(Words(["a", "b"])) == {"S": "a b"}


@pytest.mark.parametrize("kind", [str, datetime, dict, object])
def test_the_stored_form_of_a_built_in_type_cannot_be_changed(kind: type) -> None:
    with pytest.raises(ConfigurationError, match="fixed"):
        register_encoder(kind, repr)


@pytest.mark.parametrize(
    "attribute",
    [{}, {"X": "a"}, {"N": "many"}, {"L": [{"X": 1}]}, {"M": {"a": {}}}, {"B": "a"}, {"L": None}],
)
def test_invalid_dynamodb_json_is_not_decoded(attribute: dict[str, Any]) -> None:
    with pytest.raises(UndecodableItemError):
        decode_value(attribute)
    with pytest.raises(UndecodableItemError):
        decode_value({"M": {"field": attribute}})
