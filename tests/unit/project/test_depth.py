"""One setting chooses the number of examples of tests."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from tests.depth import VARIABLE, examples, load_profile

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(("deep", "default"), [(480, 20), (240, 10), (8, 5), (5, 5), (2, 2)])
def test_the_profile_decides(monkeypatch: pytest.MonkeyPatch, deep: int, default: int) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert examples(deep) == default

    monkeypatch.setenv(VARIABLE, "deep")
    assert examples(deep) == deep


def test_a_test_may_need_fewer_examples_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert examples(20_000, default=150) == 150

    monkeypatch.setenv(VARIABLE, "deep")
    assert examples(20_000, default=150) == 20_000


def test_a_profile_that_is_not_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "shallow")

    with pytest.raises(ValueError, match="TEST_PROFILE is 'shallow'; it must be default or deep"):
        load_profile()


def test_by_default_each_run_draws_the_same_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    try:
        load_profile()
        assert (settings().derandomize, settings().max_examples, settings().deadline) == (True, 5, None)
        assert len(providers.HypothesisProvider(None)._local_constants) == 0
        monkeypatch.setenv(VARIABLE, "deep")
        load_profile()
        assert (settings().derandomize, settings().max_examples, settings().deadline) == (False, 100, None)
        assert len(providers.HypothesisProvider(None)._local_constants) > 0
    finally:
        monkeypatch.undo()
        load_profile()


GRID = """
import pytest

@pytest.fixture(params=["sync", "async"])
def face(request): ...

@pytest.mark.sampled(3)
@pytest.mark.parametrize("first", range(6))
@pytest.mark.parametrize("second", "abcd")
def test_grid(first, second): ...

@pytest.mark.sampled(24)
@pytest.mark.parametrize(("second", "alike"), ["ax", "bx", "cy", "dy"])
@pytest.mark.parametrize("first", range(6))
@pytest.mark.parametrize("only", [0])
def test_cover(only, first, second, alike): ...

@pytest.mark.sampled(4)
@pytest.mark.parametrize("value", range(8))
def test_row(face, value): ...

@pytest.mark.one_face
@pytest.mark.parametrize("first", range(6))
@pytest.mark.parametrize("second", "abcd")
def test_faces(face, first, second): ...

@pytest.mark.sampled(2)
@pytest.mark.one_face
@pytest.mark.parametrize("value", range(8))
def test_both_marks(face, value): ...

@pytest.mark.sampled(12, separator=" ")
@pytest.mark.parametrize("value", [f"{first} {second}" for first in range(6) for second in "abcd"])
def test_pairs(value): ...

@pytest.mark.sampled(9)
@pytest.mark.parametrize("value", [1])
def test_one_at_least(value): ...

@pytest.mark.deep
def test_long(): ...

def test_short(): ...
"""


def collected(folder: Path, profile: str, *named: str, ci: str = "") -> list[str]:
    (folder / "conftest.py").write_text(
        "from tests.conftest import pytest_collection_modifyitems\n"
        "def pytest_configure(config):\n"
        "    for marker in ('deep', 'sampled(n)', 'one_face'):\n"
        "        config.addinivalue_line('markers', marker)\n"
    )
    (folder / "test_it.py").write_text(GRID)
    done = subprocess.run(  # noqa: S603 - our own tests
        [sys.executable, "-m", "pytest", "-q", "--collect-only", "-n0", "-p", "no:cacheprovider", *named],
        cwd=folder,
        env={**os.environ, VARIABLE: profile, "CI": ci, "PYTEST_ADDOPTS": "", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return [line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line]


@pytest.fixture(scope="module")
def by_default(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return collected(tmp_path_factory.mktemp("grid"), "default")


def parameters(found: list[str], test: str) -> list[list[str]]:
    """Return the values of each parameter set of a test that runs."""
    return [each[len(test) + 1 : -1].split("-") for each in found if each.startswith(f"{test}[")]


def test_by_default_a_part_of_the_parameter_sets_runs_and_nothing_deep(by_default: list[str]) -> None:
    assert len(parameters(by_default, "test_grid")) == 8
    assert parameters(by_default, "test_one_at_least") == [["1"]]
    assert [each for each in by_default if "[" not in each] == ["test_short"]


def test_each_value_of_a_grid_runs_and_no_more_parameter_sets_than_that_needs(by_default: list[str]) -> None:
    for test, first, second, sets in (("test_grid", 1, 0, 8), ("test_cover", 1, 2, 6)):
        drawn = parameters(by_default, test)

        assert len(drawn) == sets
        assert {each[first] for each in drawn} == set("012345")
        assert {each[second] for each in drawn} >= (set("abcd") if test == "test_grid" else set())


def test_an_id_may_have_several_values(by_default: list[str]) -> None:
    drawn = [each.split() for [each] in parameters(by_default, "test_pairs")]

    assert len(drawn) == 6
    assert ({first for first, _ in drawn}, {second for _, second in drawn}) == (set("012345"), set("abcd"))


def test_one_dimension_is_not_covered_by_default_even_if_it_runs_under_both_faces(by_default: list[str]) -> None:
    drawn = parameters(by_default, "test_row")

    assert len(drawn) == 4
    assert len({value for _, value in drawn}) == 4
    assert {face for face, _ in drawn} == {"sync", "async"}


def test_each_parameter_set_runs_under_one_face(by_default: list[str]) -> None:
    drawn = parameters(by_default, "test_faces")

    assert len(drawn) == len({(second, first) for _, second, first in drawn}) == 24
    assert {face for face, _, _ in drawn} == {"sync", "async"}
    assert len(parameters(by_default, "test_both_marks")) == 4


def test_ci_runs_each_parameter_set_under_both_faces(tmp_path: Path) -> None:
    assert len(parameters(collected(tmp_path, "default", ci="1"), "test_faces")) == 48


@pytest.mark.deep
def test_the_deep_profile_and_named_tests_run_all_parameter_sets(tmp_path: Path) -> None:
    assert len(collected(tmp_path, "deep")) == 24 + 24 + 16 + 48 + 16 + 24 + 3
    assert collected(tmp_path, "default", "test_it.py::test_long") == ["test_long"]


def test_every_test_takes_its_number_of_examples_from_the_profile() -> None:
    tests = Path(__file__).parents[2]
    literal = re.compile(r"max_examples=\d")

    found = [str(path) for path in sorted(tests.rglob("*.py")) if literal.search(path.read_text())]

    assert found == [], "Write max_examples=examples(N), with N for the profile `deep`: see tests/depth.py."
