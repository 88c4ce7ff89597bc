"""Calls as strangers type them: each works, or its error says what to write and names nothing inside."""

import re
from collections.abc import Callable
from datetime import datetime
from types import MappingProxyType
from typing import Any, cast
from uuid import uuid4

import pytest
from msgspec.structs import replace

from domain.samples.users import User
from dynashard import (
    Check,
    Collection,
    Create,
    Delete,
    Dynashard,
    DynashardError,
    Filter,
    Put,
    Update,
    connect,
    declared_counts,
)
from dynashard.entity import definition
from dynashard.errors import ConfigurationError
from dynashard.keys import key_text
from dynashard.resharding import Scope
from dynashard.transport import Transport
from tests.engine.stored_things import Note

pytestmark = [pytest.mark.engine, pytest.mark.one_face]

KEYS = ["a secret of 16 bytes"]
STRANGER = {"email": "s@example.com", "display_name": "S"}
INSIDE = (
    "NoneType' object",
    "__dict__",
    "unexpected keyword",
    "positional argument",
    "_entity",
    "Repository",
    "TypedDict",
)


class Admin(User):
    """Derived without a declaration of its own, so its items would be stored as users."""

    level: int = 1


@pytest.fixture(scope="module")
def db(wire: Transport, local_table: str, topology_table: str) -> Dynashard:
    return Dynashard(wire, table=local_table, topology_table=topology_table, cursor_keys=KEYS)


@pytest.fixture(scope="module")
def tenant() -> str:
    return f"door-{uuid4().hex}"


@pytest.fixture(scope="module")
def users(db: Dynashard, tenant: str) -> Collection[User]:
    """Ada of engines, and five of legal."""
    users = db.collection(User)
    users.create(tenant_id=tenant, id="ada", email="ada@example.com", display_name="Ada", department="engines")
    people = [
        {"tenant_id": tenant, "id": f"u{n}", "email": f"u{n}@example.com", "display_name": "U", "department": "legal"}
        for n in range(5)
    ]
    users.batch_write(put=people)
    return users


Call = Callable[[Any, str], Any]
LEGAL = ["u0", "u1", "u2", "u3", "u4"]
ALL = ["ada", *LEGAL]
DEPARTMENTS = ["legal", "engines"]


def key(tenant: str, user: str) -> dict[str, str]:
    return {"tenant_id": tenant, "id": user}


def ids(found: Any) -> list[str]:
    return sorted(user.id for user in found)


