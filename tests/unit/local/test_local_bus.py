"""The local event bus: the protocol of EventBridge, its limits, durability, and who follows it."""

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest
from botocore.exceptions import ClientError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from dynashard_local.aws_calls import serving
from dynashard_local.bus import entity_names
from dynashard_local.bus import store as stores
from dynashard_local.bus.calls import BusCalls
from dynashard_local.bus.following import Follower, Wanted
from dynashard_local.bus.running import running_bus
from dynashard_local.bus.store import DATABASE, EventStore, NewEvent
from dynashard_local.errors import LocalStackError
from dynashard_local.gateway.event_stream import PATH, EventStream

pytestmark = pytest.mark.unit


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EventStore]:
    with closing(EventStore.open(tmp_path / DATABASE)) as opened:
        yield opened


@pytest.fixture
def events(store: EventStore) -> Iterator[Any]:
    keys = {"aws_access_key_id": "k", "aws_secret_access_key": "s"}
    with serving(BusCalls(store, clock=lambda: 1_800_000_000.0)) as url:
        yield boto3.Session(region_name="us-east-1", **keys).client("events", endpoint_url=url)


def entry(detail: str = "{}", **more: Any) -> dict[str, Any]:
    return {"EventBusName": "b", "Source": "dynashard", "DetailType": "Memo created", "Detail": detail, **more}


def event(tenant: str, entity: str = "Memo") -> NewEvent:
    return NewEvent("s", f"{entity} created", json.dumps({"entity": entity, "key": {"tenant_id": tenant}}), 0.0)


def test_accepted_events_are_kept_with_their_time(events: Any, store: EventStore) -> None:
    answer = events.put_events(Entries=[entry('{"a": 1}', Time=1_700_000_000), entry('{"a": 2}')])

    kept = store.after(0)
    assert answer["FailedEntryCount"] == 0
    assert [each["EventId"] for each in answer["Entries"]] == [each.id for each in kept]
    assert [(each.detail, each.at) for each in kept] == [('{"a": 1}', 1_700_000_000.0), ('{"a": 2}', 1_800_000_000.0)]


@pytest.mark.parametrize("detail", ["[1]", "no", ""])
def test_a_malformed_event_is_refused_alone(events: Any, store: EventStore, detail: str) -> None:
    answer = events.put_events(Entries=[entry(detail), entry('{"a": 2}')])

    assert answer["FailedEntryCount"] == 1
    assert [each.get("ErrorCode") for each in answer["Entries"]] == ["MalformedDetail", None]
    assert [each.detail for each in store.after(0)] == ['{"a": 2}']


def test_a_call_that_is_too_large_is_refused_as_a_whole(events: Any, store: EventStore) -> None:
    half = json.dumps({"text": "x" * 131_072})

    with pytest.raises(ClientError, match="ValidationException"):
        events.put_events(Entries=[entry(half), entry(half)])
    with pytest.raises(ClientError, match="ValidationException"):
        events.put_events(Entries=[entry()] * 11)
    with pytest.raises(ClientError, match="UnsupportedOperation"):
        events.list_rules()

    assert store.last == 0


def test_only_the_last_events_are_kept(store: EventStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "MOST_KEPT", 3)

    for number in range(5):
        store.add([event(str(number))])

    assert [each.number for each in store.after(0)] == [3, 4, 5]


def test_events_survive_and_are_read_while_others_are_published(tmp_path: Path) -> None:
    with closing(EventStore.open(tmp_path / DATABASE)) as first:
        first.add([event("abc")])
    with (
        closing(EventStore.open(tmp_path / DATABASE)) as second,
        closing(EventStore.reading(tmp_path / DATABASE)) as reader,
    ):
        assert reader.last == 1
        second.add([event("abc")])
        assert [each.number for each in reader.after(1)] == [2]
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader.add([event("abc")])


def test_a_follower_gets_each_event_that_it_wants_once(store: EventStore) -> None:
    store.add([event("abc")])
    everything, one = Follower(store, Wanted(), 0), Follower(store, Wanted("abc", "Note"), store.last)

    store.add([event("abc", "Note"), event("other", "Note"), event("abc")] * 100)

    assert [number for number, _ in everything.new()] == list(range(1, 302))
    assert [number for number, _ in one.new()] == list(range(2, 302, 3))
    assert [*everything.new(), *one.new()] == []


def first_event(store: EventStore, query: str, headers: list[tuple[bytes, bytes]]) -> bytes:
    """Return the first event that a request gets."""
    about = {"type": "http", "method": "GET", "path": PATH, "query_string": query.encode(), "headers": headers}

    async def shown() -> bytes:
        answer = await EventStream(store).answer(Request(about))
        assert isinstance(answer, StreamingResponse)
        chunks = aiter(answer.body_iterator)
        return [bytes(await anext(chunks)) for _ in range(2)][1]  # type: ignore[arg-type]

    return asyncio.run(shown())


@pytest.mark.parametrize("entity", ["incidents", "incident.v1.Incident"])
def test_an_entity_is_named_by_its_path_or_its_full_name(store: EventStore, entity: str) -> None:
    store.add([event("abc", "user.v1.User"), event("abc", "incident.v1.Incident")])

    assert first_event(store, f"since=0&entity={entity}", []).startswith(b"id: 2\n")


