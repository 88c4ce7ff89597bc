"""Leaves the tests of the laboratory and of the checks out while neither they nor what they reach has changed.

They try tools that ask questions about the backend, and not the backend itself. A module of them is left out if a run
in which every test passed has recorded what it reaches, and nothing of that has changed since. CI and the profile
`deep` leave nothing out, nor does a run that names such a module or its folder.
"""

import json
import os
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any, Final

import pytest

from tests.depth import profile
from tests.reached import Checkout

FOLDERS: Final = ("tests/unit/lab", "tests/unit/checks", "tests/engine/lab", "tests/engine/checks")
RECORDS: Final = Path("build") / "unchanged.json"
_HANDED_OVER: Final = "unchanged"


class Unchanged:
    """The hooks of a process of the run. The first process decides, and the workers of pytest-xdist follow it."""

    def __init__(self, config: pytest.Config) -> None:
        """Find the modules that are left out: in a worker, those that the first process has found."""
        self._config = config
        self._begun = time.time()
        self._ran: Counter[str] = Counter()
        worker: dict[str, Any] | None = getattr(config, "workerinput", None)
        self._left_out: dict[str, int] = self._found() if worker is None else worker[_HANDED_OVER]

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Hand over what is left out."""
        node.workerinput[_HANDED_OVER] = self._left_out

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave the tests out."""
        dropped = [item for item in items if _module(item.nodeid) in self._left_out]
        self._config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if _module(item.nodeid) not in self._left_out]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the tests of each module that have run."""
        if report.when == "call" and report.nodeid.startswith(tuple(f"{folder}/" for folder in FOLDERS)):
            self._ran[_module(report.nodeid)] += 1

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Record what the modules that have run reach, if every test has passed."""
        if exitstatus == pytest.ExitCode.OK and self._ran and not _takes_part(self._config):
            with suppress(OSError, CalledProcessError):
                self._write()

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say how many tests were left out, and how to run them."""
        if self._left_out:
            terminalreporter.write_line(
                f"laboratory and checks: {sum(self._left_out.values())} tests in {len(self._left_out)} modules did not "
                "run, because nothing that they reach has changed since they passed. `CI=1` runs them."
            )

    def _found(self) -> dict[str, int]:
        """Return the modules that are left out, with the numbers of their tests."""
        if os.environ.get("CI") or profile() == "deep" or not _collects_unnamed(self._config):
            return {}
        try:
            checkout = Checkout(self._config.rootpath)
        except (OSError, CalledProcessError):
            return {}
        records = self._read()
        return {module: ran["tests"] for module, ran in records.items() if checkout.unchanged(ran["record"])}

    def _read(self) -> dict[str, Any]:
        try:
            records: dict[str, Any] = json.loads((self._config.rootpath / RECORDS).read_text())
        except (FileNotFoundError, ValueError):
            return {}
        return records

    def _write(self) -> None:
        checkout = Checkout(self._config.rootpath)
        records = {module: ran for module, ran in self._read().items() if module in checkout.files}
        for module, tests in self._ran.items():
            record = checkout.record(module)
            # A file that was changed meanwhile may have been read before or after that.
            if checkout.changed(record) < self._begun:
                records[module] = {"tests": tests, "record": record}
        file = self._config.rootpath / RECORDS
        file.parent.mkdir(exist_ok=True)
        unfinished = file.with_name(f"{file.name}.{os.getpid()}")
        unfinished.write_text(json.dumps(records))
        unfinished.replace(file)


def _module(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def _takes_part(config: pytest.Config) -> bool:
    """Whether the run may have taken a part of a module's tests."""
    option = config.option
    chosen = option.keyword, option.markexpr, option.deselect, option.collectonly, getattr(option, "lf", None)
    return any(chosen) or any("::" in argument for argument in config.args) or hasattr(config, "workerinput")


def _collects_unnamed(config: pytest.Config) -> bool:
    """Whether the run collects the modules because it collects what is around their folders."""
    named = [(config.invocation_params.dir / _module(argument)).resolve() for argument in config.args]
    folders = [config.rootpath / folder for folder in FOLDERS]
    around = any(folder.is_relative_to(each) for folder in folders for each in named)
    return around and not any(each.is_relative_to(folder) for folder in folders for each in named)