WORKING: dict[str, tuple[Call, Any]] = {
    "get by value and keyword": (lambda u, t: u.get("ada", tenant_id=t).id, "ada"),
    "get by keywords": (lambda u, t: u.get(tenant_id=t, id="ada").id, "ada"),
    "get by mapping": (lambda u, t: u.get({"tenant_id": t, "id": "ada"}).id, "ada"),
    "get by mapping and keyword": (lambda u, t: u.get({"id": "ada"}, tenant_id=t).id, "ada"),
    "get again": (lambda u, t: u.get(u.get("ada", tenant_id=t), consistent=True).id, "ada"),
    "find nothing": (lambda u, t: u.find("nobody", tenant_id=t), None),
    "find by number": (lambda u, t: u.find(5, tenant_id=t), None),
    "exists": (lambda u, t: (u.exists("ada", tenant_id=t), u.exists(tenant_id=t, id="nobody")), (True, False)),
    "batch_write of items": (lambda u, t: u.batch_write([u.get("ada", tenant_id=t)]), None),
    "batch_get by values": (lambda u, t: [x and x.id for x in u.batch_get(["ada", "x"], tenant_id=t)], ["ada", None]),
    "batch_get of a generator": (lambda u, t: ids(u.batch_get({"tenant_id": t, "id": i} for i in ALL)), ALL),
    "list by keyword": (lambda u, t: ids(u.list(tenant_id=t, order="ordered")), ALL),
    "list by value": (lambda u, t: ids(u.list(t, order="ordered")), ALL),
    "iterate a page": (lambda u, t: [x.id for x in u.list(tenant_id=t, order="ordered")], ALL),
    "length of a page": (lambda u, t: len(u.list({"tenant_id": t}, order="ordered")), 6),
    "index of a page": (lambda u, t: u.list(tenant_id=t, order="ordered")[-1].id, "u4"),
    "slice of a page": (lambda u, t: ids(u.list(tenant_id=t, order="ordered")[:2]), ["ada", "u0"]),
    "truth of a page": (lambda u, t: (bool(u.list("nowhere")), bool(u.list(t, order="ordered"))), (False, True)),
    "items over pages": (lambda u, t: ids(u.items(tenant_id=t, limit=1)), ALL),
    "pages": (lambda u, t: [len(p) for p in u.pages(tenant_id=t, order="ordered", limit=4)], [4, 2]),
    "scan": (lambda u, t: ids(u.scan(tenant_id=t)), ALL),
    "count": (lambda u, t: u.count(tenant_id=t), 6),
    "count of an index": (lambda u, t: u.count(tenant_id=t, department="legal"), 5),
    "shards": (lambda u, t: sum(s.items for s in u.shards(tenant_id=t)), 6),
    "filters as mapping": (lambda u, t: ids(u.items(tenant_id=t, filters={"department": "legal"})), LEGAL),
    "filters as tuples": (lambda u, t: ids(u.items(tenant_id=t, filters=[("id", ">", "u2")])), ["u3", "u4"]),
    "filter as one tuple": (lambda u, t: ids(u.items(tenant_id=t, filters=("id", ">", "u2"))), ["u3", "u4"]),
    "filter as one Filter": (lambda u, t: ids(u.items(tenant_id=t, filters=Filter("id", "=", "u2"))), ["u2"]),
    "reverse": (lambda u, t: [x.id for x in u.list(tenant_id=t, reverse=True)], ALL[::-1]),
    "not reverse": (lambda u, t: [x.id for x in u.list(tenant_id=t, reverse=False, order="ordered")], ALL),
    "index by its fields": (lambda u, t: ids(u.list(index="by_email", tenant_id=t, email="u1@example.com")), ["u1"]),
    "index in a mapping": (lambda u, t: ids(u.list({"tenant_id": t, "department": "engines"})), ["ada"]),
    "index by sort field": (lambda u, t: ids(u.list(tenant_id=t, email="ada@example.com")), ["ada"]),
    "index by partition field": (lambda u, t: ids(u.items(tenant_id=t, department="legal")), LEGAL),
    "index by value": (lambda u, t: ids(u.items("legal", index="by_department", tenant_id=t)), LEGAL),
    "table by sort field": (lambda u, t: ids(u.items(tenant_id=t, id="u3")), ["u3"]),
    "several partitions": (lambda u, t: ids(u.items([{"tenant_id": t}, {"tenant_id": "nowhere"}])), ALL),
    "index over several": (
        lambda u, t: ids(u.items([{"department": d} for d in DEPARTMENTS], index="by_department", tenant_id=t)),
        ALL,
    ),
    "update by keyword": (lambda u, t: u.update(u.get("u0", tenant_id=t), display_name="V").display_name, "V"),
    "update by value": (lambda u, t: u.update("u0", tenant_id=t, display_name="W").display_name, "W"),
    "update by mapping": (lambda u, t: u.update({"tenant_id": t, "id": "u0"}, {"display_name": "X"}).display_name, "X"),
    "update with set": (lambda u, t: u.update("u0", tenant_id=t, set={"display_name": "Y"}).display_name, "Y"),
    "update by mapping and keyword": (
        lambda u, t: u.update({"id": "u0"}, {"display_name": "Z"}, tenant_id=t).display_name,
        "Z",
    ),
    "update with a mapping of another type": (
        lambda u, t: u.update("u0", MappingProxyType({"display_name": "M"}), tenant_id=t).display_name,
        "M",
    ),
    "part by a generator": (lambda u, t: u.part("u0", tenant_id=t, fields=iter(["id"])).values, {"id": "u0"}),
    "put a mapping": (
        lambda u, t: u.put({"tenant_id": t, "id": "p", "email": "p@p", "display_name": "P"}).created
        and u.delete("p", tenant_id=t),
        None,
    ),
    "create, replace and delete": (
        lambda u, t: u.delete(u.replace(u.create({"tenant_id": t, "email": "c@c", "display_name": "C"}))),
        None,
    ),
}  # fmt: skip

