"""The limits of JSON input, which apply before the document is built."""

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynashard.errors import RequestTooLargeError
from dynashard_serving import json_input
from dynashard_serving.json_input import MalformedJsonError, check_values, plain_numbers, read_json
from dynashard_serving.limits import MAX_DEPTH, MAX_DIGITS, MAX_NAME_LENGTH, MAX_VALUES

pytestmark = pytest.mark.unit

MEGABYTE = 1_000_000
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(alphabet='a,[]{}"\\: \n'),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(alphabet='a,[{"\\', max_size=5), inner),
    max_leaves=30,
)


def counted(value: Any) -> int:
    """Return how many values a document has, including itself."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(counted(each) for each in inner)


@given(VALUES, st.sampled_from([-1, 0, 1]), st.sampled_from([None, 1]))
def test_a_document_is_refused_from_one_value_over_the_bound(value: Any, room: int, indent: int | None) -> None:
    raw = json.dumps(value, indent=indent).encode()
    most = max(1, counted(value) + room)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_input, "MAX_VALUES", most)
        if counted(value) > most:
            with pytest.raises(RequestTooLargeError):
                read_json(raw)
            with pytest.raises(RequestTooLargeError):
                check_values(value, depth=MAX_DEPTH)
        else:
            assert read_json(raw) == value
            check_values(value, depth=MAX_DEPTH)


@pytest.mark.parametrize(
    ("piece", "error"),
    [
        (b"[],", RequestTooLargeError),
        (b"{},", RequestTooLargeError),
        (b"1,", RequestTooLargeError),
        (b'"a",', RequestTooLargeError),
        (b"[" * 29 + b"]" * 29 + b",", RequestTooLargeError),
        (b"[ ]", RequestTooLargeError),
        (b'"a"', MalformedJsonError),
        (b'"\\""', MalformedJsonError),
        (b"[[", RequestTooLargeError),
    ],
    ids=["lists", "objects", "numbers", "texts", "nested", "lists without commas", "texts alone", "escapes", "open"],
)
def test_a_document_with_too_many_values_is_refused_before_it_is_built(
    monkeypatch: pytest.MonkeyPatch, piece: bytes, error: type[Exception]
) -> None:
    monkeypatch.setattr(json_input, "MAX_VALUES", 20_000)
    raw = b"[" + piece * (MEGABYTE // len(piece)) + b"1]"
    tracemalloc.start()
    try:
        with pytest.raises(error):
            read_json(raw)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    # It only keeps the text without escapes and one token. 1 MB of lists would become 24 MB.
    assert peak < 3 * len(raw)


@pytest.mark.parametrize("text", ["," * MEGABYTE, '"[{,' * MEGABYTE, "\\" * MEGABYTE, "\\\"'," * 100_000])
def test_a_long_text_is_one_value(text: str) -> None:
    assert read_json(json.dumps([text]).encode()) == [text]


def test_names_of_one_object_are_compared_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    class Name(str):
        """A name that counts its comparisons."""

        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            compared.append(other)
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    names = [Name(f"n{number}") for number in range(5000)]
    monkeypatch.setattr(json, "loads", lambda _, **hooks: hooks["object_pairs_hook"]([(n, 1) for n in names]))
    names.append(Name("n4999"))

    with pytest.raises(MalformedJsonError, match="'n4999' appears twice"):
        read_json(b"{}")

    assert len(compared) < 3 * len(names)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b'{"' + b"n" * (MAX_NAME_LENGTH + 1) + b'": 1}', "has 1025 characters"),
        (b"[1." + b"0" * MAX_DIGITS + b"]", "digits"),
        (b"[" + b"1" * (MAX_DIGITS + 1) + b"]", "digits"),
        (b"[1e999999]", "too large"),
    ],
    ids=["name", "fraction", "integer", "exponent"],
)
def test_long_names_and_numbers_are_refused(raw: bytes, reason: str) -> None:
    with pytest.raises(MalformedJsonError, match=reason) as refused:
        read_json(raw)

    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"x": 10 ** (MAX_DIGITS + 100)}, "digits"),
        ({"x": {"n" * 2000: 1}}, "characters"),
    ],
    ids=["digits", "name"],
)
def test_parsed_events_have_the_same_bounds(event: Any, reason: str) -> None:
    with pytest.raises(MalformedJsonError, match=reason):
        check_values(event, depth=MAX_DEPTH)


def test_an_integer_with_the_most_digits_is_accepted() -> None:
    document = [10**MAX_DIGITS - 1]

    assert read_json(json.dumps(document).encode()) == document
    check_values([10**MAX_DIGITS - 1], depth=MAX_DEPTH)


NUMBERS = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)


@given(st.recursive(NUMBERS | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_that_was_parsed_elsewhere_has_the_same_numbers(document: Any) -> None:
    text = json.dumps(document)

    found, read = plain_numbers(json.loads(text)), read_json(text.encode())

    # 5 and 5.0 are equal, but their texts differ.
    assert json.dumps(found) == json.dumps(read)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_does_not_have_are_refused_there_too(number: float) -> None:
    with pytest.raises(MalformedJsonError, match="is not a JSON number"):
        plain_numbers({"numbers": [1, number]})


def test_counting_ends_at_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_input, "MAX_VALUES", 10)
    seen: list[Any] = []

    class Watched(list[Any]):
        """A list that records its reads."""

        def __iter__(self) -> Any:
            seen.append(self)
            return super().__iter__()

    with pytest.raises(RequestTooLargeError):
        check_values([Watched([1] * 5), Watched([1] * 9), Watched([1] * 9)], depth=MAX_DEPTH)

    assert len(seen) == 1
    assert MAX_VALUES == 200_000
