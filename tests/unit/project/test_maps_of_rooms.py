"""The maps in the docstrings of rooms name each of their modules, and the stack of the API what it is made of."""

import re
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

from dynashard_serving.api import app

pytestmark = pytest.mark.unit

LAYERS = Path(__file__).resolve().parents[3] / "layers"
MAPPED = (
    "dynashard_serving",
    "dynashard_serving.api",
    "dynashard_serving.api.openapi",
    "dynashard_serving.operations",
    "dynashard_serving.telemetry",
)


def first_column(docstring: str | None) -> set[str]:
    """Return the names that begin the indented lines of a docstring."""
    lines = re.findall(r"^ {4}(\w[\w.]*(?:, \w[\w.]*)*,?)(?: {2,}|$)", docstring or "", re.MULTILINE)
    return {name for line in lines for name in re.findall(r"[\w.]*\w", line)}


@pytest.mark.parametrize("room", MAPPED)
def test_a_map_names_every_module_of_its_room(room: str) -> None:
    package = import_module(room)

    assert first_column(package.__doc__) == {module.name for module in iter_modules(package.__path__)}


def test_the_stack_around_a_request_names_what_the_code_has() -> None:
    code = "".join(path.read_text("utf-8") for path in LAYERS.rglob("*.py"))
    layers = {name.rpartition(".")[2] for name in first_column(app.__doc__)}

    assert len(layers) > 10
    assert [name for name in sorted(layers) if not re.search(rf"^ *(?:class|def) {name}\b", code, re.MULTILINE)] == []