REFUSED: dict[str, tuple[Call, str]] = {
    "get without tenant": (lambda u, _: u.get("ada"), "write get(tenant_id=..., id=...)"),
    "get without anything": (lambda u, _: u.get(), "write get(tenant_id=..., id=...)"),
    "get None": (lambda u, _: u.get(None), "write get(tenant_id=..., id=...)"),
    "get by two values": (lambda u, t: u.get(t, "ada"), "write get(tenant_id=..., id=...)"),
    "get two": (lambda u, t: u.get(key(t, "u1"), key(t, "u2")), "write get(tenant_id=..., id=...)"),
    "find two": (lambda u, t: u.find(key(t, "u1"), key(t, "u2")), "write find(tenant_id=..., id=...)"),
    "part two": (lambda u, t: u.part(key(t, "u1"), key(t, "u2"), fields=["id"]), "write part(tenant_id=..., id=...)"),
    "exists two": (lambda u, t: u.exists(key(t, "u1"), key(t, "u2")), "write exists(tenant_id=..., id=...)"),
    "delete two": (lambda u, t: u.delete(key(t, "u1"), key(t, "u2")), "write delete(tenant_id=..., id=...)"),
    "update two": (lambda u, t: u.update(key(t, "u1"), {}, key(t, "u2")), "write update(tenant_id=..., id=...)"),
    "get half a key": (lambda u, t: u.get(tenant_id=t), "write get(tenant_id=..., id=...)"),
    "get half a mapping": (lambda u, _: u.get({"id": "ada"}), "tenant_id is part of the key and must be given"),
    "get misspelled": (lambda u, t: u.get("ada", tennant_id=t), "did you mean tenant_id?"),
    "get misspelled mapping": (lambda u, t: u.get({"tenant": t, "id": "ada"}), "did you mean tenant_id?"),
    "get misspelled option": (lambda u, t: u.get("ada", tenant_id=t, consistant=True), "did you mean consistent?"),
    "get a None field": (lambda u, t: u.get(tenant_id=t, id=None), "id is None, which cannot be part of a key; write"),
    "get a list field": (lambda u, t: u.get(tenant_id=[t], id="ada"), "which cannot be part of a key; write a text"),
    "get given twice": (lambda u, t: u.get({"tenant_id": t, "id": "x"}, id="y"), "id is given twice"),
    "get item and field": (lambda u, t: u.get(u.get("ada", tenant_id=t), id="y"), "write get(item) or get(tenant_id="),
    "include numbers": (lambda u, t: u.get("ada", tenant_id=t, include=[1]), "include has 1; write names of fields"),
    "part without fields": (lambda u, t: u.part("ada", tenant_id=t), "write part(..., fields=[...])"),
    "part of numbers": (lambda u, t: u.part("ada", tenant_id=t, fields=[1]), "fields has 1; write names of fields"),
    "check a mapping": (lambda u, t: u.check({"tenant_id": t, "emial": "a@b"}), "did you mean email?"),
    "check and more": (lambda u, t: u.check(u.get("ada", tenant_id=t), timly=True), "did you mean timely?"),
    "check nothing": (lambda u, _: u.check(), "user.v1.User: tenant_id: Field required"),
    "get another entity": (lambda u, _: u.get(Note(tenant="t", id="n")), "get takes a User; it got a Note"),
    "include as text": (lambda u, t: u.get("ada", tenant_id=t, include="x"), "write include=['x']"),
    "delete without tenant": (lambda u, _: u.delete("ada"), "write delete(tenant_id=..., id=...)"),
    "delete if_match item": (
        lambda u, t: u.delete("ada", tenant_id=t, if_match=u.get("ada", tenant_id=t)),
        "write if_match=item.revision",
    ),
    "exists without tenant": (lambda u, _: u.exists("ada"), "write exists(tenant_id=..., id=...)"),
    "batch_get of one key": (lambda u, t: u.batch_get({"tenant_id": t, "id": "x"}), "batch_get takes a list"),
    "batch_get of values": (lambda u, _: u.batch_get(["ada"]), """write batch_get([{"tenant_id": ..., "id": ...}"""),
    "batch_write deletes values": (
        lambda u, _: u.batch_write(delete=["ada"]),
        """write batch_write(delete=[{"tenant_id": ..., "id": ...}, ...])""",
    ),
    "batch_get by keywords": (lambda u, t: u.batch_get(tenant_id=t, id=["ada"]), "batch_get takes a list of keys"),
    "batch_get of two": (lambda u, t: u.batch_get("ada", "u0", tenant_id=t), "write batch_get([...])"),
    "batch_write of two": (lambda u, t: u.batch_write(u.get("ada", tenant_id=t), {}), "write batch_write([...])"),
    "batch_write by keywords": (lambda u, t: u.batch_write([{}], tenant_id=t), "write fields in each item and key"),
    "batch_write misspelled": (lambda u, t: u.batch_write([], delte=[t]), "did you mean delete?"),
    "tries of two": (lambda u, _: u.try_batch_write([], []), "write try_batch_write([...])"),
    "tries misspelled": (lambda u, t: u.try_batch_write([], delte=[t]), "did you mean delete?"),
    "create two": (lambda u, t: u.create(u.get("ada", tenant_id=t), {}), "write batch_write([...])"),
    "put two": (lambda u, t: u.put(u.get("ada", tenant_id=t), {}), "write batch_write([...])"),
    "replace two": (lambda u, t: u.replace(u.get("ada", tenant_id=t), {}), "write batch_write([...])"),
    "check two": (lambda u, t: u.check(u.get("ada", tenant_id=t), {}), "write batch_write([...])"),
    "batch_write of an item": (lambda u, t: u.batch_write(put=u.get("ada", tenant_id=t)), "put takes a list"),
    "create a dict misspelled": (
        lambda u, t: u.create({"tenant_id": t, "emial": "a@b", "email": "a@b", "display_name": "A"}),
        "did you mean email?",
    ),
    "create misspelled": (
        lambda u, t: u.create(tenant_id=t, emial="a@b", display_name="A"),
        "emial: Extra inputs are not permitted; did you mean email?",
    ),
    "create without email": (lambda u, t: u.create(tenant_id=t, display_name="A"), "email: Field required"),
    "create over another": (lambda u, t: u.create(**STRANGER, tenant_id=t, overwrite=True), "; write put(...)"),
    "put if there is none": (lambda u, t: u.put(**STRANGER, tenant_id=t, if_none_match="*"), "; write create(...), wh"),
    "create nothing": (lambda u, _: u.create(), "user.v1.User: tenant_id: Field required"),
    "create a text": (lambda u, _: u.create("ada"), "create takes a User, or its fields by name"),
    "create and more": (
        lambda u, t: u.create(u.get("ada", tenant_id=t), handlin="plain"),
        "did you mean handling?",
    ),
    "put over a text": (lambda u, t: u.put(u.get("ada", tenant_id=t), over="x"), "over takes an item, such as User"),
    "put another entity": (lambda u, _: u.put(Note(tenant="t", id="n")), "put takes a User; it got a Note"),
    "put if_match number": (lambda u, t: u.put(u.get("ada", tenant_id=t), if_match=3), "write if_match=item.revision"),
    "put what put returned": (lambda u, t: u.put(u.put(u.get("ada", tenant_id=t))), "write put(written.item)"),
    "update what put returned": (
        lambda u, t: u.update(u.put(u.get("ada", tenant_id=t)), department="x"),
        "write update(written.item)",
    ),
    "update misspelled": (lambda u, t: u.update("ada", tenant_id=t, departmnt="x"), "did you mean department?"),
    "set misspelled": (lambda u, t: u.update("ada", tenant_id=t, set={"dpartmnt": 1}), "did you mean department?"),
    "update add a list": (lambda u, t: u.update("ada", tenant_id=t, add=["x"]), "write the values by field, add={...}"),
    "update remove None": (lambda u, t: u.update("ada", tenant_id=t, remove=None), "remove is None; write a list"),
    "update a key": (lambda u, t: u.update(u.get("ada", tenant_id=t), id="y"), "part of the key, which cannot change"),
    "update set a text": (lambda u, t: u.update("ada", "department", tenant_id=t), "write the new values by field"),
    "update twice": (
        lambda u, t: u.update("ada", {"department": "x"}, tenant_id=t, department="y"),
        "department is updated twice",
    ),
    "update remove a text": (lambda u, t: u.update("ada", tenant_id=t, remove="department"), "remove=['department']"),
    "update an item that was assigned to": (lambda u, t: u.update(u.get("ada", tenant_id=t)), "write update(item, fie"),
    "update if_match an ETag": (lambda u, t: u.update("ada", tenant_id=t, if_match='"x"'), "write if_match=item.rev"),
    "create a derived class": (lambda u, t: u.create(Admin(**STRANGER, tenant_id=t)), "whose level would not"),
    "list without anything": (lambda u, _: u.list(), "tenant_id is part of the key and must be given"),
    "list misspelled field": (lambda u, t: u.list(tennant_id=t), "did you mean tenant_id?"),
    "list misspelled mapping": (lambda u, t: u.list({"tenant": t}), "did you mean tenant_id?"),
    "list misspelled argument": (lambda u, t: u.list(tenant_id=t, limt=5), "did you mean limit?"),
    "list misspelled index": (lambda u, t: u.list(tenant_id=t, index="by_mail"), "did you mean by_email?"),
    "list by unlisted field": (lambda u, t: u.list(tenant_id=t, display_name="A"), "write filters={'display_name'"),
    "list by an unknown operator": (lambda u, t: u.list(tenant_id=t, email={"after": "a"}), "use one of eq, ne"),
    "list by a mapping": (lambda u, t: u.list(tenant_id=t, display_name={"after": 1}), "write filters={'display_name'"),
    "list without tenant": (lambda u, _: u.list(department="legal"), "by_department by tenant_id and department"),
    "list field twice": (lambda u, t: u.list({"tenant_id": t}, tenant_id=t), "tenant_id is given twice"),
    "list several ids": (lambda u, t: u.list(tenant_id=t, id=["a", "b"]), """; write id={"in": [...]}"""),
    "list several tenants": (lambda u, t: u.list(tenant_id=[t, "x"]), """a list of partitions, [{"tenant_id": ..."""),
    "list by a field and its operator": (lambda u, t: u.list(tenant_id=t, id__gte="a"), """; write id={"gte": ...}"""),
    "list index and prefix": (lambda u, t: u.list(tenant_id=t, email="a@b", prefix="a"), "leave out prefix"),
    "update half a mapping": (lambda u, _: u.update({"id": "u0"}), "tenant_id is part of the key and must be given"),
    "update by three values": (lambda u, t: u.update("ada", {}, t), "write update(tenant_id=..., id=...)"),
    "list by two at once": (lambda u, t: u.list(t, "legal"), "got 2 values; write tenant_id=..."),
    "pages by two at once": (lambda u, t: u.pages(t, "legal"), "got 2 values; write tenant_id=..."),
    "items by two at once": (lambda u, t: u.items(t, "legal"), "got 2 values; write tenant_id=..."),
    "scan by two at once": (lambda u, t: u.scan(t, "legal"), "got 2 values; write tenant_id=..."),
    "count by two at once": (lambda u, t: u.count(t, "legal"), "got 2 values; write tenant_id=..."),
    "shards by two at once": (lambda u, t: u.shards(t, "legal"), "got 2 values; write tenant_id=..."),
    "index as list": (lambda u, t: u.list(t, index=["by_email"]), "write the name of an index: by_email, by_dep"),
    "index without": (lambda u, t: u.list(t, index=5), "index is a int; write the name of an index"),
    "list by two values": (lambda u, _: u.list("x", index="by_department"), "write tenant_id=..., department=..."),
    "list of texts": (lambda u, t: u.list([t]), "write its fields"),
    "limit as text": (lambda u, t: u.list(tenant_id=t, limit="10"), "it must be a number from 1 to 1000"),
    "order asc": (lambda u, t: u.list(tenant_id=t, order="asc"), 'write direction="asc" or "desc"'),
    "reverse and asc": (lambda u, t: u.list(tenant_id=t, reverse=True, direction="asc"), "contradicts direction='asc'"),
    "reverse as text": (lambda u, t: u.list(tenant_id=t, reverse="false"), "it must be True or False"),
    "consistent as text": (lambda u, t: u.list(tenant_id=t, consistent="false"), "it must be True or False"),
    "get consistent as text": (lambda u, t: u.get("u0", tenant_id=t, consistent="false"), "it must be True or False"),
    "find consistent as none": (lambda u, t: u.find("u0", tenant_id=t, consistent=None), "it must be True or False"),
    "part consistent as text": (
        lambda u, t: u.part("u0", tenant_id=t, fields=["id"], consistent="no"), "it must be True or False",
    ),
    "exists consistent as text": (lambda u, t: u.exists("u0", tenant_id=t, consistent="no"), "it must be True or"),
    "batch consistent as text": (lambda u, t: u.batch_get(["a"], tenant_id=t, consistent="no"), "it must be True or"),
    "batch strict as text": (lambda u, t: u.batch_get(["a"], tenant_id=t, strict="no"), "strict is 'no'; it must be"),
    "batch whole as text": (lambda u, _: u.batch_write([], whole="no"), "whole is 'no'; it must be True or False"),
    "tried whole as text": (lambda u, _: u.try_batch_write([], whole="no"), "whole is 'no'; it must be True or"),
    "timely as text": (lambda u, t: u.check(u.get("u0", tenant_id=t), timely="no"), "it must be True or False"),
    "strict as number": (lambda u, t: u.list(tenant_id=t, strict=1), "strict is 1; it must be True or False"),
    "fields as number": (lambda u, t: u.list(tenant_id=t, fields=3), "fields is 3; write a list of names"),
    "start as number": (lambda u, t: u.list(tenant_id=t, start=5), "start is 5; it must be a text"),
    "budget as number": (lambda u, t: u.list(tenant_id=t, budget=5), "write Budget(requests=..., read_units=...)"),
    "fields as text": (lambda u, t: u.list(tenant_id=t, fields="id"), "write a list, ['id']"),
    "fields misspelled": (lambda u, t: u.list(tenant_id=t, fields=["emial"]), "did you mean email?"),
    "cursor of a page": (lambda u, t: u.list(tenant_id=t, cursor=u.list(tenant_id=t)), "write cursor=page.cursor"),
    "filter misspelled": (lambda u, t: u.list(tenant_id=t, filters={"departmnt": "x"}), "did you mean department?"),
    "filter operator": (lambda u, t: u.list(tenant_id=t, filters=[("id", "==", "x")]), "use one of eq, ne"),
    "filter of no operator": (lambda u, t: u.list(tenant_id=t, filters={"id": {"after": "a"}}), "use one of eq, ne"),
    "filter as text": (lambda u, t: u.list(tenant_id=t, filters="id"), 'write {"field": value}'),
    "filter of two": (lambda u, t: u.list(tenant_id=t, filters=[("id", "x")]), 'such as ("field", "gte", value)'),
    "scan without anything": (lambda u, _: list(u.scan()), "tenant_id is part of the key and must be given"),
    "scan workers as text": (lambda u, t: list(u.scan(tenant_id=t, workers="4")), "workers is '4'"),
    "scan with a limit": (lambda u, t: u.scan(tenant_id=t, limit=5), "a scan has no pages: write list(limit=5)"),
    "count with a limit": (lambda u, t: u.count(tenant_id=t, limit=5), "count has no pages: write up_to=5"),
    "count misspelled": (lambda u, t: u.count(tennant_id=t), "did you mean tenant_id?"),
    "subscript": (lambda u, _: u["ada"], "write get(...)"),
    "iterate all": (lambda u, _: list(iter(u)), "write items(...)"),
    "length of all": (lambda u, _: len(u), "write count(...)"),
    "in": (lambda u, _: "ada" in u, "write exists(...)"),
    "get by an index": (lambda u, t: u.get(tenant_id=t, department="legal"), "write list(tenant_id=..., department="),
    "get or a default": (lambda u, t: u.get("x", tenant_id=t, default=None), "write find(...), which returns None if"),
    "get some fields": (lambda u, t: u.get("ada", tenant_id=t, fields=["id"]), "write part(..., fields=[...])"),
    "get by a naive time": (lambda _u, _t: key_text("at", datetime(2024, 1, 1)), "as in datetime.now(UTC)"),  # noqa: DTZ001
    "get by a text for a number": (lambda _u, _t: key_text("seq", "1", "06d"), "write a number"),
    "batch_get by keyword": (lambda u, t: u.batch_get(keys=["ada"], tenant_id=t), "write the keys first"),
    "batch_get of none misspelled": (lambda u, t: u.batch_get([], tenant=t), "did you mean tenant_id?"),
    "batch_write of items by name": (lambda u, _: u.batch_write(items=[]), "of batch_write; write put=[...]"),
    "create a class": (lambda u, _: u.create(User), "it got the class User"),
    "create almost nothing": (lambda u, t: u.create(tenant_id=t), "Field required (and 1 more)"),
    "list descending": (lambda u, t: u.list(tenant_id=t, desc=True), "write reverse=True"),
    "list a page size": (lambda u, t: u.list(tenant_id=t, page_size=5), "write limit=..."),
    "list an offset": (lambda u, t: u.list(tenant_id=t, offset=5), "write cursor=page.cursor"),
    "list sorted": (lambda u, t: u.list(tenant_id=t, order_by="id"), 'write order="ordered", or the index'),
    "list where": (lambda u, t: u.list(tenant_id=t, where="x"), "write filters={...}"),
    "list that begins with": (lambda u, t: u.list(tenant_id=t, begins_with="a"), 'write prefix="..."'),
    "filter by several": (
        lambda u, t: u.list(tenant_id=t, filters={"department": ("a", "b")}),
        """write filters={'department': {"in": [...]}}""",
    ),
}  # fmt: skip