@pytest.fixture
def changed_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A domain's module as a person has saved it after this process had loaded the domain that it has."""
    assert "later.v1.Declared" not in entity_names.entity_names()
    (tmp_path / "cdk.json").write_text("{}")
    folder = tmp_path / "layers/domain/python/domain"
    folder.mkdir(parents=True)
    module = folder / "__init__.py"
    # The code of this checkout is on the path of every process of its interpreter.
    monkeypatch.setenv("PYTHONPATH", str(folder.parent))
    monkeypatch.chdir(tmp_path)
    return module


LATER = '''
"""What was declared later."""

from dynashard import Entity, Key
from dynashard_serving.declare import serve

@serve("laters")
class Declared(Entity, name="later.v1.Declared", key=Key(partition="{tenant_id}", sort="{id}")):
    tenant_id: str
    id: str
'''


@pytest.mark.parametrize("entity", ["laters", "later.v1.Declared"])
def test_an_entity_that_was_declared_after_the_start_is_named_too(
    store: EventStore, changed_code: Path, entity: str
) -> None:
    changed_code.write_text(f"{LATER}\nprint('loaded')\n")
    store.add([event("abc", "user.v1.User"), event("abc", "later.v1.Declared")])

    assert first_event(store, f"since=0&entity={entity}", []).startswith(b"id: 2\n")


@pytest.mark.parametrize(
    ("entity", "meant"),
    [("incident", "incidents"), ("incident.v1.Incidents", "incident.v1.Incident"), ("zzz.Q", None)],
)
def test_an_entity_that_there_is_not_is_refused_with_the_nearest_and_those_that_there_are(
    store: EventStore, entity: str, meant: str | None
) -> None:
    refused = asked(store, "GET", params={"entity": entity})

    [error] = refused.json()["errors"]
    assert (refused.status_code, error["field"]) == (422, "entity")
    assert error["message"].startswith(f"No entity is called {entity}" + (f"; did you mean {meant}?" if meant else "."))
    assert "incident.v1.Incident, incidents" in error["message"]


def test_names_are_looked_up_one_at_a_time_so_that_unknown_ones_hold_up_no_stream(
    store: EventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way: list[int] = []
    running = 0

    async def in_thread(_: Any, entity: str) -> str:
        nonlocal running
        running += 1
        under_way.append(running)
        await asyncio.sleep(0)
        running -= 1
        raise LookupError(entity)

    async def ask_all() -> list[int]:
        stream = EventStream(store)
        about = {"type": "http", "method": "GET", "path": PATH, "query_string": b"entity=other", "headers": []}
        answers = await asyncio.gather(*(stream.answer(Request(about)) for _ in range(3)))
        return [each.status_code for each in answers]

    monkeypatch.setattr(asyncio, "to_thread", in_thread)

    assert asyncio.run(ask_all()) == [422, 422, 422]
    assert under_way == [1, 1, 1]


@pytest.mark.parametrize("seconds", [entity_names.MOST_SECONDS, 0], ids=["at all", "in time"])
def test_a_name_is_refused_while_the_changed_code_cannot_be_imported(
    store: EventStore, changed_code: Path, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    changed_code.write_text("class")
    monkeypatch.setattr(entity_names, "MOST_SECONDS", seconds)

    refused = asked(store, "GET", params={"entity": "incident.v1.Other"})

    assert refused.status_code == 422
    assert "incident.v1.Incident, incidents" in refused.json()["message"]


@pytest.mark.parametrize(("seen", "first"), [("1", 2), ("5000", 1)])
def test_a_browser_goes_on_after_what_it_has_seen_and_begins_anew_with_other_data(
    store: EventStore, seen: str, first: int
) -> None:
    store.add([NewEvent("s", f"event {number}", "{}", 1.0) for number in (1, 2)])

    assert first_event(store, "", [(b"last-event-id", seen.encode())]).startswith(b"id: %d\n" % first)


def test_a_damaged_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / DATABASE).write_text("no database, but long enough to be taken for one" * 10)

    with pytest.raises(LocalStackError, match=rf"{DATABASE} cannot be used .*: remove it"), running_bus(tmp_path):
        pass


def asked(store: EventStore, method: str, **more: Any) -> httpx.Response:
    """The answer to a request for the stream of events, which has to end."""

    async def answer() -> httpx.Response:
        app = Starlette(routes=[Route("/events", EventStream(store).answer)])
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://local") as client:
            return await client.request(method, "/events", **more)

    return asyncio.run(answer())


@pytest.mark.parametrize("since", ["9" * 19, "9" * 5000, "-1", "1.0", "x", "\u0663"])
def test_the_number_of_an_event_has_at_most_18_digits(store: EventStore, since: str) -> None:
    refused = asked(store, "GET", params={"since": since})

    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "since")


def test_the_answer_to_head_ends_without_a_length(store: EventStore) -> None:
    answer = asked(store, "HEAD")

    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert "content-length" not in answer.headers
