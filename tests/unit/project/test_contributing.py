"""Hooks, workflow and dev container use the targets and versions of the Makefile."""

import json
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[3]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")


def recipe(target: str) -> list[str]:
    """Return the shell commands of a target and its prerequisites."""
    found = re.search(rf"^{re.escape(target)}:([^#\n]*).*\n((?:\t.*\n)*)", MAKEFILE, re.MULTILINE)
    assert found is not None
    own = [line.strip().replace("$(BIN)", ".venv/bin") for line in found[2].splitlines()]
    needed = [name for name in found[1].split() if name.isalpha() and name != "setup"]
    return [command for name in needed for command in recipe(name)] + own


def test_hooks_run_the_commands_of_make_check() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")

    entries = re.findall(r"^ +entry: (.+)$", hooks, re.MULTILINE)

    assert len(entries) == hooks.count("- id: ") > 0
    assert set(entries) <= set(recipe("check"))


def test_hooks_download_nothing() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")

    assert set(re.findall(r"repo: (\S+)", hooks)) == {"local"}
    assert set(re.findall(r"language: (\S+)", hooks)) == {"system"}


def test_the_workflow_runs_the_targets_of_contributors() -> None:
    workflow = (ROOT / ".github/workflows/ci.yml").read_text("utf-8")

    assert re.findall(r"run: (.+)", workflow) == ["bash .ci/run"]
    # A tag can be moved to other code; a commit cannot.
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", used) for used in re.findall(r"uses: (\S+)", workflow))


def test_targets_in_the_contributing_page_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    targets = set(re.findall(r"^([a-z0-9-]+):.*## ", MAKEFILE, re.MULTILINE))

    named = {
        name
        for names in re.findall(r"(?:`|^)make ([a-z0-9 -]+?)(?:`| {2,}#)", text, re.MULTILINE)
        for name in names.split()
    }

    assert named
    assert named <= targets


def test_the_dev_container_has_the_versions_of_the_workflow() -> None:
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text("utf-8"))
    workflow = (ROOT / ".github/workflows/ci.yml").read_text("utf-8")

    [python], [node] = (re.findall(rf'{name}-version: "(.+)"', workflow) for name in ("python", "node"))

    assert f"python:{python}-" in container["image"]
    assert {"version": node} in container["features"].values()
    assert container["postCreateCommand"] == "make setup"