@pytest.mark.parametrize("snippet", WORKING)
def test_what_people_type_works(users: Collection[User], tenant: str, snippet: str) -> None:
    call, expected = WORKING[snippet]

    assert call(users, tenant) == expected


@pytest.mark.parametrize("snippet", REFUSED)
def test_what_does_not_work_names_the_cure(users: Collection[User], tenant: str, snippet: str) -> None:
    call, cure = REFUSED[snippet]

    with pytest.raises(DynashardError) as refused:
        call(users, tenant)

    assert cure in str(refused.value)
    assert not [name for name in INSIDE if name in str(refused.value)]


def test_an_argument_that_a_call_does_not_take_is_not_proposed_for_itself(users: Collection[User], tenant: str) -> None:
    with pytest.raises(
        DynashardError, match=r"cursor is neither an argument of listings nor a field of user\.v1\.User$"
    ):
        users.count(tenant_id=tenant, cursor="x")


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("save", "use put"),
        ("query", "use list"),
        ("fetch", "use get"),
        ("get_or_create", "use find, then create"),
        ("delete_many", "use batch_write(delete=[...])"),
        ("lst", "did you mean list?"),
    ],
)
def test_methods_of_other_libraries_name_ours(users: Collection[User], name: str, cure: str) -> None:
    with pytest.raises(AttributeError, match=rf"Collection has no attribute {name}; {re.escape(cure)}"):
        getattr(users, name)


