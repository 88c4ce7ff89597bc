"""Wrong arguments are refused with what to write; errors from inside of a function are its own."""

from typing import Any

import pytest

from dynashard.cures import checked, with_example
from dynashard.errors import ConfigurationError, InvalidValueError

pytestmark = pytest.mark.unit


@checked("open", ConfigurationError, instead={"host": "url="})
def opened(url: str, *, seconds: Any = 1) -> str:
    return url * int(seconds)


@with_example('Room("kitchen")', lambda _, problem: InvalidValueError(problem))
class Room:
    def __init__(self, name: str) -> None:
        self.name = name + ""


def test_right_arguments_pass() -> None:
    assert (opened("a", seconds=2), Room(name="hall").name) == ("aa", "hall")


@pytest.mark.parametrize(
    ("given", "named", "problem"),
    [
        ((), {"host": "a"}, "host is not an argument of open; write url="),
        (("a",), {"second": 1}, "second is not an argument of open; did you mean seconds?"),
        (("a",), {"SECONDS": 1}, "SECONDS is not an argument of open; did you mean seconds?"),
        (("a", 2), {}, "open: too many values without a name"),
        ((), {}, "open: missing a required argument: 'url'"),
    ],
)
def test_wrong_arguments_of_a_function_are_named(given: Any, named: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        opened(*given, **named)

    assert str(refused.value) == problem


def test_wrong_arguments_of_a_class_are_refused_with_an_example() -> None:
    wrong: Any = Room

    with pytest.raises(
        InvalidValueError, match=r"""^Room: missing a required argument: 'name'; write Room\("kitchen"\)$"""
    ):
        wrong()


def test_a_type_error_from_inside_is_not_taken_for_wrong_arguments() -> None:
    wrong: Any = 5

    with pytest.raises(TypeError, match="int"):
        Room(wrong)
    with pytest.raises(TypeError, match="NoneType"):
        opened("a", seconds=None)
