"""Attributes that the layer stores beside the fields of an entity: what is wrong with them, and what they say."""

from typing import Any

import pytest

from dynashard import Shards, definition
from dynashard.entity import expiry, marked_count, marker_problem
from dynashard.entity.judging import system_problem
from dynashard.schema import EXPIRES_AT, MAX_SHARDS, MOVED_TO, PK, REV, SK, TYPE
from tests.declaring import declare

pytestmark = pytest.mark.unit

NAME = "thing.v1.Thing"


@pytest.mark.parametrize(
    "wire",
    [
        {},
        {TYPE: {"S": NAME}},
        {TYPE: {"S": NAME}, REV: {"S": "r1"}, EXPIRES_AT: {"N": "1800000000"}},
        {MOVED_TO: {"N": "0"}},
        {MOVED_TO: {"N": str(MAX_SHARDS)}},
    ],
)
def test_an_item_that_was_adopted_or_stored_by_the_layer_fits(wire: dict[str, Any]) -> None:
    assert system_problem(NAME, wire) is None


@pytest.mark.parametrize(
    ("wire", "problem"),
    [
        ({TYPE: {"S": "other.v1.Other"}}, "not thing.v1.Thing"),
        ({REV: {"N": "1"}}, "not a revision"),
        ({REV: {"S": ""}}, "not a revision"),
        ({EXPIRES_AT: {"S": "tomorrow"}}, "not a time in epoch seconds"),
        ({EXPIRES_AT: {"N": "soon"}}, "not a time in epoch seconds"),
        ({MOVED_TO: {"S": "8"}}, "not a number of shards"),
    ],
)
def test_what_does_not_fit_is_named(wire: dict[str, Any], problem: str) -> None:
    assert problem in (system_problem(NAME, wire) or "")


@pytest.mark.parametrize("text", ["-1", "1.5", str(MAX_SHARDS + 1), "00008", "1" * 5_000, "", 8, None])
def test_a_marker_that_names_no_count_of_shards_is_damaged(text: Any) -> None:
    wire = {MOVED_TO: {"N": text}}

    assert marked_count(wire) is None
    assert marker_problem(wire) is not None


def test_a_marker_names_a_count_of_shards() -> None:
    assert marked_count({MOVED_TO: {"N": "8"}}) == 8


def test_an_expiry_is_a_number_of_seconds() -> None:
    assert expiry({EXPIRES_AT: {"N": "1800000000"}}) == 1_800_000_000.0
    assert expiry({EXPIRES_AT: {"S": "1800000000"}}) is None
    assert expiry({EXPIRES_AT: {"N": "soon"}}) is None


@pytest.mark.parametrize(
    ("place", "sort", "fits"),
    [
        ("thing.v1.Thing:abc", "1", True),
        ("thing.v1.Thing:abc:0", "1", True),
        ("thing.v1.Thing:abc:15", "1", True),
        ("thing.v1.Thing:abc:x", "1", False),
        ("thing.v1.Thing:abc:", "1", False),
        ("thing.v1.Thing:abc_0", "1", False),
        ("thing.v1.Thing:ab:0", "1", False),
        ("thing.v1.Thing:abc:0", "2", False),
    ],
)
def test_an_item_fits_its_key_in_any_shard_or_none(place: str, sort: str, *, fits: bool) -> None:
    thing = definition(declare(shards=Shards(16)))

    problem = thing.misplaced({"tenant": "abc", "id": "1"}, {PK: {"S": place}, SK: {"S": sort}})

    assert problem == (None if fits else "its fields belong to the key thing.v1.Thing:abc 1")