def test_an_entity_is_opened_by_its_class(db: Dynashard) -> None:
    mistakes: list[Any] = ["user.v1.User", Note(tenant="t", id="n"), dict]
    for wrong in mistakes:
        with pytest.raises(DynashardError, match=r"as in db.collection\(User\)"):
            db.collection(wrong)
    with pytest.raises(AttributeError, match=r"open the items of an entity with db.collection\(User\)"):
        _ = db.users  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"no attribute create; open the items of an entity with db.collection"):
        _ = db.create  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("save", "; write db.collection(Note).put(...)"),
        ("etag", "; write item.revision"),
        ("tenannt", "; did you mean tenant?"),
        ("_x", ""),
    ],
)
def test_an_item_names_where_its_writes_and_fields_are(name: str, cure: str) -> None:
    with pytest.raises(AttributeError, match=rf"has no attribute '?{name}'?{re.escape(cure)}$"):
        getattr(Note(tenant="t", id="n"), name)


OPENED: dict[str, tuple[dict[str, Any], str]] = {
    "a URL": ({"transport": "http://127.0.0.1:1"}, "it got 'http://127.0.0.1:1'"),
    "nothing": ({"transport": None}, "as in Dynashard(connect(...), ...); it got None"),
    "a number": ({"transport": 5}, "it got a int"),
    "no table": ({"table": None}, 'table is None; write its name, table="..."'),
    "one key": ({"cursor_keys": KEYS[0]}, "cursor_keys is a text; write a list of texts"),
    "a short key": ({"cursor_keys": ["short"]}, "at least 16 bytes"),
    "a key of bytes": ({"cursor_keys": [b"a secret of 16 bytes"]}, "must be a list of texts"),
    "keys left out": ({"cursor_keys": None}, "must be a list of texts"),
    "keys as a number": ({"cursor_keys": 5}, "must be a list of texts"),
    "one key by another name": (
        {"cursor_key": KEYS[0]},
        "cursor_key is not an argument of Dynashard; write cursor_keys=",
    ),
    "an argument misspelled": ({"leese": 5}, "did you mean lease?"),
    "one name twice": ({"topology_table": "t"}, "topology_table is 't', as table is; name another one"),
    "a lease as text": ({"lease": "30"}, "lease is '30'; write a number of seconds"),
}


