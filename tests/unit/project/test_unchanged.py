"""The tests of the laboratory and of the checks are left out only while nothing that they reach has changed."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.depth import VARIABLE
from tests.reached import Checkout

pytestmark = pytest.mark.unit

PLAN = "tests/unit/lab/test_plan.py"
FILES = {
    PLAN: "def test_a():\n    return\n    from tried_lab.plan import planned\n\ndef test_b():\n    pass\n",
    "tests/unit/keys/test_keys.py": "def test_it():\n    pass\n",
    "packages/lab/tried_lab/__init__.py": "",
    "packages/lab/tried_lab/plan.py": "import tried.placement\nfrom tried_lab.named import NAMED\n",
    "packages/lab/tried_lab/named.py": 'NAMED = "tried_tools.cli:main", "users.csv", "examples/stored"\n',
    "packages/lab/tried_lab/prices.json": "{}",
    "layers/sharding/python/tried/__init__.py": "from importlib import import_module\n",
    "layers/sharding/python/tried/placement.py": "SHARDS = 1\n",
    "layers/sharding/python/tried/reads/pages.py": "",
    "packages/tools/tried_tools/cli.py": "def main(): ...\n",
    "packages/local/tried_local/server.py": "",
    "examples/users.csv": "id\n",
    "examples/stored/rows": "",
    "docs/index.md": "# Docs\n",
    "requirements/dev.txt": "pytest\n",
    "conftest.py": "from tests.unchanged import Unchanged\n\n"
    "def pytest_configure(config):\n    config.pluginmanager.register(Unchanged(config))\n",
}
"""A checkout with a test module of the laboratory, all that it reaches, and the little that it does not."""
UNREACHED = ("tests/unit/keys/test_keys.py", "packages/local/tried_local/server.py", "docs/index.md", "conftest.py")
ALONE = ["-pno:xdist", "-pno:cacheprovider", "-pno:hypothesispytest", "-pno:schemathesis"]

Run = Callable[..., str]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        write(tmp_path / name, text)
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)  # noqa: S607
    return tmp_path


def write(file: Path, text: str) -> None:
    """Write a file that is older than any run."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    os.utime(file, (1, 1))


@pytest.fixture
def run(checkout: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Run the checkout's tests in this process, and return what pytest prints."""
    monkeypatch.chdir(checkout)
    for name in ("CI", VARIABLE, "PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)

    def ran(*arguments: str) -> str:
        pytest.main([*ALONE, "--import-mode=importlib", f"--rootdir={checkout}", *(arguments or ["tests"])])
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", "")).startswith(str(checkout)):
                del sys.modules[name]
        return capfd.readouterr().out

    return ran


def test_tests_of_what_has_not_changed_are_left_out_and_the_run_says_so(run: Run) -> None:
    assert "3 passed" in run()

    printed = run()

    assert "1 passed, 2 deselected" in printed
    assert "laboratory and checks: 2 tests in 1 modules did not run" in printed


@pytest.mark.parametrize("name", [name for name in FILES if name not in UNREACHED])
def test_what_is_reached_by_import_or_by_name_must_not_change(checkout: Path, name: str) -> None:
    record = Checkout(checkout).record(PLAN)

    write(checkout / name, FILES[name] + "\n")

    assert not Checkout(checkout).unchanged(record)


@pytest.mark.parametrize("name", ["layers/sharding/python/tried/writes.py", "packages/lab/tried_lab/regions.json"])
def test_no_file_may_be_added_beside_what_is_reached(checkout: Path, name: str) -> None:
    record = Checkout(checkout).record(PLAN)

    write(checkout / name, "")

    assert not Checkout(checkout).unchanged(record)


@pytest.mark.parametrize("name", [*UNREACHED, "packages/local/tried_local/started.py"])
def test_anything_else_may_change(checkout: Path, name: str) -> None:
    record = Checkout(checkout).record(PLAN)

    write(checkout / name, "1\n")

    assert Checkout(checkout).unchanged(record)


def test_a_module_that_has_changed_runs(run: Run, checkout: Path) -> None:
    run()

    write(checkout / PLAN, FILES[PLAN] + "\n")

    assert "3 passed" in run()


@pytest.mark.parametrize("variable", ["CI", VARIABLE])
def test_ci_and_the_deep_profile_leave_nothing_out(run: Run, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    run()

    monkeypatch.setenv(variable, "deep")

    assert "3 passed" in run()


@pytest.mark.parametrize("named", [PLAN, f"{PLAN}::test_a", "tests/unit/lab"])
def test_a_run_that_names_them_runs_them(run: Run, named: str) -> None:
    run()

    assert "deselected" not in run("tests/unit/keys", named)


@pytest.mark.parametrize("arguments", [["-ktest_a"], [f"{PLAN}::test_a"], [f"--deselect={PLAN}::test_b", "tests"]])
def test_a_run_of_some_of_them_proves_nothing(run: Run, arguments: list[str]) -> None:
    run(*arguments)

    assert "3 passed" in run()


def test_a_run_with_a_failure_proves_nothing(run: Run, checkout: Path) -> None:
    write(checkout / "tests/unit/keys/test_keys.py", "def test_it():\n    assert 0\n")
    run()
    write(checkout / "tests/unit/keys/test_keys.py", FILES["tests/unit/keys/test_keys.py"])

    assert "3 passed" in run()


def test_a_file_that_changes_during_a_run_is_not_taken_for_tested(run: Run, checkout: Path) -> None:
    write(checkout / PLAN, f"from pathlib import Path\n\ndef test_it():\n    Path({str(checkout / PLAN)!r}).touch()\n")
    run()

    assert "2 passed" in run()


def test_without_git_everything_runs(run: Run, checkout: Path) -> None:
    run()

    (checkout / ".git").rename(checkout / "elsewhere")

    assert "3 passed" in run()


def test_workers_leave_out_what_the_first_process_has_found(run: Run, checkout: Path) -> None:
    run()

    command = [sys.executable, "-m", "pytest", *ALONE[1:], "-n1", "--import-mode=importlib", "tests"]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True)  # noqa: S603

    assert "1 passed" in done.stdout
    assert "laboratory and checks: 2 tests" in done.stdout
