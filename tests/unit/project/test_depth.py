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

@pytest.mark.sampled(4)
@pytest.mark.parametrize("first", range(6))
@pytest.mark.parametrize("second", "abcd")
def test_grid(first, second): ...

@pytest.mark.sampled(9)
@pytest.mark.parametrize("value", [1])
def test_one_at_least(value): ...

@pytest.mark.deep
def test_long(): ...

def test_short(): ...
"""


def collected(folder: Path, profile: str, *named: str) -> list[str]:
    (folder / "conftest.py").write_text(
        "from tests.conftest import pytest_collection_modifyitems\n"
        "def pytest_configure(config):\n"
        "    for marker in ('deep', 'sampled(n)'):\n"
        "        config.addinivalue_line('markers', marker)\n"
    )
    (folder / "test_it.py").write_text(GRID)
    done = subprocess.run(  # noqa: S603 - our own tests
        [sys.executable, "-m", "pytest", "-q", "--collect-only", "-n0", "-p", "no:cacheprovider", *named],
        cwd=folder,
        env={**os.environ, VARIABLE: profile, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return [line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line]


def test_by_default_a_part_of_the_parameter_sets_runs_and_nothing_deep(tmp_path: Path) -> None:
    found = collected(tmp_path, "default")

    drawn = [each[len("test_grid[") : -1].split("-") for each in found if each.startswith("test_grid")]
    assert len(drawn) == 6
    assert len({second for second, _ in drawn}) > 1
    assert len({first for _, first in drawn}) > 1
    assert [each for each in found if not each.startswith("test_grid")] == ["test_one_at_least[1]", "test_short"]


@pytest.mark.deep
def test_the_deep_profile_and_named_tests_run_all_parameter_sets(tmp_path: Path) -> None:
    assert len(collected(tmp_path, "deep")) == 24 + 3
    assert collected(tmp_path, "default", "test_it.py::test_long") == ["test_long"]


def test_every_test_takes_its_number_of_examples_from_the_profile() -> None:
    tests = Path(__file__).parents[2]
    literal = re.compile(r"max_examples=\d")

    found = [str(path) for path in sorted(tests.rglob("*.py")) if literal.search(path.read_text())]

    assert found == [], "Write max_examples=examples(N), with N for the profile `deep`: see tests/depth.py."