@pytest.mark.parametrize("mistake", OPENED)
def test_what_cannot_be_opened_names_the_cure(wire: Transport, mistake: str) -> None:
    wrong, cure = OPENED[mistake]
    arguments: dict[str, Any] = {"transport": wire, "table": "t", "topology_table": "c", "cursor_keys": KEYS, **wrong}

    with pytest.raises(DynashardError) as refused:
        Dynashard(**arguments)

    assert cure in str(refused.value)
    assert not [name for name in INSIDE if name in str(refused.value)]


CONNECTED: dict[str, tuple[dict[str, Any], str]] = {
    "a region as boto3 names it": ({"region_name": "eu-west-1"}, "not an argument of connect; write region="),
    "an endpoint": ({"endpoint": "http://127.0.0.1:1"}, "write endpoint_url="),
    "a name misspelled": ({"acces_key": "x"}, "did you mean access_key?"),
    "a region as a number": ({"region": 5}, 'region is 5; write its name, such as region="eu-west-1"'),
}


@pytest.mark.parametrize("mistake", CONNECTED)
def test_what_cannot_be_connected_names_the_cure(mistake: str) -> None:
    wrong, cure = CONNECTED[mistake]

    with pytest.raises(ConfigurationError) as refused:
        connect(**wrong)

    assert cure in str(refused.value)


