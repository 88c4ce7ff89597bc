"""Two versions read and change each other's items by every way there is; nothing is lost, and nothing becomes a 500."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from dynashard.transport import Transport
from dynashard_serving.documents import merge_patch
from tests.api_caller import TENANT
from tests.depth import profile
from tests.engine.versions.two_versions import NewTask, OldTask, Version, without_server_fields

pytestmark = pytest.mark.engine

OPERATIONS = 10_000 if profile() == "deep" else 250
IDENTITIES = [f"t{number}" for number in range(12)]
DEFAULTS: dict[str, Any] = {"owner": None, "kind": "bug", "level": "low", "place": None, "tags": None, "color": None}
PLACE = {"city": None, "street": None, "floor": None}
OLD_FIELDS = {"tenant_id", "id", "title", "owner", "kind", "level", "place", "tags"}

Document = dict[str, Any]


@pytest.fixture
def old(transport: Transport, table: str) -> Version:
    return Version(OldTask, transport, table)


@pytest.fixture
def new(transport: Transport, table: str) -> Version:
    return Version(NewTask, transport, table)


def complete(document: Mapping[str, Any]) -> Document:
    """Return a document as the newer version shows it."""
    found = {**DEFAULTS, **document}
    if found["place"] is not None:
        found["place"] = {**PLACE, **found["place"]}
    return found


def as_old(document: Mapping[str, Any]) -> Document:
    """Return a document as the older version shows it: members as they are, and without an owner if there is none."""
    found = {name: value for name, value in document.items() if name in OLD_FIELDS}
    if found["owner"] is None:
        del found["owner"]
    if found["place"] is not None:
        found["place"] = {name: value for name, value in found["place"].items() if name != "floor"}
    return found


class World:
    """Random operations by both versions, and the items as they must be after each."""

    def __init__(self, old: Version, new: Version, seed: int) -> None:
        self.old, self.new = old, new
        self.random = random.Random(seed)
        self.items: dict[str, Document] = {}
        self.done: dict[str, int] = {}

    def operate(self) -> None:
        version = self.random.choice((self.old, self.new))
        identity = self.random.choice(IDENTITIES)
        kinds: Sequence[Callable[[Version, str], str]] = [self.patch] * 5 + [self.put] * 3 + [self.create] * 2
        how = self.random.choice([*kinds, self.delete])(version, identity)
        self.done[how] = self.done.get(how, 0) + 1
        shown = self.random.choice((self.old, self.new))
        assert shown.shown(identity) == self.expected(shown, identity), how

    def expected(self, version: Version, identity: str) -> Document | None:
        if identity not in self.items:
            return None
        return as_old(self.items[identity]) if version is self.old else self.items[identity]

    def create(self, version: Version, identity: str) -> str:
        fields = {"id": identity, **self.fields(version, full=True)}
        if identity in self.items:
            assert version.caller.post("/v1/tasks", fields).status == 409
            return "refused create"
        way = self.random.choice(("rest", "direct", "queue", "python"))
        if way == "rest":
            assert version.caller.post("/v1/tasks", fields).status == 201
        elif way == "direct":
            version.service.result("create", item=fields)
        elif way == "queue":
            assert version.queued("create", items=({**fields, "tenant_id": TENANT},)) == 201
        else:
            version.tasks.create(self.entity(version, fields))
        self.items[identity] = complete({"tenant_id": TENANT, **fields})
        return f"create {way}"

    def put(self, version: Version, identity: str) -> str:
        fields = self.fields(version, full=True)
        way = self.random.choice(("rest", "rest if match", "direct", "queue", "batch", "python", "exactly-once"))
        item = {"id": identity, "tenant_id": TENANT, **fields}
        stored = self.items.get(identity)
        if way in ("rest", "rest if match"):
            headers = {}
            if way == "rest if match" and stored:
                headers = {"If-Match": version.caller.get(f"/v1/tasks/{identity}").etag}
            answer = version.caller.put(f"/v1/tasks/{identity}", fields, headers=headers)
            assert answer.status == (200 if stored else 201), answer.content
        elif way == "direct":
            version.service.result("put", item={"id": identity, **fields})
        elif way == "batch":
            [outcome] = version.service.result("batch_write", put=[{"id": identity, **fields}])["put"]
            assert outcome["ok"], outcome
        elif way == "queue":
            assert version.queued("put", items=(item,)) in (200, 201)
        else:
            handling = "exactly-once" if way == "exactly-once" else "plain"
            version.tasks.put(self.entity(version, {"id": identity, **fields}), handling=handling)
        after = complete(item)
        if version is self.old and stored is not None:
            after["color"] = stored["color"]
            if after["place"] and stored["place"]:
                after["place"]["floor"] = stored["place"]["floor"]
        self.items[identity] = after
        return f"put {way}"

    def patch(self, version: Version, identity: str) -> str:
        stored = self.items.get(identity)
        fields = self.fields(version, full=False)
        if stored and stored["place"] and self.random.random() < 0.5:
            fields["place"] = {"street": self.text()}
        way = self.random.choice(("rest", "direct", "queue", "replace over", "update", "transaction"))
        if stored is None:
            assert version.caller.patch(f"/v1/tasks/{identity}", fields).status in (404, 422)
            return "refused patch"
        if way == "rest":
            answer = version.caller.patch(f"/v1/tasks/{identity}", fields)
            assert answer.status == 200, answer.content
        elif way == "direct":
            version.service.result("update", key={"id": identity}, patch=fields)
        elif way == "queue":
            assert version.queued("update", key={"id": identity, "tenant_id": TENANT}, patch=fields) == 200
        else:
            fields.pop("place", None)
            fields = {name: value for name, value in fields.items() if value is not None}
            self.in_python(version, identity, fields, way)
        self.items[identity] = complete(merge_patch(stored, fields))
        return f"patch {way}"

    def in_python(self, version: Version, identity: str, fields: Document, way: str) -> None:
        key = {"tenant_id": TENANT, "id": identity}
        tasks, values = version.tasks, {n: set(v) if n == "tags" else v for n, v in fields.items()}
        if way == "update":
            tasks.update(key, set=values)
            return
        current = tasks.get(key, consistent=True)
        checked = {name: tasks.entity.assignment.check(name, value) for name, value in values.items()}
        changed = current.model_copy(update=checked)
        if way == "transaction":
            from dynashard.transactions import Put  # noqa: PLC0415 - the only use

            version.db.transact(Put(changed, over=current))
        else:
            tasks.replace(changed, over=current)

    def delete(self, version: Version, identity: str) -> str:
        expected = 204 if identity in self.items else 404
        assert version.caller.delete(f"/v1/tasks/{identity}").status == expected
        self.items.pop(identity, None)
        return "delete"

    def entity(self, version: Version, fields: Mapping[str, Any]) -> Any:
        return version.model.model_validate({"tenant_id": TENANT, **fields})

    def text(self) -> str:
        return self.random.choice(("ada", "bob", "cyd", "dan"))

    def fields(self, version: Version, *, full: bool) -> Document:
        """Return fields that a client of this version may send: all that it must, and some of the others."""
        newer, draw = version is self.new, self.random
        choices: Document = {
            "title": self.text(),
            "owner": draw.choice((None, "ann", "eve")) if newer else draw.choice(("ann", "eve")),
            "kind": draw.choice(("bug", "idea", "question") if newer else ("bug", "idea")),
            "level": draw.choice(("low", "middle", "high") if newer else ("low", "high")),
            "place": draw.choice((None, {"city": self.text(), "street": self.text()})),
            "tags": draw.choice((None, ["x"], ["x", "y"])),
        }
        if newer:
            choices["color"] = draw.choice((None, "red", "blue"))
            if choices["place"] and draw.random() < 0.5:
                choices["place"] = {"floor": 3}
        needed = {"title", "owner"} if full else set()
        return {name: each for name, each in choices.items() if name in needed or draw.random() < 0.4}

    def verify(self) -> None:
        """Compare all items as both versions list them, and what neither declares."""
        for version in (self.old, self.new):
            listed = version.caller.get("/v1/tasks?limit=100")
            assert listed.status == 200, listed.content
            found = {item["id"]: without_server_fields(item) for item in listed.json["items"]}
            assert found == {identity: self.expected(version, identity) for identity in self.items}


def test_two_versions_lose_nothing_of_each_other(old: Version, new: Version) -> None:
    world = World(old, new, seed=26)
    for number in range(OPERATIONS):
        world.operate()
        if number % 50 == 0:
            world.verify()
    world.verify()

    print(f"{OPERATIONS} operations: {sorted(world.done.items())}")  # noqa: T201 - the figure that is published
    assert len(world.done) >= 15
