"""What callers must not learn or do beside plain requests: by conditions, cursors, replays, policies, other owners."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from openapi_schema_validator import OAS31Validator

from dynashard import Entity, Index, Key, Shards
from dynashard.transport import Transport
from dynashard_serving.api.openapi.document import document_of
from dynashard_serving.commands.answers import Commands
from dynashard_serving.declare import ANYONE, Access, Exposed, FamilyListing
from dynashard_serving.domain import declared, domain_of
from tests.api_caller import Caller
from tests.engine.api.api_on_engine import TOPOLOGY, caller_on, idempotency_table, settings_of
from tests.engine.commands.commands_on_engine import commands_on
from tests.engine.raw_dynamodb import RawDynamoDB
from tests.roles import as_function

pytestmark = pytest.mark.engine

WRITES = ("users:read", "users:write")
BODY = {"id": "u1", "email": "u1@example.com", "display_name": "Secret", "manager_id": "ada"}
Who = Callable[..., Caller]
OPERATIONS = {"GET": "get", "PATCH": "update", "DELETE": "delete"}


@pytest.fixture(scope="module")
def idempotency(dynamodb: RawDynamoDB) -> Iterator[str]:
    with idempotency_table(dynamodb) as name:
        yield name


@pytest.fixture
def api(transport: Transport, table: str, idempotency: str) -> Caller:
    return caller_on(transport, table, idempotency)


@pytest.fixture
def ada(api: Caller) -> Caller:
    """A manager who has stored a user."""
    ada = api.who("ada", *WRITES)
    assert ada.post("/v1/users", BODY).status == 201
    return ada


@pytest.fixture
def bob(api: Caller) -> Caller:
    return api.who("bob", *WRITES)


@pytest.mark.parametrize("header", ["if-none-match", "if-match"])
@pytest.mark.parametrize("tag", ["*", "the revision", '"another"'])
@pytest.mark.parametrize("method", ["GET", "HEAD", "PATCH", "DELETE"])
def test_conditions_do_not_reveal_another_owners_item(
    ada: Caller, bob: Caller, method: str, header: str, tag: str
) -> None:
    revision = ada.get("/v1/users/u1").etag
    headers = {header: revision if tag == "the revision" else tag}
    body: Any = {} if method == "PATCH" else None

    theirs = bob.send(method, "/v1/users/u1", body, headers=headers)
    none = bob.send(method, "/v1/users/u2", body, headers=headers)

    assert (theirs.status, none.status) == (404, 404)
    assert "etag" not in theirs.headers
    if method in ("GET", "PATCH"):
        assert theirs.code == none.code == "not_found"


@pytest.mark.usefixtures("ada")
@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
def test_an_item_that_may_not_be_read_is_refused_in_the_words_of_one_that_does_not_exist(
    bob: Caller, method: str
) -> None:
    def answer(name: str) -> dict[str, Any]:
        refused = bob.send(method, f"/v1/users/{name}", {} if method == "PATCH" else None)
        return {**refused.json, "request_id": "", "detail": refused.json["detail"].replace(name, "")}

    def outcome(name: str) -> Any:
        request = {"operation": OPERATIONS[method], "key": {"id": name}, **({"patch": {}} if method == "PATCH" else {})}
        return bob.post("/v1/users/batch", {"requests": [request]}).json

    assert answer("u1") == answer("u2")
    assert outcome("u1") == outcome("u2")


def test_a_look_up_by_unique_fields_does_not_reveal_another_owners_item(api: Caller) -> None:
    contacts = ("contacts:read", "contacts:write", "contacts:all")
    body = {"user_id": "ada", "channel": "email", "address": "ada@example.com"}
    assert api.who("ada", *contacts).post("/v1/contact-methods", body).status == 201
    look_up = {"query": "user_id=ada&channel=email&address=ada@example.com"}

    assert [
        item["user_id"] for item in api.who("ada", *contacts[:2]).get("/v1/contact-methods", **look_up).json["items"]
    ] == ["ada"]
    assert [
        item["user_id"] for item in api.who("bob", *contacts).get("/v1/contact-methods", **look_up).json["items"]
    ] == ["ada"]
    theirs = api.who("bob", *contacts[:2]).get("/v1/contact-methods", **look_up)
    assert theirs.status == 403 or theirs.json["items"] == []


@pytest.mark.parametrize("query", ["fields=display_name", "fields=id", "consistent=true", "fields=id&consistent=true"])
def test_no_parameter_of_a_read_shows_another_owners_item(ada: Caller, bob: Caller, query: str) -> None:
    assert bob.get("/v1/users/u1", query=query).code == "not_found"
    assert ada.get("/v1/users/u1", query=query).status == 200
    assert ada.get("/v1/users/u1", query="fields=display_name").json == {"display_name": "Secret"}


def test_a_put_is_refused_before_its_conditions(ada: Caller, bob: Caller) -> None:
    mine = {**BODY, "manager_id": "bob"}
    revision = ada.get("/v1/users/u1").etag

    for headers in ({}, {"if-match": revision}, {"if-match": '"x"'}, {"if-none-match": "*"}):
        assert bob.put("/v1/users/u1", mine, headers=headers).code == "forbidden"

    assert ada.get("/v1/users/u1").json["manager_id"] == "ada"


def test_an_owner_can_neither_give_an_item_away_nor_take_one(api: Caller, ada: Caller, bob: Caller) -> None:
    assert ada.patch("/v1/users/u1", {"manager_id": "bob"}).code == "forbidden"
    assert ada.patch("/v1/users/u1", {"manager_id": None}).code == "forbidden"
    assert ada.put("/v1/users/u1", {**BODY, "manager_id": "bob"}).code == "forbidden"
    assert bob.patch("/v1/users/u1", {"manager_id": "bob"}).code == "not_found"
    assert bob.post("/v1/users", {**BODY, "id": "u9"}).code == "forbidden"

    given = api.who("root", *WRITES, "users:all").patch("/v1/users/u1", {"manager_id": "bob"})

    assert given.status == 200
    assert (ada.get("/v1/users/u1").status, bob.get("/v1/users/u1").status) == (404, 200)


def test_a_refused_patch_reveals_nothing_by_its_validation(ada: Caller, bob: Caller) -> None:
    assert bob.patch("/v1/users/u1", {"email": "no"}).status == bob.patch("/v1/users/u2", {"email": "no"}).status
    assert ada.get("/v1/users/u1").json["email"] == BODY["email"]


def test_a_replay_answers_only_the_caller_who_sent_the_first_request(api: Caller) -> None:
    every = (*WRITES, "users:all")
    ada, eve = api.who("ada", *every), api.who("eve", *every)
    headers = {"idempotency-key": "k1"}
    body = {"email": "e@example.com", "display_name": "E"}
    first = ada.post("/v1/users", body, headers=headers)

    assert ada.post("/v1/users", body, headers=headers).json == first.json
    assert eve.post("/v1/users", body, headers=headers).code == "idempotency_key_reused"
    assert api.who("ada").post("/v1/users", body, headers=headers).code == "insufficient_scope"
    assert api.who("ada", "users:read").post("/v1/users", body, headers=headers).code == "insufficient_scope"
    assert api.who("ada", *WRITES).post("/v1/users", body, headers=headers).code == "forbidden"
    nameless = Caller(api.app, {"tenant_id": "abc", "scope": " ".join(every)})
    assert nameless.post("/v1/users", body, headers=headers).code == "idempotency_key_reused"


def test_who_may_write_and_not_read_gets_key_and_revision_alone(api: Caller, ada: Caller) -> None:
    writer = api.who("ada", "users:write")

    patched = writer.patch("/v1/users/u1", {})
    put = writer.put("/v1/users/u1", BODY)
    created = writer.post("/v1/users", {**BODY, "id": "u3"})

    assert [answer.status for answer in (patched, put, created)] == [204, 204, 201]
    for answer in (patched, put, created):
        assert answer.content == b""
        assert "preference-applied" not in answer.headers
    assert created.headers["location"] == "/v1/users/u3"
    assert [put.etag, created.etag] == [ada.get(f"/v1/users/{name}").etag for name in ("u1", "u3")]
    assert ada.get("/v1/users/u1").json["display_name"] == "Secret"


def test_the_document_describes_what_such_a_writer_is_answered_in_a_batch(api: Caller, ada: Caller) -> None:
    assert ada.get("/v1/users/u1").status == 200
    writer = api.who("ada", "users:write")
    described = document_of(declared())
    schema = {"$ref": "#/components/schemas/UserOutcomes", "components": described["components"]}

    batch = {
        "requests": [
            {"operation": "create", "item": {**BODY, "id": "u4"}},
            {"operation": "put", "item": {**BODY, "id": "u5"}},
            {"operation": "update", "key": {"id": "u1"}, "patch": {}},
        ]
    }
    found = writer.post("/v1/users/batch", batch).json

    OAS31Validator(schema).validate(found)
    assert [each["result"].get("id") for each in found["outcomes"]] == ["u4", None, "u1"]
    assert found["outcomes"][1]["result"]["item"].keys() == {"tenant_id", "id", "revision"}


@pytest.mark.parametrize("patch", [[{"op": "test", "path": "/display_name", "value": "Secret"}], []])
def test_a_json_patch_is_no_way_to_read_for_who_may_only_write(api: Caller, ada: Caller, patch: list[Any]) -> None:
    headers = {"content-type": "application/json-patch+json"}
    writer = api.who("ada", "users:write")

    assert writer.patch("/v1/users/u1", patch, headers=headers).code == "forbidden"
    assert ada.patch("/v1/users/u1", patch, headers=headers).status == 200
    assert api.who("bob", *WRITES).patch("/v1/users/u1", patch, headers=headers).code == "not_found"


def test_a_listing_has_the_owners_items_alone_and_its_cursor_is_theirs(api: Caller) -> None:
    root = api.who("root", *WRITES, "users:all")
    for number in range(30):
        user = {**BODY, "id": f"u{number:02}", "manager_id": ("ada", "bob", None)[number % 3]}
        root.post("/v1/users", user)
    ada, bob = api.who("ada", "users:read"), api.who("bob", "users:read")

    for query in ("", "order=ordered&", "consistent=true&", "prefix=u1&", "order=ordered&consistent=true&"):
        seen, cursor = [], ""
        while True:
            page = ada.get("/v1/users", query=f"{query}limit=4&cursor={cursor}" if cursor else f"{query}limit=4").json
            seen += page["items"]
            cursor = page["cursor"]
            if cursor is None:
                break
            stolen = bob.get("/v1/users", query=f"{query}limit=4&cursor={cursor}")
            assert stolen.code == "invalid_cursor"
            assert root.get("/v1/users", query=f"{query}limit=4&cursor={cursor}").code == "invalid_cursor"
        wanted = [f"u{number:02}" for number in range(0, 30, 3)]
        if "prefix" in query:
            wanted = [each for each in wanted if each.startswith("u1")]
        assert sorted(item["id"] for item in seen) == wanted, query
        if "ordered" in query:
            assert [item["id"] for item in seen] == wanted
    assert {item["manager_id"] for item in root.get("/v1/users").json["items"]} == {"ada", "bob", None}


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("manager_id=bob", None),
        ("index=by_manager&manager_id=bob&manager_id=ada", "forbidden"),
        ("index=by_manager&manager_id=bob", "forbidden"),
        ("manager_id=ada", None),
        ("index=by_email", None),
        ("email=other@example.com", None),
        ("department=eng", None),
        ("fields=id,display_name", None),
        ("status=active", None),
    ],
)
def test_no_query_lists_another_owners_items(api: Caller, query: str, code: str | None) -> None:
    root = api.who("root", *WRITES, "users:all")
    root.post("/v1/users", {**BODY, "department": "eng"})
    other = {
        "id": "u2",
        "email": "other@example.com",
        "display_name": "Hidden",
        "manager_id": "bob",
        "department": "eng",
    }
    root.post("/v1/users", other)

    answer = api.who("ada", "users:read").get("/v1/users", query=query)

    assert "Hidden" not in answer.content.decode()
    assert (answer.code if answer.status >= 400 else None) == code


def test_a_listing_of_the_owners_index_costs_what_it_shows(api: Caller, capfd: pytest.CaptureFixture[str]) -> None:
    root = api.who("root", *WRITES, "users:all")
    for number in range(60):
        root.post("/v1/users", {**BODY, "id": f"u{number:02}", "manager_id": "ada" if number < 2 else "bob"})
    capfd.readouterr()

    items = api.who("ada", "users:read").get("/v1/users", query="limit=50").json["items"]

    line = json.loads(capfd.readouterr().out.splitlines()[-1])
    assert len(items) == 2
    assert line["requests"] <= 4
    assert line["read_units"] <= 2


class Task(
    Entity,
    name="task.v1.AccessTask",
    key=Key("{tenant_id}:{list}", "{id}"),
    shards=Shards(4),
    indexes=[Index("GSI1", "by_owner", partition="{tenant_id}:{owner}", sort="{id}")],
):
    tenant_id: str
    list: str
    id: str
    owner: str
    state: str = "open"
    notes: Any = None


class Secret(Entity, name="task.v1.AccessSecret", key=Key("{tenant_id}", "s_{id}", prefix="access")):
    tenant_id: str
    id: str
    owner: str
    text: str = "hidden"


class Open(Entity, name="task.v1.AccessOpen", key=Key("{tenant_id}", "o_{id}", prefix="access")):
    tenant_id: str
    id: str


def broken(_caller: Any, _operation: str, item: Any) -> bool:
    if item is not None and item.state == "broken":
        raise ValueError("a policy that fails")
    return item is None or item.owner == _caller.subject


TASKS = Exposed(
    Task, path="tasks", filters=("state",), distinct=("id",), access=Access(read=ANYONE, write=ANYONE, policy=broken)
)
SECRETS = Exposed(Secret, path="secrets", access=Access(read="s:read", write="s:write", owner="{owner}"))
OPEN = Exposed(Open, path="open")
FAMILY = FamilyListing((Secret, Open), path="all")


@pytest.fixture
def tasks(transport: Transport, table: str) -> Caller:
    from dynashard_serving.api.app import build_app  # noqa: PLC0415

    allowed = as_function("api", transport, table, TOPOLOGY)
    return Caller(build_app(settings_of(table), allowed, domain=domain_of(TASKS, SECRETS, OPEN, FAMILY)))


def test_a_policy_judges_each_item_of_a_page_and_refuses_what_would_go_round_it(
    tasks: Caller, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    del capfd
    ada, bob = tasks.who("ada"), tasks.who("bob")
    for number in range(12):
        who = (ada, bob)[number % 2]
        task = {"list": "l", "id": f"t{number:02}", "owner": ("ada", "bob")[number % 2]}
        assert who.post("/v1/tasks", task).status == 201
    everything: list[Any] = []
    cursor, pages = "", 0
    while cursor is not None:
        query = f"list=l&limit=3&order=ordered{f'&cursor={cursor}' if cursor else ''}"
        page = ada.get("/v1/tasks", query=query).json
        everything, cursor, pages = everything + page["items"], page["cursor"], pages + 1

    assert [item["id"] for item in everything] == [f"t{number:02}" for number in range(0, 12, 2)]
    assert pages >= 4
    assert ada.get("/v1/tasks", query="list=l&fields=id").json["items"][0].keys() == {"id"}
    for asked in ("strict=true", "distinct=id"):
        assert ada.get("/v1/tasks", query=f"list=l&{asked}").code == "forbidden"
    assert bob.patch("/v1/tasks/l/t00", {"state": "x"}).code == "not_found"
    assert ada.patch("/v1/tasks/l/t00", {"state": "broken"}).code == "forbidden"
    assert "the policy of task.v1.AccessTask failed" in caplog.text
    assert ada.patch("/v1/tasks/l/t00", {"owner": "bob"}).code == "forbidden"


def test_a_family_shows_of_each_entity_what_the_caller_may_list(tasks: Caller) -> None:
    ada, bob = tasks.who("ada", "s:read", "s:write"), tasks.who("bob", "s:read", "s:write")
    ada.post("/v1/secrets", {"id": "1", "owner": "ada"})
    bob.post("/v1/secrets", {"id": "2", "owner": "bob"})
    ada.post("/v1/open", {"id": "3"})

    assert [item["id"] for item in ada.get("/v1/all", query="order=ordered").json["items"]] == ["3", "1"]
    assert [item["id"] for item in bob.get("/v1/all", query="order=ordered").json["items"]] == ["3", "2"]
    assert tasks.who("ada").get("/v1/all").code == "insufficient_scope"
    assert tasks.who("ada").get("/v1/open/3").status == 200


@pytest.fixture
def commands(transport: Transport, table: str) -> Commands:
    return commands_on(transport, table, exposed=(TASKS, SECRETS, OPEN))


def test_batches_by_direct_invocation_judge_each_item(commands: Commands) -> None:
    def send(operation: str, subject: str | None, **members: Any) -> Any:
        caller = {} if subject is None else {"caller": {"subject": subject, "scopes": ["s:read", "s:write"]}}
        answer = commands.answer({"operation": operation, "entity": "secrets", "tenant_id": "abc", **caller, **members})
        assert answer["ok"], answer
        return answer["result"]

    mine = [{"id": str(number), "owner": ("ada", "bob")[number % 2]} for number in range(4)]
    written = send("batch_write", "ada", put=mine)["put"]
    assert [each["ok"] for each in written] == [True, False, True, False]
    assert {each["error"]["code"] for each in written if not each["ok"]} == {"forbidden"}
    send("batch_write", None, put=mine)

    stolen = send(
        "batch_write", "ada", put=[{"id": "1", "owner": "ada"}], delete=[{"id": "3"}, {"id": "2"}, {"id": "9"}]
    )
    assert stolen["put"][0]["error"]["code"] == "forbidden"
    # One that the caller may not read is answered as one that does not exist.
    assert [each["ok"] for each in stolen["delete"]] == [True, True, True]
    keys = [{"id": str(number)} for number in range(4)]
    assert [each["ok"] for each in send("batch_get", "ada", keys=keys)] == [True, False, False, False]
    assert [each["ok"] for each in send("batch_get", None, keys=keys)] == [True, True, False, True]
    assert send("count", "ada") == 1
    assert send("count", None) == 3


@pytest.mark.parametrize(
    ("stated", "field"),
    [
        (7, "caller"),
        ("ada", "caller"),
        ([], "caller"),
        ({"subject": 7}, "caller.subject"),
        ({"scopes": "a"}, "caller.scopes"),
        ({"name": "ada"}, "caller.name"),
        ({"claims": []}, "caller.claims"),
    ],
)
def test_a_caller_that_is_stated_wrongly_is_refused(commands: Commands, stated: Any, field: str) -> None:
    answer = commands.answer({"operation": "list", "entity": "secrets", "tenant_id": "abc", "caller": stated})

    assert answer["error"]["code"] == "validation_failed"
    assert [each["field"] for each in answer["error"]["errors"]] == [field]


def test_a_stated_caller_without_scopes_has_no_rights(commands: Commands) -> None:
    answer = commands.answer({"operation": "list", "entity": "secrets", "tenant_id": "abc", "caller": {}})

    assert answer["error"]["code"] == "insufficient_scope"
