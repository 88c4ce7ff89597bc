"""What a release stores besides items, and how it reads what another one has stored: `python stored.py` under its code.

Without input it prints `{"code": ..., "stored": ..., "read": ...}`: where its packages are, one of each kind of record,
and what it reads of it. With the stored records of another release at its standard input it reads those.
"""

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib import import_module
from inspect import signature
from typing import Any, Final

from dynashard import Entity, definition
from dynashard.entity import ItemKey
from dynashard.errors import DynashardError
from dynashard.resharding.progress import Pass, Position, Progress, _decode, _update
from dynashard.topology import Phase, Record
from dynashard.topology.records import decode, encode, first_record
from dynashard_patterns.attachments.pieces import Manifest, Place
from dynashard_patterns.attachments.pointer import Pointer
from dynashard_patterns.rollups.declaration import Counted
from dynashard_serving.operations.conditions import Conditions, Revisions
from dynashard_serving.operations.requests import Create, Delete, Put, Update
from dynashard_serving.operations.served import served_by_name
from dynashard_serving.queue_messages import Message, creates_body, write_body
from dynashard_serving.tenants import TenantRule


def exposed() -> Any:
    """Return the entities of the release whose code this is, and how it serves them."""
    try:
        from dynashard_serving.domain import declared  # noqa: PLC0415 - release 0.1.0 does not have it
    except ModuleNotFoundError:
        return import_module("domain").ENTITIES
    return declared().entities


def resize_class() -> Any:
    """Return the class of what a topology record stores about a resize."""
    try:
        from dynashard.resharding.resize import Resize  # noqa: PLC0415 - release 0.1.0 has another name for it
    except ModuleNotFoundError:
        return import_module("dynashard.resharding.change").Change
    return Resize


def texts_of_answers() -> Any:
    """Return what makes the text of an answer that an idempotency record holds, and what reads it."""
    try:
        from dynashard_serving.idempotency.records import added, restored  # noqa: PLC0415 - release 0.1.0 has one module
    except ModuleNotFoundError:
        module = import_module("dynashard_serving.idempotency")
        return module._added, module._restored
    return added, restored


Resize: Final = resize_class()
ADDED, RESTORED = texts_of_answers()
AT: Final = 1_790_000_000.25
NOON: Final = datetime(2026, 11, 20, 12, tzinfo=UTC)
EXPOSED: Final = exposed()
SERVED: Final = served_by_name(EXPOSED)
USER: Final = {"tenant_id": "abc", "id": "ada", "email": "ada@example.com", "display_name": "Ada"}
Operation, EpisodePlays, SeriesPlays, FollowCount, Follow, Participation, Article = map(
    {each.entity.__name__: each.entity for each in EXPOSED}.__getitem__,
    ("Operation", "EpisodePlays", "SeriesPlays", "FollowCount", "Follow", "Participation", "Article"),
)
MODELS: Final[tuple[type[Entity], ...]] = (
    Operation, Counted, EpisodePlays, SeriesPlays, FollowCount, Follow, Participation, Article
)  # fmt: skip
CODE: Final = [
    str(sys.modules[name].__file__) for name in ("dynashard", "dynashard_patterns", "dynashard_serving", "domain")
]
Kinds = dict[str, dict[str, Any]]


def _topology() -> dict[str, Any]:
    family = first_record("user.v1.User", 4, now=AT, lease=30.0).revised(
        AT, active=frozenset({"user.v1.User:abc"}), differ_since=AT, former_lease=60.0, lowered_at=AT + 1
    )
    resize = Resize(
        id="c1", origin=4, target=8, tasks=4, cause="operator", started=AT, budget=25.0, seen=AT, margin=4.5, check=True
    )
    own = first_record("user.v1.User:abc", 4, now=AT, lease=30.0)
    resizes = {
        "waiting": replace(resize, seen=None, margin=None),
        "moving": replace(resize, total=100),
        "paused": replace(resize, paused=True, error="a step failed", back_to=4),
        "settled": replace(resize, moved=90, late=2, left=1, write_units=180.5, read_units=12.0, passed=AT + 9),
    }
    phases = {"waiting": Phase.STABLE, "moving": Phase.MOVE, "paused": Phase.PREPARE, "settled": Phase.SETTLE}
    found = {
        name: own.revised(AT, phase=phases[name], target=8, since=AT, swept=False, resize=each.stored())
        for name, each in resizes.items()
    }
    swept = own.revised(AT, count=8, swept=False, resize=resizes["settled"].stored())
    return {name: encode(record) for name, record in {**found, "family": family, "sweeping": swept}.items()}