def test_the_local_stack_is_found_by_variables_and_not_by_a_url() -> None:
    url: Any = "http://127.0.0.1:8001"

    with pytest.raises(ConfigurationError, match=r'write Dynashard\.local\({"DYNAMODB_ENDPOINT": "http://\.\.\."}\)'):
        Dynashard.local(url)
    with pytest.raises(ConfigurationError, match="port is not an argument of Dynashard"):
        Dynashard.local({}, port=8001)


@pytest.mark.parametrize(
    ("start", "cure"),
    [
        (lambda resharder: resharder.start(User, 8), r"it got the class User; write Scope\(definition\(User\)\)"),
        (lambda resharder: resharder.start("User", 8), r"it got a str; write Scope\(definition\(User\)\)"),
        (lambda resharder: resharder.start(Scope(definition(User)), "8"), "the new count is '8'; write a number"),
        (lambda _: Scope(User), r"write Scope\(definition\(User\)\)"),  # type: ignore[arg-type]
        (lambda _: Scope(definition(User), index="by_email"), "write index=entity.indexes"),  # type: ignore[arg-type]
        (lambda _: definition(cast("Any", "User")), "'User': is not the class of an entity: write the class itself"),
    ],
)
def test_a_resize_of_what_is_no_scope_names_the_cure(db: Dynashard, start: Callable[[Any], Any], cure: str) -> None:
    with pytest.raises(DynashardError, match=cure):
        start(db.resharder())


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("has_more", "write page.cursor is not None"),
        ("next_page", "write cursor=page.cursor"),
        ("total", "write len(page)"),
    ],
)
def test_parts_of_pages_of_other_libraries_name_ours(users: Collection[User], name: str, cure: str) -> None:
    with pytest.raises(AttributeError, match=rf"Page has no attribute {name}; {re.escape(cure)}"):
        getattr(users.list("nowhere"), name)


@pytest.mark.parametrize(
    ("name", "cure"),
    [("email", 'a field is named by its text, "email"'), ("get", "write db.collection(User)")],
)
def test_a_class_names_where_its_items_and_fields_are(name: str, cure: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(f"User has no attribute {name}; {cure}")):
        getattr(User, name)


def test_a_misspelled_method_of_the_service_names_ours(db: Dynashard) -> None:
    with pytest.raises(AttributeError, match=r"Dynashard has no attribute create_table; did you mean create_tables\?"):
        getattr(db, "create_table")  # noqa: B009 - mypy refuses the name


def test_a_connection_is_opened_by_a_session_and_not_by_its_name() -> None:
    session: Any = "default"

    with pytest.raises(ConfigurationError, match=r"session is a str; write session=boto3\.Session\(\.\.\.\)"):
        connect(session=session)


