"""The rooms of the local stack, as its docstring lists them: each module is there, and imports point upwards only."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import dynashard_local

pytestmark = pytest.mark.unit

FOLDER = Path(dynashard_local.__file__).parent
ROOMS = ("engine", "functions", "queues", "bus", "gateway", "workers", "deploy")
TOGETHER = {"__init__", "__main__", "run", "stack", "testing", "reloading"}


def listed(folder: Path) -> set[str]:
    """Return the names that a folder's docstring lists."""
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8"))) or ""
    return set(re.findall(r"^    (\w+)  ", text, flags=re.MULTILINE))


def imported(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the modules of a folder with the rooms or modules of the local stack that they import."""
    for path in folder.glob("*.py"):
        for name in re.findall(r"from dynashard_local\.(\w+)", path.read_text("utf-8")):
            yield path.stem, name


def test_the_docstring_of_each_room_lists_its_modules() -> None:
    own = {path.stem for path in FOLDER.glob("*.py")} - {"__init__", "__main__"}

    assert listed(FOLDER) == own | set(ROOMS)
    for room in ROOMS:
        modules = {path.stem for path in (FOLDER / room).glob("*.py")} - {"__init__", "__main__"}
        assert listed(FOLDER / room) == modules, room


@pytest.mark.parametrize(("number", "room"), list(enumerate(ROOMS)))
def test_a_room_imports_rooms_above_it_only(number: int, room: str) -> None:
    wrong = [(module, name) for module, name in imported(FOLDER / room) if name in {*ROOMS[number + 1 :], *TOGETHER}]

    assert wrong == []


def test_what_every_room_may_import_imports_no_room() -> None:
    wrong = [(module, name) for module, name in imported(FOLDER) if module not in TOGETHER and name in ROOMS]

    assert wrong == []
