"""The check of listings against the answers of single operations."""

from math import inf

import pytest

from dynashard_checks.linearizability.listings import Listing, misses_and_doubles
from dynashard_checks.linearizability.model import Answer, Kind, Operation, Seen, State

pytestmark = pytest.mark.unit

OK, UNKNOWN = Answer.OK, Answer.UNKNOWN
CREATED = Operation(Kind.CREATE, 0, 1, OK, version="a")
READ = Operation(Kind.GET, 4, 5, OK, seen=Seen(State("b")))
LISTING = Listing(10, 20, ())


def _wrong(*operations: Operation, keys: tuple[str, ...] = ()) -> list[str]:
    return misses_and_doubles({"k": operations}, Listing(10, 20, keys, "the listing"))


def test_a_missing_key_that_was_live_throughout_is_reported() -> None:
    assert _wrong(CREATED) != []
    assert _wrong(READ) != []
    assert _wrong(CREATED, keys=("k",)) == []


def test_a_repeated_key_is_reported() -> None:
    assert _wrong(CREATED, keys=("k", "k")) == ["the listing has k 2 times"]


def test_a_key_that_no_client_wrote_is_reported() -> None:
    assert _wrong(CREATED, keys=("k", "x")) == ["the listing has x, which no client wrote"]


@pytest.mark.parametrize(
    "delete",
    [
        Operation(Kind.DELETE, 12, 13, OK),
        Operation(Kind.DELETE, 2, 3, OK),
        Operation(Kind.DELETE, 0.5, inf, UNKNOWN),
        Operation(Kind.DELETE, 15, inf, UNKNOWN),
        Operation(Kind.DELETE, 2, inf, UNKNOWN, expected="a"),
    ],
)
def test_a_key_that_may_have_been_deleted_may_be_missing(delete: Operation) -> None:
    assert _wrong(CREATED, delete) == []


@pytest.mark.parametrize(
    "delete",
    [
        Operation(Kind.DELETE, 21, 22, OK),
        Operation(Kind.DELETE, -3, -2, OK),
        Operation(Kind.DELETE, 2, inf, Answer.MISSING),
        Operation(Kind.DELETE, 2, inf, UNKNOWN, expected="a"),
    ],
)
def test_a_delete_without_effect_does_not_explain_a_missing_key(delete: Operation) -> None:
    assert _wrong(CREATED, READ, delete) != []


def test_a_key_that_is_created_during_the_listing_may_be_missing() -> None:
    assert _wrong(Operation(Kind.CREATE, 9, 11, OK, version="a")) == []


def test_a_create_of_unknown_outcome_proves_nothing() -> None:
    assert _wrong(Operation(Kind.CREATE, 0, inf, UNKNOWN, version="a")) == []
