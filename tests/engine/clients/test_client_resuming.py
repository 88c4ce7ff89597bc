"""Listings of the client whose cursors the backend refuses, over direct invocation and over REST."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from domain.samples.incidents import Incident
from domain.samples.participations import Participation, participations
from domain.samples.users import User
from dynashard import Dynashard, declared_counts
from dynashard.reads.cursor import _signer_of
from dynashard.transport import Transport
from dynashard_client import AsyncClient, Client, Items, Retries
from dynashard_client.errors import InvalidCursorError, InvalidQueryError, UnsupportedCursorError
from dynashard_client.resource import Resource
from dynashard_client.steps import Request
from tests.engine.api.api_on_engine import KEYS, idempotency_table
from tests.engine.clients.async_face import DrivenClient, driven
from tests.engine.clients.clients_on_engine import RESOURCES, WAYS, Served, served
from tests.engine.raw_dynamodb import RawDynamoDB

pytestmark = pytest.mark.engine

Outdate = Callable[..., tuple[Items[Any], "Outdating"]]
TENANT = "resuming"
OLDER = _signer_of(KEYS).sign(b"2AAAA").decode()
"""A genuine cursor of a format that is not read."""
MAILS = ("a@b.c", "b@b.c", "c@b.c")
USERS = [
    User(tenant_id=TENANT, id=f"{n:02d}", email=MAILS[n % 3], display_name="U", department="d" if n % 2 else "e")
    for n in range(30)
]
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
TEAMS = ("team_a", "team_b")
INCIDENTS = [
    Incident(
        tenant_id=TENANT, id=f"i{n}", number=n + 1, title="T", participants=[*TEAMS], created_at=NOON - timedelta(n)
    )
    for n in range(12)
]


@pytest.fixture(scope="module")
def backend(transport: Transport, create_table: Callable[[], str], dynamodb: RawDynamoDB) -> Iterator[Served]:
    table = create_table()
    db = Dynashard(transport, table=table, topology=declared_counts(topology_table=None), cursor_keys=KEYS)
    db.collection(User).batch_write(put=USERS)
    db.collection(Participation).batch_write(put=[copy for each in INCIDENTS for copy in participations(each)])
    with idempotency_table(dynamodb) as records, served(transport, table, records) as serving:
        yield serving


@pytest.fixture(params=WAYS)
def client(request: pytest.FixtureRequest, backend: Served) -> Iterator[Client]:
    with backend.client(request.param, TENANT) as opened:
        yield opened


@dataclass
class Outdating:
    """Sends a cursor of an older format in place of each of those with these numbers, counted from 1; all if empty."""

    inner: Any
    outdated: Sequence[int]
    cursors: int = 0
    requests: list[Request] = field(default_factory=list)

    def ask(self, resource: Resource[Any], request: Request) -> Any:
        """Answer as the transport within does: a result, or an awaitable of it."""
        if "cursor" in request:
            self.cursors += 1
            if self.cursors in self.outdated or not self.outdated:
                request = {**request, "cursor": OLDER}
        self.requests.append(request)
        return self.inner.ask(resource, request)

    def call(self, name: str, request: Request) -> Any:
        return self.inner.call(name, request)

    def close(self) -> Any:
        return self.inner.close()


@pytest.fixture
def outdating(client: Client, request: pytest.FixtureRequest) -> Outdate:
    """Return items of a client, for whose listings each of these cursors is outdated, and the requests it sends."""

    def outdate(model: type[Any], *outdated: int) -> tuple[Items[Any], Outdating]:
        given: Any = {"resources": RESOURCES, "retries": Retries(sleep=lambda _: None), "tenant": TENANT}
        if isinstance(client, DrivenClient):
            transport = Outdating(client.inner._transport, outdated)
            again = driven(AsyncClient(transport, **given))
        else:
            transport = Outdating(client._transport, outdated)
            again = Client(transport, **given)
        request.addfinalizer(again.close)
        return again.collection(model), transport

    return outdate


def ids(items: Sequence[Any]) -> list[str]:
    return [each.id for each in items]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("direction", ["asc", "desc"])
@pytest.mark.parametrize("order", ["round_robin", "ordered", "shard"])
def test_a_listing_goes_on_after_refused_cursors_and_returns_each_item_once(
    outdating: Outdate, order: str, direction: str
) -> None:
    users, _ = outdating(User, 2, 6)

    found = ids([*users.items(order=order, direction=direction, limit=4, resume=True)])

    assert sorted(found) == ids(USERS)
    assert order != "ordered" or found == sorted(found, reverse=direction == "desc")


def test_an_ordered_listing_goes_on_from_its_last_key_without_reading_again(outdating: Outdate) -> None:
    users, transport = outdating(User, 3)

    pages = [*users.pages(order="ordered", limit=7, resume=True)]

    assert [len(page.items) for page in pages] == [7, 7, 7, 6, 3]
    assert [each.get("from") for each in transport.requests if each.get("cursor") in (None, OLDER)] == [
        None,
        None,
        "20",
    ]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_entries_of_an_index_with_equal_keys_are_returned_once(outdating: Outdate, direction: str) -> None:
    users, _ = outdating(User, 1, 3, 5, 7)

    found = [*users.items(index="by_email", order="ordered", direction=direction, limit=3, resume=True)]

    assert sorted(ids(found)) == ids(USERS)
    mails = [each.email for each in found]
    assert mails == sorted(mails, reverse=direction == "desc")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({"prefix": "1"}, ids(USERS[10:20])),
        ({"prefix": "1", "direction": "desc"}, ids(USERS[10:20])[::-1]),
        ({"start": "05", "end": "18"}, ids(USERS[5:18])),
        ({"start": "05", "end": "18", "direction": "desc"}, ids(USERS[5:18])[::-1]),
        ({"index": "by_email", "sort": {"email": "a@b.c"}}, ids(USERS[::3])),
        ({"index": "by_department", "partition": {"department": "d"}}, ids(USERS[1::2])),
    ],
    ids=["prefix", "prefix, descending", "range", "range, descending", "sort", "index"],
)
def test_a_selection_stays_the_same(outdating: Outdate, chosen: Mapping[str, Any], expected: Sequence[str]) -> None:
    users, _ = outdating(User, 1, 3)

    found = ids([*users.items(order="ordered", limit=3, resume=True, **chosen)])

    assert sorted(found) == sorted(expected)
    assert "sort" in chosen or found == expected


def test_each_value_of_distinct_is_returned_once(outdating: Outdate) -> None:
    copies, _ = outdating(Participation, 1, 3)
    asked: dict[str, Any] = {"index": "by_participant", "order": "ordered", "distinct": "incident_id", "limit": 3}

    found = [*copies.items({"participant": [*TEAMS]}, sort={"state": "OPEN"}, resume=True, **asked)]

    assert [each.incident_id for each in found] == ids(INCIDENTS[::-1])


def test_fields_of_items_are_enough_if_they_are_those_of_the_keys(outdating: Outdate) -> None:
    users, _ = outdating(User, 2)

    found = [*users.items(order="ordered", limit=5, resume=True, fields=["email", "id"])]

    assert [each["id"] for each in found] == ids(USERS)
    for fields, order, missing in ((["email"], "ordered", "id"), (["email"], "shard", "id")):
        with pytest.raises(InvalidQueryError, match=f"add {missing}"):
            users.pages(order=order, resume=True, fields=fields)
    with pytest.raises(InvalidQueryError, match="add email"):
        users.pages(index="by_email", order="ordered", resume=True, fields=["id"])


def test_nothing_is_resumed_unless_it_is_asked_for(outdating: Outdate) -> None:
    users, _ = outdating(User, 2)

    with pytest.raises(UnsupportedCursorError):
        list(users.items(order="ordered", limit=5))


def test_a_listing_that_finds_nothing_new_raises_the_refusal(outdating: Outdate) -> None:
    users, transport = outdating(User)

    with pytest.raises(UnsupportedCursorError):
        list(users.items(limit=5, resume=True))

    assert len([each for each in transport.requests if each.get("cursor") == OLDER]) == Retries().attempts + 1


def test_an_ordered_listing_comes_to_its_end_though_every_cursor_is_refused(outdating: Outdate) -> None:
    users, _ = outdating(User)

    assert ids([*users.items(order="ordered", limit=4, resume=True)]) == ids(USERS)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("cursor", [None, OLDER], ids=["without a cursor", "with a refused one"])
def test_an_ordered_listing_begins_after_an_item_that_the_caller_has(outdating: Outdate, cursor: str | None) -> None:
    users, _ = outdating(User)

    assert ids([*users.items(order="ordered", limit=20, cursor=cursor, after=USERS[9])]) == ids(USERS[10:])


def test_other_listings_begin_after_no_item_and_a_foreign_cursor_is_refused(outdating: Outdate) -> None:
    users, _ = outdating(User, 99)

    with pytest.raises(InvalidQueryError, match="order='ordered'"):
        users.pages(after=USERS[9])
    with pytest.raises(InvalidCursorError):
        list(users.pages(cursor="x", resume=True))
    with pytest.raises(InvalidQueryError, match="names its index"):
        users.pages({"department": "d"}, resume=True)
    with pytest.raises(InvalidQueryError, match="sort key of the index by_shoe"):
        users.pages({"department": "d"}, index="by_shoe", order="ordered", resume=True)
