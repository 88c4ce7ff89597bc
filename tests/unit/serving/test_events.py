"""Events: what a domain may declare, what an event says, and in which order and how often a bus gets it."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import boto3
import pytest

from dynashard import Entity, Key, Registry
from dynashard.errors import ConfigurationError, DeclarationError, EventBusUnavailableError, EventRefusedError
from dynashard.record import with_revision
from dynashard_patterns import Attachment, Change
from dynashard_patterns.changes import DeadLetter, Dispatcher, Kind
from dynashard_serving.declare import Events
from dynashard_serving.discovery import declarations_of
from dynashard_serving.domain import domain_of
from dynashard_serving.events.event import MOST_BYTES, Event, size
from dynashard_serving.events.publishing import ATTEMPTS, Publisher, to_bus

pytestmark = pytest.mark.unit

_REGISTRY = Registry()
AT = datetime(2026, 11, 26, 12, tzinfo=UTC).timestamp()


class Memo(Entity, name="events.v1.Memo", key=Key("{tenant_id}", "{id}"), registry=_REGISTRY):
    tenant_id: str
    id: str
    text: str = ""
    day: datetime | None = None
    notes: Annotated[str | None, Attachment()] = None


def memo(name: str, revision: str | None, text: str = "") -> Memo:
    return with_revision(Memo(tenant_id="abc", id=name, text=text), revision)


def change(kind: Kind, old: Memo | None, new: Memo | None, sequence: str = "1") -> Change[Memo]:
    shown = new or old
    assert shown is not None
    return Change(kind, Memo, {"tenant_id": "abc", "id": shown.id}, old, new, sequence, AT)


def created(name: str, revision: str = "r1", text: str = "") -> Change[Memo]:
    return change("created", None, memo(name, revision, text))


class Bus:
    """A bus that answers calls as `fails` says: the code with which an entry is refused at some attempt."""

    def __init__(self, fails: Callable[[str, int], str | None] = lambda _name, _attempt: None) -> None:
        self.calls: list[list[str]] = []
        self.pauses: list[float] = []
        self.accepted: list[dict[str, Any]] = []
        self._fails = fails

    def put(self, entries: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        assert 1 <= len(entries) <= 10
        assert sum(map(size, entries)) <= MOST_BYTES
        details = [json.loads(each["Detail"]) for each in entries]
        self.calls.append([each["key"]["id"] for each in details])
        codes = [self._fails(each["key"]["id"], len(self.calls)) for each in details]
        self.accepted += [each for each, code in zip(details, codes, strict=True) if code is None]
        answers = [{"EventId": "e"} if code is None else {"ErrorCode": code, "ErrorMessage": "no"} for code in codes]
        return {"FailedEntryCount": len(codes) - codes.count(None), "Entries": answers}

    @property
    def publisher(self) -> Publisher:
        return Publisher(self.put, "the-bus", "dynashard", sleep=self.pauses.append)


def publish(bus: Bus, *changes: Change[Any], events: Events | None = None) -> None:
    (events or Events(of=Memo)).consumer(bus.publisher).handle(changes)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kinds": ()}, "its kinds are empty: write some of created, updated, deleted, expired"),
        ({"kinds": ("made",)}, "its kinds name 'made': write some of created, updated, deleted, expired"),
        ({"kinds": "created"}, "its kinds are 'created': write a tuple of texts"),
        ({"fields": ("colour",)}, "its fields name 'colour': write some of tenant_id, id, text, day"),
        ({"fields": ("notes",)}, "its fields name 'notes': write some of tenant_id, id, text, day"),
        ({"fields": ("text",), "after": False}, "it names fields, and shows items neither before nor after"),
    ],
)
def test_a_wrong_declaration_is_refused_with_what_to_write(given: dict[str, Any], message: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        Events(of=Memo, **given)

    assert str(refused.value).startswith(f"events.v1.Memo: cannot be published: {message}")


def test_an_entity_has_one_declaration_of_events() -> None:
    with pytest.raises(ConfigurationError, match=r"events\.v1\.Memo is the entity of events of two declarations"):
        declarations_of([Memo, Events(of=Memo), Events(of=Memo, before=True)])

    assert domain_of(Memo, Events(of=Memo)).declarations.events == (Events(of=Memo),)


def test_an_event_says_what_has_changed_from_which_revision_to_which() -> None:
    event = Events(of=Memo, before=True).event(change("updated", memo("a", "r1", "old"), memo("a", "r2", "new")))

    assert event.name == "events.v1.Memo updated"
    identity = event.document.pop("id")
    assert event.document == {
        "version": 1,
        "entity": "events.v1.Memo",
        "kind": "updated",
        "key": {"tenant_id": "abc", "id": "a"},
        "revision": "r2",
        "previous": "r1",
        "before": {"tenant_id": "abc", "id": "a", "text": "old", "day": None},
        "after": {"tenant_id": "abc", "id": "a", "text": "new", "day": None},
    }
    assert len(identity) == 32


def test_an_event_shows_the_fields_and_the_sides_that_are_declared() -> None:
    updated = change("updated", memo("a", "r1", "old"), memo("a", "r2", "new"))

    assert Events(of=Memo, fields=("text",)).event(updated).document["after"] == {"text": "new"}
    assert "before" not in Events(of=Memo).event(updated).document
    assert "after" not in Events(of=Memo, after=False).event(updated).document
    deleted = Events(of=Memo, before=True).event(change("deleted", memo("a", "r2"), None)).document
    assert (deleted["revision"], deleted["previous"], "after" in deleted) == (None, "r2", False)


def test_a_change_has_one_id_however_often_it_comes_and_no_other_change_has_it() -> None:
    changes = [
        created("a", "r1"),
        created("b", "r1"),
        change("updated", memo("a", "r1"), memo("a", "r2")),
        change("updated", memo("a", "r2"), memo("a", "r1")),
        change("deleted", memo("a", "r1"), None),
        change("expired", memo("a", "r1"), None),
        change("created", None, memo("a", ""), sequence="7"),
        change("created", None, memo("a", ""), sequence="8"),
        change("updated", memo("a", "r1", "one"), memo("a", "r1", "two"), sequence="9"),
        change("updated", memo("a", "r1", "two"), memo("a", "r1", "one"), sequence="10"),
    ]
    first, again = ([Events(of=Memo).event(each).document["id"] for each in changes] for _ in range(2))

    assert first == again
    assert len(set(first)) == len(changes)


def test_what_another_program_stored_without_a_revision_has_none_in_its_event() -> None:
    event = Events(of=Memo).event(change("updated", memo("a", ""), memo("a", "r1")))

    assert (event.document["previous"], event.document["revision"]) == (None, "r1")


def test_kinds_that_are_not_declared_are_not_published() -> None:
    bus = Bus()

    publish(bus, created("a"), change("deleted", memo("b", "r1"), None), events=Events(of=Memo, kinds=("deleted",)))
    publish(bus, created("c"), events=Events(of=Memo, kinds=("deleted",)))

    assert bus.calls == [["b"]]


def test_a_call_has_ten_events_of_different_items() -> None:
    bus = Bus()

    publish(bus, *(created(str(number)) for number in range(11)), created("10", "r2"), created("x"))

    assert bus.calls == [[str(number) for number in range(10)], ["10"], ["10", "x"]]


def test_a_call_has_no_more_bytes_than_a_bus_takes() -> None:
    bus = Bus()

    publish(bus, *(created(str(number), text="x" * 100_000) for number in range(5)))

    assert bus.calls == [["0", "1"], ["2", "3"], ["4"]]


@pytest.mark.parametrize(
    ("before", "after", "left_out"), [(200_000, 100_000, ["before"]), (10, 300_000, ["before", "after"])]
)
def test_what_is_too_large_for_a_bus_is_left_out_and_said(before: int, after: int, left_out: list[str]) -> None:
    bus, large = Bus(), Events(of=Memo, before=True)

    publish(bus, change("updated", memo("a", "r1", "b" * before), memo("a", "r2", "é" * (after // 2))), events=large)

    (document,) = bus.accepted
    assert document["truncated"] == left_out
    assert {"before", "after"} - document.keys() == set(left_out)
    assert document["revision"] == "r2"


def test_an_event_that_just_fits_is_whole() -> None:
    event = Event("n", {"after": ""}, AT)
    room = MOST_BYTES - size(event.entry("bus", "s"))

    assert "truncated" not in event._replace(document={"after": "x" * room}).entry("bus", "s")["Detail"]
    assert "truncated" in event._replace(document={"after": "x" * (room + 1)}).entry("bus", "s")["Detail"]


def test_entries_that_were_not_accepted_are_sent_again_before_later_events_of_their_items() -> None:
    bus = Bus(lambda name, attempt: "ThrottlingException" if name == "a" and attempt == 1 else None)

    publish(bus, created("a"), created("b"), change("updated", memo("a", "r1"), memo("a", "r2")))

    assert bus.calls == [["a", "b"], ["a"], ["a"]]
    assert [each["revision"] for each in bus.accepted if each["key"]["id"] == "a"] == ["r1", "r2"]
    assert bus.pauses == [0.1]


def test_a_bus_that_does_not_accept_events_makes_the_stream_deliver_their_changes_again() -> None:
    bus = Bus(lambda name, _: "InternalFailure" if name == "a" else None)

    with pytest.raises(EventBusUnavailableError, match="the-bus did not accept 1 events: InternalFailure: no"):
        publish(bus, created("a"), created("b"), change("updated", memo("a", "r1"), memo("a", "r2")))

    assert bus.calls == [["a", "b"], *[["a"]] * (ATTEMPTS - 1)]
    assert bus.pauses == [0.1, 0.2]


def test_an_event_that_the_bus_refuses_becomes_a_dead_letter_and_no_other_does() -> None:
    bus = Bus(lambda name, _: "MalformedDetail" if name == "2" else None)
    letters: list[DeadLetter] = []
    dispatcher = Dispatcher([Events(of=Memo).consumer(bus.publisher)], keep=letters.append)

    outcome = dispatcher.dispatch([record(number) for number in range(4)])

    assert (outcome.again, outcome.dead_letters) == (None, 1)
    (letter,) = letters
    assert (letter.consumer, letter.sequence) == ("events of events.v1.Memo", "2".zfill(21))
    assert letter.reason == "EventRefusedError: the bus the-bus refuses 1 events: MalformedDetail: no"
    assert {each["key"]["id"] for each in bus.accepted} == {"0", "1", "3"}


def test_changes_come_again_while_the_bus_is_unavailable() -> None:
    bus = Bus(lambda _name, _attempt: "ServiceUnavailable")
    letters: list[DeadLetter] = []
    dispatcher = Dispatcher([Events(of=Memo).consumer(bus.publisher)], keep=letters.append)

    outcome = dispatcher.dispatch([record(number) for number in range(4)])

    assert (outcome.again, letters) == ("0".zfill(21), [])


def test_a_bus_that_cannot_be_reached_is_unavailable() -> None:
    def opened() -> Any:
        keys = {"aws_access_key_id": "k", "aws_secret_access_key": "s"}
        return boto3.Session(region_name="us-east-1", **keys).client("events", endpoint_url="http://127.0.0.1:1")

    with pytest.raises(EventBusUnavailableError, match="EventBridge does not answer: Could not connect"):
        to_bus("b", "s", opened)([Events(of=Memo).event(created("a"))])


def test_a_refusal_is_no_reason_to_wait_for() -> None:
    assert not EventRefusedError("no").retryable
    assert EventBusUnavailableError("no").retryable


def record(number: int) -> dict[str, Any]:
    fields = {"tenant_id": {"S": "abc"}, "id": {"S": str(number)}, "Type": {"S": "events.v1.Memo"}, "Rev": {"S": "r"}}
    image = {"PK": {"S": "events.v1.Memo:abc"}, "SK": {"S": str(number)}, **fields}
    images = {"SequenceNumber": str(number).zfill(21), "NewImage": image, "ApproximateCreationDateTime": AT}
    return {"eventName": "INSERT", "dynamodb": images}
