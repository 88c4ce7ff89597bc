"""Calls of a client as strangers type them wrongly: the error says what to write, and nothing is sent."""

import asyncio
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from dynashard_client import AsyncClient, Client, Item, Update
from dynashard_client.answers import Page, Written, refusal_in
from dynashard_client.errors import DynashardError

pytestmark = pytest.mark.unit


class User(Item, path="users"):
    id: str | None = None
    name: str


class Note(Item, path="notes", key=["number"]):
    number: str


class Unreachable:
    """A client of Lambda that must not be called."""

    def invoke(self, **request: Any) -> NoReturn:
        raise AssertionError(f"sent {request}")

    def close(self) -> None:
        """Do nothing: there is no connection."""


ADA, NOTE = User(id="ada", name="Ada"), Note(number="1")
WRITTEN = Written(ADA, created=True)

REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "create by fields": (lambda u: u.create(name="Ada"), "name is not an argument; write create(User(...))"),
    "get by keyword": (lambda u: u.get(id="ada"), 'id is not an argument; write get("ada"), or get({"id": ...})'),
    "update by keyword": (lambda u: u.update("ada", name="Eve"), 'write update("ada", {"field": value})'),
    "update what was assigned to": (lambda u: u.update(ADA), 'write update("ada", {"field": value})'),
    "delete two": (lambda u: u.delete("ada", "eve"), 'too many values without a name; write delete("ada"), or'),
    "update in a batch by keyword": (
        lambda u: u.batch([Update("ada", name="Eve")]),  # type: ignore[call-arg]
        'Update: name is not an argument; write Update("ada", {"field": value})',
    ),
    "create a mapping": (lambda u: u.create({"name": "Ada"}), "a User is stored; it got a dict; write User(...)"),
    "create a text": (lambda u: u.create("ada"), "it got 'ada'; write User(...)"),
    "create a class": (lambda u: u.create(User), "it got the class User"),
    "create another": (lambda u: u.create(NOTE), "it got a Note; write User(...)"),
    "put what put returned": (lambda u: u.put(WRITTEN), "write written.item"),
    "get by a tuple": (lambda u: u.get(("ada",)), "the key of users is id; it got ('ada',); write {\"id\": ...}"),
    "get by another": (lambda u: u.get(NOTE), "the key of users is id; it got a Note"),
    "delete what put returned": (lambda u: u.delete(WRITTEN), "what a put returned; write written.item"),
    "update if_match item": (lambda u: u.update("ada", {}, if_match=ADA), "write if_match=item.revision"),
    "put if_match item": (lambda u: u.put(ADA, if_match=ADA), "write if_match=item.revision"),
    "delete if_match item": (lambda u: u.delete(ADA, if_match=ADA), "write if_match=item.revision"),
    "get fields as text": (lambda u: u.get("ada", fields="name"), "write fields=['name']"),
    "list fields as text": (lambda u: u.list(fields="name"), "write fields=['name']"),
    "list by keyword": (lambda u: u.list(name="Ada"), 'write {"name": ...} first, or filters={"name": ...}'),
    "count by keyword": (lambda u: u.count(name="Ada"), "name is not an argument of listings"),
    "list reversed": (lambda u: u.list(reverse=True), 'write order="ordered", direction="desc"'),
    "list by a value": (lambda u: u.list("ada"), "a partition is 'ada'; write its fields"),
    "list by tuples": (lambda u: u.list(filters=[("name", "=", "Ada")]), 'write {"field": value}'),
    "batch_get of one": (lambda u: u.batch_get("ada"), "batch_get takes a list; it got 'ada'; write batch_get([...])"),
    "batch_write of one": (lambda u: u.batch_write(ADA), "put takes a list; it got a User"),
    "batch_write of keys": (lambda u: u.batch_write(delete="ada"), "delete takes a list; it got 'ada'"),
    "batch of items": (lambda u: u.batch([ADA]), "it got a User; write batch([Put(item), Get(key)])"),
}


