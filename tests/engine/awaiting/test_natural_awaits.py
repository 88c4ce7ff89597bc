"""Calls on an event loop as strangers type them wrongly: the error says what to write."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from dynashard import AsyncDynashard, DynashardError
from tests.engine.awaiting.conftest import Fact

pytestmark = pytest.mark.engine

UNKNOWN: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a method of another library": (
        lambda db: db.collection(Fact).save,
        "AsyncCollection has no attribute save; use put",
    ),
    "a method misspelled": (lambda db: db.collection(Fact).lst, "did you mean list?"),
    "an entity": (lambda db: db.facts, "open the items of an entity with db.collection(User)"),
    "what is not awaited": (lambda db: db.store, "it is db.sync.store, for functions that db.run runs"),
    "a page that is not awaited": (
        lambda db: db.collection(Fact).list(tenant="abc").items,
        "(await ...list(...)).items",
    ),
    "a private name": (lambda db: db._sync, "AsyncDynashard has no attribute _sync"),
}


@pytest.mark.parametrize("snippet", UNKNOWN)
def test_an_unknown_name_says_what_to_write(db: AsyncDynashard, snippet: str) -> None:
    call, cure = UNKNOWN[snippet]

    with pytest.raises(AttributeError) as refused:
        call(db)

    assert str(refused.value).endswith(cure)


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "an item of a page that is not awaited": (lambda facts: facts.list("abc")[0], "write (await ...list(...))[0]"),
    "its length": (lambda facts: len(facts.list("abc")), "write len(await ...list(...))"),
    "a loop without async": (lambda facts: list(facts.list("abc")), "write async for"),
    "a subscript": (lambda facts: facts["ada"], "write get(...)"),
    "in": (lambda facts: "ada" in facts, "write exists(...)"),
    "all": (list, "write items(...)"),
    "the length of all": (len, "write count(...)"),
}


@pytest.mark.parametrize("snippet", REFUSED)
def test_what_does_not_work_names_the_cure(db: AsyncDynashard, snippet: str) -> None:
    call, cure = REFUSED[snippet]

    with pytest.raises(DynashardError) as refused:
        call(db.collection(Fact))

    assert cure in str(refused.value)


def test_run_refuses_a_coroutine_which_nobody_would_await(db: AsyncDynashard) -> None:
    get: Any = db.collection(Fact).get

    with pytest.raises(DynashardError, match=r"run takes a plain function: await get\(\.\.\.\) itself"):
        asyncio.run(db.run(get, "x", tenant="abc"))
