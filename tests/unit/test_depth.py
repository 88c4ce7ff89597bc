"""One setting chooses how many examples the tests take."""

import re
from pathlib import Path

import pytest
from hypothesis import settings

from tests.depth import VARIABLE, examples, load_profile

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("deep", "default"), [(400, 100), (60, 15), (8, 5), (5, 5), (2, 2)])
def test_the_profile_decides(monkeypatch: pytest.MonkeyPatch, deep: int, default: int) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert examples(deep) == default

    monkeypatch.setenv(VARIABLE, "deep")
    assert examples(deep) == deep


def test_a_profile_that_is_not_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "shallow")

    with pytest.raises(ValueError, match="TEST_PROFILE is 'shallow'; it must be default or deep"):
        load_profile()


def test_by_default_each_run_draws_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    try:
        load_profile()
        assert (settings().derandomize, settings().max_examples, settings().deadline) == (True, 25, None)
        monkeypatch.setenv(VARIABLE, "deep")
        load_profile()
        assert (settings().derandomize, settings().max_examples, settings().deadline) == (False, 100, None)
    finally:
        monkeypatch.undo()
        load_profile()


def test_every_test_takes_its_number_of_examples_from_the_profile() -> None:
    tests = Path(__file__).parents[1]
    literal = re.compile(r"max_examples=\d")

    found = [str(path) for path in sorted(tests.rglob("*.py")) if literal.search(path.read_text())]

    assert found == [], "Write max_examples=examples(N), with N for the profile `deep`: see tests/depth.py."
