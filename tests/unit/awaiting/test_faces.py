"""Both faces of the layer have the same methods, and the asynchronous one says what it needs."""

import asyncio
import inspect
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from dynashard import AsyncDynashard, Collection, Dynashard
from dynashard.awaiting import AsyncCollection

pytestmark = pytest.mark.unit

FACES = [(Dynashard, AsyncDynashard), (Collection, AsyncCollection)]
PARTS = {"resharder", "listing", "unique"}
"""What is for other packages, or changes shard counts, has no asynchronous face: `run` runs it."""
OWN = {"over", "run"}
STREAMS = {"pages", "items", "scan", "list"}
"""What returns at once, and waits when it is awaited or iterated over."""
NO_REQUEST = {"check", "collection", "local", "over"}


def public(face: type) -> dict[str, Any]:
    return {name: value for name, value in vars(face).items() if not name.startswith("_")}


def function_of(value: Any) -> Callable[..., Any] | None:
    function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    return function if inspect.isfunction(function) else None


@pytest.mark.parametrize(("sync", "awaited"), FACES)
def test_both_faces_have_the_same_names(sync: type, awaited: type) -> None:
    missing = public(sync).keys() - public(awaited).keys() - PARTS
    more = public(awaited).keys() - public(sync).keys() - OWN

    assert (missing, more) == (set(), set())


def described(function: Callable[..., Any]) -> list[tuple[str, Any, Any, Any]]:
    parameters = inspect.signature(function).parameters.values()
    return [(each.name, each.kind, each.default, str(each.annotation).strip("'\"")) for each in parameters]


@pytest.mark.parametrize(("sync", "awaited"), FACES)
def test_methods_take_the_same_arguments(sync: type, awaited: type) -> None:
    for name in public(sync).keys() & public(awaited).keys():
        ours, theirs = function_of(public(awaited)[name]), function_of(public(sync)[name])
        assert (ours is None) == (theirs is None), name
        if ours is not None and theirs is not None:
            assert described(ours) == described(theirs), name
    assert described(AsyncDynashard.__init__) == described(Dynashard.__init__)


def result_of(function: Callable[..., Any]) -> str:
    return str(inspect.signature(function).return_annotation).strip("'\"")


@pytest.mark.parametrize(("sync", "awaited"), FACES)
def test_what_sends_requests_is_awaited_and_returns_the_same(sync: type, awaited: type) -> None:
    for name in (public(sync).keys() & public(awaited).keys()) - STREAMS - NO_REQUEST:
        ours, theirs = function_of(public(awaited)[name]), function_of(public(sync)[name])
        if ours is None or theirs is None or isinstance(public(sync)[name], property):
            continue
        assert inspect.iscoroutinefunction(ours), name
        assert result_of(ours) == result_of(theirs), name


def test_without_greenlet_the_layer_is_imported_and_the_error_names_the_extra() -> None:
    program = """
import sys
sys.modules["greenlet"] = None
from dynashard import *
from dynashard import AsyncCollection, AsyncDynashard, Dynashard
from dynashard.errors import ConfigurationError
for opens in (AsyncDynashard.local, lambda: AsyncDynashard(None, table="t", cursor_keys=[])):
    try:
        opens()
    except ConfigurationError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603

    message = 'AsyncDynashard needs greenlet, which is not installed: pip install "dynashard[async]"'
    assert done.stdout.splitlines() == [message, message]


def test_a_program_that_blocks_imports_neither_greenlet_nor_asyncio() -> None:
    program = """
import sys
from dynashard import Dynashard, connect
Dynashard.local({}).close()
print(sorted({"asyncio", "greenlet"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603

    assert done.stdout.strip() == "[]"


class PassedError(Exception):
    """What a method of the other face was called with."""


class Other:
    """In place of a collection: each of its methods raises what it is called with."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def called(*values: Any, **named: Any) -> None:
            raise PassedError(values, named)

        return called


def takes_others(value: Any) -> bool:
    function = function_of(value)
    kinds = {each.kind for each in inspect.signature(function).parameters.values()} if function else set()
    return {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} <= kinds


@pytest.mark.parametrize("name", sorted(name for name, value in public(Collection).items() if takes_others(value)))
def test_what_a_call_does_not_take_reaches_the_face_that_refuses_it(name: str) -> None:
    other: Any = Other()

    async def call() -> None:
        await getattr(AsyncCollection(other), name)("a", "b", "c", surplus="d")

    with pytest.raises(PassedError) as passed:
        asyncio.run(call())

    values, named = passed.value.args
    assert (values, named["surplus"]) == (("a", "b", "c"), "d")
