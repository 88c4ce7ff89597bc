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


def test_run_refuses_a_coroutine_which_nobody_would_await(db: AsyncDynashard) -> None:
    get: Any = db.collection(Fact).get

    with pytest.raises(DynashardError, match=r"run takes a plain function: await get\(\.\.\.\) itself"):
        asyncio.run(db.run(get, "x", tenant="abc"))
