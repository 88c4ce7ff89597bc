"""`dynashard events`: the events of the local bus, and dead letters that are published again."""

import json
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dynashard_local.bus.store import DATABASE, EventStore, NewEvent
from dynashard_local.queues.running import open_queues, queue_specs
from dynashard_local.queues.store import NewMessage, QueueStore
from dynashard_local.settings import Settings
from dynashard_local.template import committed
from dynashard_tools.failure import STILL_WRONG
from dynashard_tools.queue.reach import reach
from tests.engine.command_line import CommandLine

pytestmark = pytest.mark.engine

INCIDENT = "incident.v1.Incident"


@pytest.fixture
def folder(command_line: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in command_line.environment.items():
        monkeypatch.setenv(name, value)
    settings = Settings.from_env(os.environ)
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    return settings.data_dir


@pytest.fixture
def bus(folder: Path) -> Iterator[EventStore]:
    with closing(EventStore.open(folder / DATABASE)) as store:
        yield store


@pytest.fixture
def letters(folder: Path) -> QueueStore:
    return open_queues(folder, queue_specs(committed(), Settings.from_env(os.environ)))


def event(tenant: str, entity: str = INCIDENT) -> NewEvent:
    key = {"tenant_id": tenant, "id": "i1"}
    return NewEvent("dynashard", f"{entity} created", json.dumps({"entity": entity, "key": key, "revision": "r1"}), 0.0)


def letter(consumer: str | None, image: dict[str, Any] | None) -> NewMessage:
    images = {"SequenceNumber": "1", "ApproximateCreationDateTime": 1_800_000_000}
    record = {"eventName": "INSERT", "dynamodb": images if image is None else {**images, "NewImage": image}}
    return NewMessage(json.dumps({"consumer": consumer, "reason": "EventRefusedError: no", "record": record}), {})


def incident(name: str) -> dict[str, Any]:
    fields = {"tenant_id": "abc", "id": name, "title": "Down", "status": "TRIGGERED", "state": "OPEN", "Rev": "r1"}
    times = dict.fromkeys(("created_at", "updated_at"), "2026-11-26T12:00:00Z")
    texts = {"PK": f"{INCIDENT}:abc:0", "SK": name, "Type": INCIDENT, **fields, **times}
    return {key: {"S": value} for key, value in texts.items()}


def test_events_are_shown_by_tenant_and_entity_from_some_number_on(command_line: CommandLine, bus: EventStore) -> None:
    bus.add([event("abc"), event("other"), event("abc", "user.v1.User"), event("abc")])

    shown = command_line.run("events", "--tenant", "tenant_id=abc", "--entity", "incidents").out.splitlines()
    later = [json.loads(line) for line in command_line.run("events", "--since", "2", "--json").out.splitlines()]

    assert [line.split()[0] for line in shown] == ["1", "4"]
    assert shown[0] == f"1  1970-01-01T00:00:00Z  {INCIDENT} created  tenant_id=abc id=i1  r1"
    assert [(each["number"], each["detail"]["entity"]) for each in later] == [(3, "user.v1.User"), (4, INCIDENT)]


def test_no_event_follows_a_number_that_is_larger_than_any(command_line: CommandLine, bus: EventStore) -> None:
    bus.add([event("abc")])

    ended = command_line.run("events", "--since", f"{2**63}")

    assert (ended.status, ended.out) == (0, "")


def test_without_a_local_stack_the_command_says_how_to_start_one(command_line: CommandLine) -> None:
    ended = command_line.run("events")

    assert ended.status == 1
    assert "start the local stack with `make run`" in ended.err


def test_a_damaged_file_of_events_is_not_mended_by_a_start(command_line: CommandLine, folder: Path) -> None:
    (folder / DATABASE).write_bytes(b"damaged " * 100)

    ended = command_line.run("events")

    assert (ended.status, ended.out) == (1, "")
    assert "events.sqlite cannot be read (file is not a database): it is damaged. Move it away with" in ended.err


@pytest.mark.usefixtures("bus")
def test_an_entity_that_does_not_exist_is_refused(command_line: CommandLine) -> None:
    assert "no entity is called 'nothing'" in command_line.run("events", "--entity", "nothing").err
    for mistyped, meant in (("incident", "incidents"), ("incident.v1.Incidnt", INCIDENT)):
        said = f"no entity is called '{mistyped}'; did you mean {meant}? There are: "
        assert said in command_line.run("events", "--entity", mistyped).err


@pytest.mark.usefixtures("bus")
def test_an_entity_without_events_is_named_while_its_events_of_before_are_shown(command_line: CommandLine) -> None:
    without, declared = (command_line.run("events", "--entity", name) for name in ("users", "incidents"))

    assert (without.status, without.out, declared.err) == (0, "", "")
    assert without.err == "user.v1.User declares no events: write Events(of=User) in a module of the domain\n"


def test_dead_letters_of_events_are_published_again_and_others_stay(
    command_line: CommandLine, bus: EventStore, letters: QueueStore
) -> None:
    url = reach(None).events["changes"]
    consumer = f"events of {INCIDENT}"
    given = [letter(consumer, incident("i1")), letter("copies", incident("i2")), letter(consumer, None)]
    letters.send(url, [*given, NewMessage("no JSON", {}), letter(consumer, incident("i3"))])

    ended = command_line.run("events", "replay", "--json")

    assert (ended.status, json.loads(ended.out)) == (STILL_WRONG, {"published": 2, "refused": 1, "others": 2})
    published = [json.loads(each.detail) for each in bus.after(0)]
    assert [(each["kind"], each["key"]["id"], each["revision"]) for each in published] == [
        ("created", "i1", "r1"),
        ("created", "i3", "r1"),
    ]
    assert letters.everything()[url] == 3


def test_events_of_items_that_did_not_fit_are_published_once_they_do(
    command_line: CommandLine, bus: EventStore, letters: QueueStore
) -> None:
    url = reach(None).events["changes"]
    other = {**incident("i3"), "PK": {"S": "user.v1.User:abc:0"}, "Type": {"S": "user.v1.User"}}
    wrong = {**incident("i2"), "title": {"L": []}}
    moved = {**incident("i4"), "MovedFrom": {"S": f"{INCIDENT}:abc"}}
    letters.send(url, [letter(None, image) for image in (incident("i1"), wrong, other, moved, None)])

    ended = command_line.run("events", "replay", "--json")

    assert (ended.status, json.loads(ended.out)) == (STILL_WRONG, {"published": 1, "refused": 1, "others": 3})
    assert [json.loads(each.detail)["key"]["id"] for each in bus.after(0)] == ["i1"]
    assert letters.everything()[url] == 4


def test_a_replay_without_dead_letters_does_nothing(
    command_line: CommandLine, bus: EventStore, letters: QueueStore
) -> None:
    ended = command_line.run("events", "replay")

    assert ended.status == 0
    assert ended.out == "0 events published; 0 refused again; 0 dead letters of others\n"
    assert (bus.last, letters.everything()) == (0, {})


@pytest.mark.usefixtures("bus")
def test_letters_that_a_replay_leaves_can_be_taken_out_at_once(
    command_line: CommandLine, letters: QueueStore, tmp_path: Path
) -> None:
    given = [letter("copies", incident(f"i{number}")) for number in range(12)]
    letters.send(reach(None).events["changes"], [*given, letter(f"events of {INCIDENT}", incident("published"))])

    replayed = command_line.run("events", "replay", "--json")
    kept = command_line.run("queue", "redrive", "changes", "--to-file", str(tmp_path / "letters.jsonl"))

    assert json.loads(replayed.out) == {"published": 1, "refused": 0, "others": 12}
    assert (kept.status, kept.out.split(" written")[0]) == (0, "12 dead letters")
    assert len((tmp_path / "letters.jsonl").read_text().splitlines()) == 12
