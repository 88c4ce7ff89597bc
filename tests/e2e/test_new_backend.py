"""`dynashard new` makes a backend that an adopter owns, tests, synthesises, serves and upgrades, from wheels alone."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.made_backend import made_backend, touch_stamps

pytestmark = [pytest.mark.e2e, pytest.mark.deep]

MOST_FILES = 20
LATER = "9.0.0"
TASK = '''"""Tasks of a tenant."""

from dynashard import Entity, Key, new_id
from dynashard_serving.declare import serve


@serve(path="tasks")
class Task(Entity, name="task.v1.Task", key=Key(partition="{tenant_id}", sort="{id}")):
    """What is to be done."""

    tenant_id: str
    id: str = new_id()
    title: str
'''
TASK_TEST = """
def test_a_task_is_kept(api):
    made = api.post("/v1/tasks", json={"title": "wash"})

    assert api.get(made.headers["Location"]).json()["title"] == "wash"
"""


@dataclass(frozen=True)
class Backend:
    """A backend in a folder, with an environment that has the wheels."""

    root: Path

    def run(self, *command: str | Path) -> str:
        """Run a command in its folder, which must succeed, and return its output."""
        done = self.tried(command)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def tried(self, command: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
        # Neither the variables of this run nor those of its own make are the adopter's.
        ours = ("MAKE", "MFLAGS", "PYTEST", "PYTHONPATH", "COV", "VIRTUAL_ENV")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        return subprocess.run(  # noqa: S603 - our own command lines
            command, cwd=self.root, env=environment, capture_output=True, text=True, check=False
        )

    def works(self) -> None:
        """Run its tests on a local stack, and synthesise it for this machine and for an account."""
        tested = self.run("make", "test")
        assert re.search(r"\d+ passed", tested)
        self.run("make", "template")
        assert len(list((self.root / ".dynashard/local").glob("*.template.json"))) == 6
        self.run("make", "synth")
        assert (self.root / "cdk.out/Dynashard-dev-Api.template.json").exists()

    def bundles(self) -> None:
        """Build what is deployed, for this machine: its own code, the installed packages, and what those depend on."""
        self.run(".venv/bin/python", "-m", "dynashard_cdk.build", "--target", "host")
        built = self.root / "build/host"
        assert {path.name for path in (built / "sharding/python").iterdir()} >= {"dynashard", "botocore", "pydantic"}
        assert (built / "domain/python/domain/tasks.py").exists()
        assert (built / "functions/api/functions/api/handler.py").exists()

    def upgrade(self) -> subprocess.CompletedProcess[str]:
        return self.tried([self.root / ".venv/bin/dynashard", "upgrade"])


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Backend:
    """A backend that `dynashard new` has made, with what `make setup` would install from a registry."""
    return Backend(made_backend(tmp_path_factory, "notes"))


def owned(root: Path) -> list[str]:
    recorded: dict[str, str] = json.loads((root / ".dynashard/backend.json").read_text())["files"]
    return sorted(recorded)


def later_release(backend: Backend) -> Path:
    """Install a later release of the tools, whose Makefile and README differ, and which has one file more."""
    (site,) = (backend.root / ".venv/lib").glob("python3*/site-packages")
    tools = site / "dynashard_tools"
    (tools / "version.py").write_text(f'VERSION = "{LATER}"\n')
    makefile = tools / "new/backend/Makefile.tmpl"
    makefile.write_text(
        makefile.read_text() + "\n.PHONY: later\nlater: ## What the later release adds\n\t@echo later\n"
    )
    notes = tools / "new/backend/README.md.tmpl"
    notes.write_text(notes.read_text().replace("`make` alone lists", "`make` lists"))
    return tools


def test_an_adopter_makes_extends_upgrades_and_extends_again(backend: Backend) -> None:
    root = backend.root
    assert len(owned(root)) <= MOST_FILES
    assert {path.name for path in root.rglob("*.tmpl")} == set()
    domain = root / "layers/domain/python/domain"
    (domain / "tasks.py").write_text(TASK)
    (root / "tests/test_tasks.py").write_text(TASK_TEST)
    makefile = root / "Makefile"
    makefile.write_text(makefile.read_text().replace("ENV ?= dev", "ENV ?= dev\nOURS := 1"))
    (root / "functions/prewarm/handler.py").unlink()

    backend.works()
    backend.bundles()
    assert backend.upgrade().stdout.strip() == "The backend is of 0.1.0 already"

    later_release(backend)
    upgraded = backend.upgrade()

    assert upgraded.returncode == 0, upgraded.stderr
    assert f"Upgraded from 0.1.0 to {LATER}" in upgraded.stdout
    assert "OURS := 1" in makefile.read_text()
    assert f"dynashard-tools[testing]=={LATER}" in (root / "requirements.txt").read_text()
    assert not (root / "functions/prewarm/handler.py").exists()
    touch_stamps(root)
    assert backend.run("make", "later").strip() == "later"
    (domain / "chores.py").write_text(TASK.replace("Task", "Chore").replace("task", "chore"))
    backend.works()


def test_an_upgrade_marks_what_conflicts(backend: Backend, tmp_path: Path) -> None:
    copy = tmp_path / "notes"
    shutil.copytree(backend.root, copy, symlinks=True, ignore=shutil.ignore_patterns("node_modules", ".data"))
    record = copy / ".dynashard/backend.json"
    stored = json.loads(record.read_text())
    (copy / "README.md").write_text("# Ours\n")
    stored["version"] = "0.0.1"
    stored["files"]["README.md"] = "# Before\n"
    record.write_text(json.dumps(stored))

    done = Backend(copy).upgrade()

    assert done.returncode == 3
    assert "conflicts in README.md" in done.stderr
    assert "<<<<<<< yours\n# Ours" in (copy / "README.md").read_text()
