"""The tree of errors that the library's page of errors draws."""

import re

import pytest

from dynashard import errors
from dynashard.errors import DynashardError

pytestmark = pytest.mark.unit


def below(error: type[DynashardError], depth: int = 0) -> list[tuple[int, str, str, str]]:
    """Return an error and all below it in the library: how deep, its name, code and status, by name."""
    found = [(depth, error.__name__, error.code, str(error.status))]
    for each in sorted(error.__subclasses__(), key=lambda each: each.__name__):
        found += below(each, depth + 1) if each.__module__ == errors.__name__ else []
    return found


def test_the_drawn_tree_is_the_tree() -> None:
    drawn = re.findall(r"^    ([│├└─ ]*)(\w+) +([a-z_]+) +(\d+)$", errors.__doc__ or "", re.MULTILINE)

    assert [(len(lines) // 4, name, code, status) for lines, name, code, status in drawn] == below(DynashardError)
