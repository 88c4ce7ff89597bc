"""Revisions differ between all writes, and are texts that fit into URLs and headers."""

import re

import pytest

from dynashard.repository.store import random_revisions

pytestmark = pytest.mark.unit


def test_no_two_revisions_are_the_same() -> None:
    made = [each for count in (1, 25, 400) for each in random_revisions(count)]

    assert len(set(made)) == 1 + 25 + 400
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{16}", each) for each in made)


def test_none_are_made_for_no_writes() -> None:
    assert random_revisions(0) == []