def _read_topology(wire: Any) -> Any:
    record = decode(wire)
    resize = Resize.of(record)
    return [_record(record), None if resize is None else _known(asdict(resize))]


def _record(record: Record) -> dict[str, Any]:
    # The record is a dataclass in earlier releases, and a structure in this one.
    members = {name: getattr(record, name) for name in signature(Record).parameters}
    return {name: value for name, value in _known(members).items() if name not in {"change", "resize"}}


def _known(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if name != "others"}


def _progress() -> dict[str, Any]:
    begun = Progress("user.v1.User:abc", 1, "c1", Pass.MOVE, begins=True)
    key = {"PK": {"S": "user.v1.User:abc:1"}, "SK": {"S": "ada"}}
    at = replace(begun, position=Position(3, key), total=9, moved=4, write_units=8.5, after=AT, counted=True)
    values = {
        name: _update(begun, each)["ExpressionAttributeValues"] for name, each in {"begun": begun, "at": at}.items()
    }
    return {name: {member[1:]: value for member, value in each.items()} for name, each in values.items()}


def _read_progress(wire: Any) -> Any:
    progress = _decode("user.v1.User:abc", wire)
    if progress is None:
        return None
    # Under the name that it has in the recordings.
    return {"change" if name == "resize" else name: value for name, value in asdict(progress).items()}


def _answers() -> dict[str, Any]:
    document = {**USER, "status": "active", "manager_id": None, "revision": "r1"}
    return {"answer": ADDED(document, USER)}


def _messages() -> dict[str, Any]:
    users, pings = SERVED["users"], SERVED["pings"]
    conditions = Conditions(Revisions.named(["r1"]), None)
    key = {"tenant_id": "abc", "id": "ada"}
    writes: dict[str, tuple[Any, Any]] = {
        "create": (Create("abc", USER), USER),
        "put": (Put(tenant="abc", item=USER, conditions=conditions), USER),
        "update": (Update(key=key, patch={"display_name": "Countess"}, conditions=conditions), None),
        "delete": (Delete(key=key, conditions=conditions), None),
    }
    ping = {"tenant_id": "abc", "id": "p1", "at": NOON.isoformat(), "seconds": 15}
    bodies = {
        name: write_body(users, "abc", request, item, operation_id="o1", accepted_at=AT)
        for name, (request, item) in writes.items()
    }
    return {name: body.decode() for name, body in {**bodies, "pings": creates_body(pings, "abc", [ping], AT)}.items()}


def _read_message(body: str) -> Any:
    message = Message.parse(body, SERVED, TenantRule())
    names = ("operation", "tenant", "items", "key", "patch", "operation_id", "conditions", "accepted_at", "redriven")
    return [message.served.name, {name: getattr(message, name) for name in names}]


def _manifests() -> dict[str, Any]:
    place = Place("incident.v1.Incident~details", ItemKey("incident.v1.Incident:abc", "i1"), "abc:i1")
    return {"manifest": Manifest(place, "v1", 3, int(AT)).stored()}


def _items() -> dict[str, Any]:
    node = {"tenant_id": "abc", "node": "User.9", "way": "FAN_OF"}
    made: tuple[Any, ...] = (
        Operation(tenant_id="abc", id="o1", method="PUT", target="/v1", created_at=NOON, updated_at=NOON),
        Counted(id="m1", expires_at=NOON),
        EpisodePlays(tenant_id="abc", series="s", episode="e", level="hour", start=NOON, pings=2, seconds=30),
        SeriesPlays(tenant_id="abc", series="s", level="month", start=NOON, pings=2, seconds=30),
        FollowCount(**node, slot=3, count=7),
        Follow(**node, other="Actor.1", other_type="Actor", since=NOON),
        Participation(
            tenant_id="abc", incident_id="i1", participant="team_1", state="OPEN", since=NOON, number=1, title="Disk",
            status="TRIGGERED", created_at=NOON,
        ),
    )  # fmt: skip
    return {type(item).__name__: definition(type(item)).encode(item.__dict__) for item in made}


