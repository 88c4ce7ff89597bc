"""Records of asynchronous writes: only who sent a write may read its record, and nobody changes one."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dynashard.runtime import Runtime
from dynashard.transport import Transport
from tests.api_caller import ALL_SCOPES, Answer, Caller, a_user
from tests.engine.commands.commands_on_engine import commands_on
from tests.engine.serving.access_table import ID, OTHER, OWNER, RECORDS, RECORDS_INVOKED, RecordRoute
from tests.engine.writer.queue_world import QueueWorld

pytestmark = pytest.mark.engine

EVERY = tuple(ALL_SCOPES.split())
LATER = {"prefer": "respond-async"}
TARGET = "/v1/users/sent-by-the-owner"


@pytest.fixture
def world(transport: Transport, table: str, tmp_path: Path) -> QueueWorld:
    return QueueWorld(transport, table, tmp_path)


@pytest.fixture
def record(world: QueueWorld) -> str:
    """The id of the record of a write that the owner has sent."""
    return sent(world.caller.who(OWNER, *EVERY))


def sent(caller: Caller, target: str = TARGET) -> str:
    """Send a write to be done later, and return the id of its record."""
    accepted = caller.put(target, a_user(), headers=LATER)
    assert accepted.status == 202, accepted.content
    return accepted.headers["location"].rpartition("/")[2]


def filled(members: Any, record: str) -> Any:
    return json.loads(json.dumps(members).replace(ID, record))


def over_rest(caller: Caller, row: RecordRoute, record: str) -> tuple[str | None, str]:
    """Return the code of a refusal, that of a part included, and the text of the answer."""
    body = filled(row.members, record) if row.method == "POST" else None
    answer = caller.send(row.method, row.route.replace("{id}", record), body)
    text = answer.content.decode()
    if answer.status >= 400:
        return answer.code, text
    parts = answer.json.get("outcomes", ()) if isinstance(answer.json, dict) else ()
    return next((part["error"]["code"] for part in parts if not part["ok"]), None), text


def invoked(commands: Any, row: RecordRoute, record: str, caller: Mapping[str, Any] | str) -> tuple[str | None, str]:
    """Return the same of a direct invocation."""
    about = {"operation": row.operation, "entity": "operations", "tenant_id": "abc", "caller": caller}
    answer = commands.answer({**about, **filled(row.members, record)})
    text = json.dumps(answer)
    if not answer["ok"]:
        return str(answer["error"]["code"]), text
    parts = answer["result"] if isinstance(answer["result"], list) else ()
    return next((str(part["error"]["code"]) for part in parts if not part["ok"]), None), text


def judge(row: RecordRoute, who: str, answered: tuple[str | None, str]) -> None:
    """Compare an answer with the table."""
    code, text = answered
    refused = row.whole or who != OWNER
    assert code == (row.refusal if refused else None), (row, who, text)
    assert (TARGET in text) is not refused, (row, who, text)


@pytest.mark.parametrize("scopes", [(), EVERY], ids=["no scopes", "every scope"])
@pytest.mark.parametrize("who", [OWNER, OTHER])
@pytest.mark.parametrize("row", RECORDS, ids=lambda row: row.operation)
def test_a_record_is_shown_to_who_sent_the_write_alone(
    world: QueueWorld, record: str, row: RecordRoute, who: str, scopes: tuple[str, ...]
) -> None:
    judge(row, who, over_rest(world.caller.who(who, *scopes), row, record))


@pytest.mark.parametrize("who", [OWNER, OTHER])
@pytest.mark.parametrize("row", RECORDS_INVOKED, ids=lambda row: row.operation)
def test_direct_invocation_for_a_caller_shows_the_same(
    world: QueueWorld, record: str, row: RecordRoute, who: str
) -> None:
    commands = commands_on(world.transport.inner, world.table, runtime=Runtime(world.clock))

    judge(row, who, invoked(commands, row, record, {"subject": who, "scopes": list(EVERY)}))
    assert invoked(commands, row, record, "service")[0] is None


def test_a_listing_shows_of_several_records_the_callers_own(world: QueueWorld) -> None:
    owner, other = (world.caller.who(who, *EVERY) for who in (OWNER, OTHER))
    mine = {sent(owner, f"/v1/users/{number}") for number in range(3)}
    theirs = {sent(other, f"/v1/users/{number}") for number in range(3, 5)}

    for caller, ids in ((owner, mine), (other, theirs)):
        for query in ("", "state=pending", "consistent=true", "order=ordered", "fields=id"):
            assert {item["id"] for item in caller.get("/v1/operations", query=query).json["items"]} == ids, query
    assert owner.get("/v1/operations", query="strict=true").code == "forbidden"


def test_callers_without_a_subject_see_the_records_of_such_callers(world: QueueWorld, record: str) -> None:
    nameless = Caller(world.caller.app, {"tenant_id": "abc", "scope": ALL_SCOPES})
    own = sent(nameless, "/v1/users/nameless")

    assert [item["id"] for item in nameless.get("/v1/operations").json["items"]] == [own]
    assert nameless.get(f"/v1/operations/{record}").status == 404
    assert world.caller.who(OWNER, *EVERY).get(f"/v1/operations/{own}").status == 404


@pytest.mark.parametrize("who", [OWNER, OTHER])
def test_nobody_changes_or_deletes_a_record(world: QueueWorld, record: str, who: str) -> None:
    caller = world.caller.who(who, *EVERY)
    commands = commands_on(world.transport.inner, world.table, runtime=Runtime(world.clock))
    one, body = f"/v1/operations/{record}", {"method": "PUT", "target": "x", "state": "done"}
    before = world.operations.get({"tenant_id": "abc", "id": record}, consistent=True)

    answers: list[Answer] = [
        caller.delete(one),
        caller.put(one, body),
        caller.patch(one, {"state": "done"}),
        caller.post("/v1/operations", body),
    ]
    part = {"operation": "delete", "key": {"id": record}}
    batch = caller.post("/v1/operations/batch", {"requests": [part]})
    members: dict[str, Any] = {"entity": "operations", "tenant_id": "abc", "caller": {"subject": who}}
    direct = [
        commands.answer({**members, **part}),
        commands.answer({**members, "operation": "put", "item": {"id": record, **body}}),
        commands.answer({**members, "operation": "batch_write", "delete": [{"id": record}]}),
        commands.answer({**members, "operation": "batch", "requests": [part]}),
    ]

    assert [answer.status for answer in answers] == [405] * 4
    assert [each["error"]["code"] for each in (*batch.json["outcomes"], *direct[:3], *direct[3]["result"])] == [
        "method_not_allowed"
    ] * 5
    assert world.operations.get({"tenant_id": "abc", "id": record}, consistent=True) == before


def test_a_record_is_not_repeated_to_another_subject(world: QueueWorld) -> None:
    headers = {**LATER, "idempotency-key": "k"}
    owner, other = (world.caller.who(who, *EVERY) for who in (OWNER, OTHER))

    first = owner.put(TARGET, a_user(), headers=headers)
    assert owner.put(TARGET, a_user(), headers=headers).json == first.json
    assert other.put(TARGET, a_user(), headers=headers).code == "idempotency_key_reused"


# An alternative of a rule: the scope, or the group


def groups(*names: str) -> dict[str, str]:
    """Return the claim as API Gateway passes it on."""
    return {"cognito:groups": f"[{' '.join(names)}]"}


@pytest.mark.parametrize(
    ("scopes", "claims", "code"),
    [
        (("incidents:read",), groups("admins"), None),
        (("incidents:read",), groups("users", "admins"), None),
        (("incidents:read",), {"cognito:groups": "admins"}, None),
        ((), groups("admins"), None),
        (("incidents:delete",), {}, None),
        (("incidents:read", "incidents:write"), {}, "insufficient_scope"),
        (("incidents:write",), groups("users"), "insufficient_scope"),
        (("incidents:write",), groups("administrators", "not-admins"), "insufficient_scope"),
        (("incidents:write",), {"groups": "[admins]"}, "insufficient_scope"),
        (("admins", "incidents:write"), {}, "insufficient_scope"),
    ],
)
def test_an_incident_is_deleted_by_who_has_the_scope_or_is_in_the_group(
    world: QueueWorld, scopes: tuple[str, ...], claims: Mapping[str, str], code: str | None
) -> None:
    world.caller.post("/v1/incidents", {"id": "i1", "title": "x"})
    world.caller.post("/v1/incidents", {"id": "i2", "title": "x"})
    commands = commands_on(world.transport.inner, world.table, runtime=Runtime(world.clock))
    request = {"operation": "delete", "entity": "incidents", "tenant_id": "abc", "key": {"id": "i2"}}
    listed = {name: text.strip("[]").split() for name, text in claims.items()}

    answer = world.caller.who("ada", *scopes, **claims).delete("/v1/incidents/i1")
    direct = commands.answer({**request, "caller": {"subject": "ada", "scopes": list(scopes), "claims": listed}})

    assert (answer.code if answer.status >= 400 else None) == code
    assert (None if direct["ok"] else direct["error"]["code"]) == code
    left = [item["id"] for item in world.caller.get("/v1/incidents", query="order=ordered").json["items"]]
    assert left == ([] if code is None else ["i1", "i2"])


def test_the_group_gives_no_other_right(world: QueueWorld) -> None:
    world.caller.post("/v1/incidents", {"id": "i1", "title": "x"})
    admin = world.caller.who("ada", **groups("admins"))

    assert admin.get("/v1/incidents/i1").code == "insufficient_scope"
    assert admin.patch("/v1/incidents/i1", {"title": "y"}).code == "insufficient_scope"
    assert admin.get("/v1/incidents").code == "insufficient_scope"