@pytest.mark.parametrize("snippet", REFUSED)
@pytest.mark.parametrize("face", ["blocking", "awaited"])
def test_what_does_not_work_names_the_cure(face: str, snippet: str) -> None:
    call, cure = REFUSED[snippet]

    async def awaited() -> None:
        client = AsyncClient.lambda_("commands", tenant="abc", client=Unreachable())
        await call(client.collection(User))

    def blocking() -> None:
        call(Client.lambda_("commands", tenant="abc", client=Unreachable()).collection(User))

    with pytest.raises(DynashardError) as refused:
        asyncio.run(awaited()) if face == "awaited" else blocking()

    assert cure in str(refused.value)


CONTAINERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a subscript": (lambda u: u["ada"], "write get(...)"),
    "in": (lambda u: "ada" in u, "write find(...)"),
    "all": (list, "write items(...)"),
    "the length of all": (len, "write count(...)"),
}


@pytest.mark.parametrize("snippet", CONTAINERS)
@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_collection_is_no_container(kind: Any, snippet: str) -> None:
    call, cure = CONTAINERS[snippet]

    with pytest.raises(DynashardError) as refused:
        call(kind.lambda_("commands", tenant="abc", client=Unreachable()).collection(User))

    assert cure in str(refused.value)


@pytest.mark.parametrize(
    ("call", "cure"),
    [(lambda p: p[0], "(await ...list(...))[0]"), (len, "len(await ...list(...))"), (list, "write async for")],
)
def test_a_page_that_was_not_awaited_says_so(call: Callable[[Any], Any], cure: str) -> None:
    users = AsyncClient.lambda_("commands", tenant="abc", client=Unreachable()).collection(User)

    with pytest.raises(DynashardError) as refused:
        call(users.list())

    assert cure in str(refused.value)


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_what_cannot_be_opened_names_the_cure(kind: Any) -> None:
    client = kind.lambda_("commands", tenant="abc", client=Unreachable())

    with pytest.raises(DynashardError, match="collection takes a class"):
        client.collection("users")
    with pytest.raises(DynashardError, match="collection takes a class"):
        client.collection(ADA)
    with pytest.raises(DynashardError, match="token is None; write a text, or a function"):
        kind.rest("http://127.0.0.1:1", token=None)
    with pytest.raises(DynashardError, match=r"token is not an argument; write (Async)?Client\.rest\(url, token="):
        kind("http://127.0.0.1:1", token=None)
    with pytest.raises(DynashardError, match=r"over 'http://127\.0\.0\.1:1'; write Client\.rest\(url, token="):
        kind("http://127.0.0.1:1")
    with pytest.raises(AttributeError, match="has no attribute save; use put"):
        _ = client.collection(User).save


def test_a_declaration_with_a_text_for_a_list_names_the_cure() -> None:
    with pytest.raises(TypeError, match=r"read_only of Wrong is the text 'id'; write read_only=\['id'\]"):

        class Wrong(Item, path="users", read_only="id"):
            id: str


def test_a_page_is_the_sequence_of_its_items() -> None:
    page = Page(["a", "b", "c"], None)

    assert (page[0], page[-1], page[1:]) == ("a", "c", ["b", "c"])


def test_a_refusal_shows_what_is_wrong_with_each_field() -> None:
    field = {
        "field": "owner",
        "message": "Unknown; did you mean owner_id?",
        "code": "unknown_parameter",
    }

    error = refusal_in({"code": "validation_failed", "detail": "Not accepted: owner.", "errors": [field]})

    assert error.__notes__ == ["owner: Unknown; did you mean owner_id?"]


@pytest.mark.parametrize(
    ("token", "cure"),
    [
        ("secret\n", r"has a blank or a line end; write the token alone.*token\.strip\(\)"),
        ("Bearer secret", "write the token alone, without Bearer"),
        ("", "the token is empty"),
        (lambda: None, "returned None; let it return a text"),
    ],
)
@pytest.mark.parametrize("face", ["blocking", "awaited"])
def test_a_token_that_no_header_can_have_is_refused_and_not_shown(face: str, token: Any, cure: str) -> None:
    async def awaited() -> None:
        async with AsyncClient.rest("http://127.0.0.1:1", token=token) as client:
            await client.collection(User).get("ada")

    def blocking() -> None:
        Client.rest("http://127.0.0.1:1", token=token).collection(User).get("ada")

    with pytest.raises(DynashardError, match=cure) as refused:
        asyncio.run(awaited()) if face == "awaited" else blocking()

    assert "secret" not in str(refused.value)
