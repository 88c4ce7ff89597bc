"""Classes of a program that has nothing of the backend's code: declared with the client alone, over both transports."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from dynashard.transport import Transport
from dynashard_client import Client, ConfigurationError, InputError, Item, NotFoundError
from dynashard_client.errors import InvalidKeyError, InvalidQueryError, UndecodableItemError
from tests.engine.api.api_on_engine import idempotency_table
from tests.engine.clients.clients_on_engine import WAYS, Served, served
from tests.engine.raw_dynamodb import RawDynamoDB

pytestmark = pytest.mark.engine


class User(Item, path="users", read_only=["created_at"], sort={"by_email": "{email}"}):
    id: str | None = None
    email: str
    display_name: str
    department: str | None = None
    created_at: datetime | None = None


class Incident(Item, path="incidents"):
    id: str | None = None
    number: int
    title: str
    details: Any = None


class Article(Item, path="articles", key=["author", "year", "slug"], partition=["author", "year"]):
    author: str
    year: int | None = None
    slug: str | None = None
    title: str
    published_at: datetime


@pytest.fixture(scope="module")
def backend(transport: Transport, create_table: Any, dynamodb: RawDynamoDB) -> Iterator[Served]:
    with idempotency_table(dynamodb) as records, served(transport, create_table(), records) as serving:
        yield serving


@pytest.fixture(params=WAYS)
def client(request: pytest.FixtureRequest, backend: Served, tenant: str) -> Iterator[Client]:
    with backend.client(request.param, tenant) as opened:
        yield opened


def test_an_item_is_created_read_changed_put_and_deleted(client: Client) -> None:
    users = client.collection(User)

    created = users.create(User(email="ada@example.com", display_name="Ada"))
    assert created.id
    patched = users.update(created, {"department": "maths"}, if_match=created.revision)
    put = users.put(patched.model_copy(update={"display_name": "Countess"}), if_match=patched.revision)

    assert created.created_at
    assert (put.created, put.item.display_name, put.item.department) == (False, "Countess", "maths")
    read = users.get(created.id, consistent=True)
    assert (read, read.revision) == (put.item, put.item.revision)
    assert users.get(read, fields=["id", "status"]) == {"id": read.id, "status": "active"}
    users.delete(read, if_match=read.revision)
    with pytest.raises(NotFoundError):
        users.get(read)


def test_what_an_answer_did_not_have_stays_when_its_item_is_put(client: Client) -> None:
    incidents = client.collection(Incident)
    incidents.create(Incident(id="i1", number=1, title="Slow", details={"log": [1]}))

    [listed] = incidents.list()
    incidents.put(listed.model_copy(update={"title": "Slower"}))

    full = incidents.find("i1", include=["details"])
    assert full
    assert (full.title, full.details) == ("Slower", {"log": [1]})


def test_an_item_that_was_put_is_answered_like_one_that_was_read(client: Client) -> None:
    users = client.collection(User)

    [outcome], _ = users.batch_write(put=[User(id="1", email="a@b.c", display_name="A")])
    [read] = users.batch_get(["1"])

    assert outcome.ok
    assert read.item
    assert read.item.email == "a@b.c"


def test_a_key_of_several_fields_is_a_mapping(client: Client) -> None:
    articles = client.collection(Article)
    written = articles.create(
        Article(author="parth", title="Sharding", published_at=datetime.fromisoformat("2017-01-01T00:00Z"))
    )

    assert articles.get({"author": "parth", "year": 2017, "slug": "sharding"}) == written == articles.get(written)
    with pytest.raises(InvalidQueryError, match="sort key of the table"):
        articles.pages({"author": "parth", "year": 2017}, order="ordered", resume=True)
    with pytest.raises(InvalidQueryError, match="names its index"):
        articles.pages({"author": "parth"}, resume=True)
    with pytest.raises(InvalidKeyError, match="author, year, slug"):
        articles.get("sharding")


def test_a_listing_begins_after_an_item_by_the_declared_sort_key(client: Client) -> None:
    users = client.collection(User)
    users.batch_write(put=[User(id=str(n), email=f"{9 - n}@b.c", display_name="U") for n in range(6)])

    by_id = [user.id for page in users.pages(order="ordered", after=users.get("2")) for user in page]
    listing = users.pages(index="by_email", order="ordered", after=users.get("2"))

    assert by_id == ["3", "4", "5"]
    assert [user.id for page in listing for user in page] == ["1", "0"]


def test_an_answer_that_does_not_fit_its_class_says_so(client: Client) -> None:
    class Numbered(Item, path="users"):
        id: int

    client.collection(User).create(User(id="ada", email="a@b.c", display_name="A"))

    with pytest.raises(UndecodableItemError, match="older than the backend"):
        client.collection(Numbered).get("ada")


def test_what_is_missing_to_reach_an_item_is_said(backend: Served) -> None:
    class Nowhere(Item):
        id: str

    with backend.client("rest") as client:
        with pytest.raises(ConfigurationError, match="path="):
            client.collection(Nowhere)
        with pytest.raises(InputError, match="needs id"):
            client.collection(User).put(User(email="a@b.c", display_name="A"))
    with pytest.raises(TypeError, match="no field ident"):

        class _Wrong(Item, path="users", key=["ident"]):
            id: str

    with pytest.raises(TypeError, match="not readonly"):

        class _Mistyped(Item, path="users", readonly=["id"]):
            id: str