def _read_item(name: str, wire: Any) -> Any:
    [model] = [each for each in MODELS if each.__name__ == name.partition(" ")[0]]
    return definition(model).decode(wire).model_dump(mode="json")


_KINDS: Final[Mapping[str, tuple[Callable[[], dict[str, Any]], Callable[[str, Any], Any]]]] = {
    "topology": (_topology, lambda _, wire: _read_topology(wire)),
    "progress": (_progress, lambda _, wire: _read_progress(wire)),
    "idempotency": (_answers, lambda _, text: RESTORED(text, USER)),
    "messages": (_messages, lambda _, body: _read_message(body)),
    "pointers": (
        lambda: {"pointer": Pointer("v1", 3, 1000, "ab12").stored()},
        lambda _, attribute: asdict(Pointer.of(attribute)),
    ),
    "manifests": (_manifests, lambda _, item: asdict(Manifest.of(item))),
    "items": (_items, _read_item),
}


_READERS: Final = {
    **{kind: reader for kind, (_, reader) in _KINDS.items()},
    # The attributes that are left of a record when the release has changed it.
    "rewritten": lambda _, wire: sorted(encode(decode(wire))),
}


def unknown() -> Kinds:
    """Return what only this release stores. The page on versions says what the release before does with each of it."""
    # Release 0.1.0 has neither.
    from dynashard.schema import VERSION  # noqa: PLC0415
    from dynashard_serving.access import Caller  # noqa: PLC0415

    own = first_record("user.v1.User:abc", 4, now=AT, lease=30.0)
    index = first_record("user.v1.User|GSI1", 8, now=AT, lease=30.0)
    family = first_record("user.v1.User", 4, now=AT, lease=30.0)
    topology = {
        "epochs": own.publishing(AT, "2026-11-20", 8),
        "former_counts": index.revised(AT, former=frozenset({4})),
        "backfilled": family.revised(AT, backfilled={"user.v1.User": "2"}),
    }
    records = {name: encode(record) for name, record in topology.items()}
    article = Article(tenant_id="abc", author="ada", title="Notes", published_at=NOON, created_at=NOON, updated_at=NOON)
    operation = _items()["Operation"]
    items = {
        "Article with its text moved": {
            **definition(Article).encode(article.__dict__), "text": Pointer("v1", 3, 1000, "ab12").stored()
        },
        "Operation of version 2": {**operation, VERSION: {"N": "2"}},
    }  # fmt: skip
    key = {"tenant_id": "abc", "id": "ada"}
    caller = Caller("abc", {"sub": "eve"})
    body = write_body(SERVED["users"], "abc", Delete(key=key), None, operation_id="o1", accepted_at=AT, caller=caller)
    return {"topology": records, "rewritten": records, "items": items, "messages": {"judged": body.decode()}}


def written() -> Kinds:
    """Return records of each kind as this release stores them."""
    return {kind: _plain(write()) for kind, (write, _) in _KINDS.items()}


def read(stored: Mapping[str, Mapping[str, Any]]) -> Kinds:
    """Return what this release reads of stored records, as JSON values."""
    return {
        kind: {name: _plain(_read(_READERS[kind], name, each)) for name, each in records.items()}
        for kind, records in stored.items()
    }


def _read(reader: Callable[[str, Any], Any], name: str, stored: Any) -> Any:
    try:
        return reader(name, stored)
    except DynashardError as error:
        return {"refused": error.code}


def _plain(value: Any) -> Any:
    """JSON values: a text for each that is none, and sets in order."""
    return json.loads(
        json.dumps(value, default=lambda each: sorted(each) if isinstance(each, frozenset) else str(each))
    )


def main() -> None:
    given = sys.stdin.read()
    stored = json.loads(given) if given.strip() else written()
    sys.stdout.write(json.dumps({"code": CODE, "stored": stored, "read": read(stored)}))


if __name__ == "__main__":
    main()