@pytest.mark.parametrize("wrong", [5, [], User])
def test_a_transaction_of_what_is_no_step_names_the_cure(db: Dynashard, wrong: Any) -> None:
    with pytest.raises(DynashardError, match=r"transact takes steps; it got a \w+; write transact\(Create\(\.\.\.\), "):
        db.transact(wrong)


NOTE, CLASS, MAPPING, LIST, TEXT, ZERO = list[Any]([Note(tenant="t", id="n"), User, {"id": "x"}, ["x"], "x", 0])
STEPS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "create a mapping": (lambda _: Create(MAPPING), "Create takes an item, such as User(...); it got a dict"),
    "put a class": (lambda _: Put(CLASS), "Put takes an item, such as User(...); it got the class User"),
    "put if_match item": (lambda ada: Put(ada, if_match=ada), "write if_match=item.revision"),
    "put over a text": (lambda ada: Put(ada, over=TEXT), "over takes an item"),
    "put over and if_match": (lambda ada: Put(ada, over=ada, if_match="x"), "over names a revision itself"),
    "update an item": (lambda ada: Update(ada, {"status": "active"}), "takes the class of an entity and a key"),
    "update by value": (lambda _: Update(User, TEXT, set={}), "Update: the key is 'x'; write its fields"),
    "update another's key": (lambda _: Update(User, NOTE), "takes the key of a User; it got a Note"),
    "update set a text": (lambda ada: Update(User, ada, set=TEXT), "write the values by field, set={...}"),
    "update remove a text": (lambda ada: Update(User, ada, remove="department"), "write remove=['department']"),
    "update add a list": (lambda ada: Update(User, ada, add=LIST), "write the values by field, add={...}"),
    "update if_match item": (lambda ada: Update(User, ada, if_match=ada), "write if_match=item.revision"),
    "update at least a number": (lambda ada: Update(User, ada, at_least=ZERO), "write the values by field, at_least="),
    "update missing": (lambda ada: Update(User, ada, missing=TEXT), "it must be refuse or create"),
    "delete another's key": (lambda _: Delete(User, NOTE), "takes the key of a User; it got a Note"),
    "delete missing": (lambda ada: Delete(User, ada, missing=LIST), "missing is ['x']; it must be refuse or ignore"),
    "delete if_match item": (lambda ada: Delete(User, ada, if_match=ada), "write if_match=item.revision"),
    "update as collections do": (
        lambda ada: Update(ada, department="x"),  # type: ignore[call-arg]
        "department is not an argument of Update; write Update(User, user, set=",
    ),
    "update without a key": (lambda ada: Update(ada, set={}), "write Update(User, user, set={...})"),  # type: ignore[call-arg]
    "delete without a class": (cast("Any", Delete), "write Delete(User, user)"),
    "check without a class": (cast("Any", Check), "write Check(User, user, revision=user.revision)"),
    "create nothing": (lambda _: Create(), "write Create(user)"),  # type: ignore[call-arg]
    "check an item": (lambda ada: Check(User, ada, ada), "write revision=item.revision"),
    "check another's key": (lambda _: Check(User, NOTE, None), "takes the key of a User"),
}  # fmt: skip


@pytest.mark.parametrize("snippet", STEPS)
def test_a_wrong_step_names_the_cure(users: Collection[User], tenant: str, snippet: str) -> None:
    make, cure = STEPS[snippet]

    with pytest.raises(DynashardError) as refused:
        make(users.get("ada", tenant_id=tenant))

    assert cure in str(refused.value)
    assert not [name for name in INSIDE if name in str(refused.value)]


def test_what_cannot_be_stored_does_not_stop_the_others_of_a_batch(users: Collection[User], tenant: str) -> None:
    def people() -> Any:
        yield {"tenant_id": tenant, "id": "b1", "email": "b1@b", "display_name": "B"}
        yield {"tenant_id": tenant, "id": "b2", "display_name": "B"}
        yield {"tenant_id": tenant, "id": "b3", "email": "b3@b", "display_name": "B"}

    outcomes = users.try_batch_write(people(), delete=["nobody", {"tenant_id": tenant, "id": "none"}])

    assert [getattr(each, "field", each) for each in outcomes] == [None, "email", None, "tenant_id", None]
    assert [each and each.id for each in users.batch_get(["b1", "b2", "b3"], tenant_id=tenant)] == ["b1", None, "b3"]
    users.batch_write(delete=users.batch_get(["b1", "b3"], tenant_id=tenant))


def test_calls_with_the_same_classes_share_a_collection_and_what_it_has_learned(db: Dynashard) -> None:
    assert db.collection(User) is db.collection(User)
    assert db.collection(User, Note) is not db.collection(User)


def test_a_collection_of_another_store_is_another(wire: Transport, local_table: str) -> None:
    db = Dynashard(wire, table=local_table, topology=declared_counts(topology_table=None), cursor_keys=KEYS)
    before = db.collection(User)

    db.store = replace(db.store, batch_concurrency=1)

    assert db.collection(User) is not before
