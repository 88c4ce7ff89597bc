"""`dynashard logs` on the local stack: the lines of all functions about an item, a request and a tenant."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dynashard_local.deploy.deployment import run
from tests.e2e.local_process import ROOT, LocalProcess
from tests.e2e.systems import soon
from tests.engine.command_line import CommandLine

pytestmark = pytest.mark.e2e

SIGNED = {"Authorization": "AWS4-HMAC-SHA256 any"}
EVE = {"subject": "eve", "scopes": ["users:read", "users:write", "users:all"]}
Logs = Callable[..., list[dict[str, Any]]]
ADA = {"email": "ada@example.com", "display_name": "Ada"}


def printed(stack: LocalProcess, *arguments: str, **variables: str) -> str:
    """Return what the command prints."""
    environment = {"DATA_DIR": str(stack.data_dir), "PATH": "/usr/bin:/bin", "HOME": str(stack.data_dir), **variables}
    return run([str(ROOT / ".venv/bin/dynashard"), "logs", *arguments], ROOT, environment)


@pytest.fixture
def logs(
    local_stack: LocalProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Logs:
    """Return a function that returns the rows that the command prints, run in this process."""
    command = CommandLine(tmp_path, {"DATA_DIR": str(local_stack.data_dir)}, monkeypatch, capsys)
    monkeypatch.chdir(ROOT)

    def rows(*arguments: str) -> list[dict[str, Any]]:
        outcome = command.run("logs", *arguments, "--json")
        assert outcome.status == 0, outcome.err
        found: list[dict[str, Any]] = json.loads(outcome.out)
        return found

    return rows


def test_the_logs_say_who_deleted_an_item(local_stack: LocalProcess, logs: Logs) -> None:
    client, tenant, item = local_stack.client("logged"), "logged", "users/the-one"
    stored = client.put(f"/v1/{item}", json=ADA).json()["revision"]
    accepted = client.patch(f"/v1/{item}", json={"department": "maths"}, headers={"Prefer": "respond-async"})
    soon(lambda: client.get(accepted.headers["location"]).json()["state"], "done")
    changed = client.get(f"/v1/{item}").json()["revision"]
    gone = client.delete(f"/v1/{item}")
    soon(
        lambda: [row["operation"] for row in logs("item", item) if row.get("before") == changed],
        ["deleted"],
    )

    rows = [row for row in logs("item", item) if row.get("method") != "GET"]

    shown = [(row["service"].removeprefix("dynashard-"), row.get("method") or row["operation"]) for row in rows]
    assert sorted(shown) == [
        ("api", "DELETE"), ("api", "PATCH"), ("api", "PUT"),
        ("changes", "created"), ("changes", "deleted"), ("changes", "updated"), ("writer", "update"),
    ]  # fmt: skip
    by = dict(zip(shown, rows, strict=True))
    assert by["api", "DELETE"]["request_id"] == gone.headers["x-request-id"]
    assert by["api", "DELETE"]["caller"]
    assert by["api", "PUT"]["revision"] == by["changes", "created"]["revision"] == stored
    assert by["writer", "update"]["request_id"] == accepted.headers["x-request-id"]
    assert by["writer", "update"]["revision"] == by["changes", "updated"]["revision"] == changed
    assert {row["tenant"] for row in rows} == {tenant}

    deletion = f"method=DELETE route=/v1/users/{{id}} item={item} status=204"
    [line] = [line for line in printed(local_stack, "item", item, COLUMNS="80").splitlines() if deletion in line]
    assert f"request_id={gone.headers['x-request-id']}" in line
    assert gone.headers["x-request-id"] in printed(local_stack, "item", item, COLUMNS="400")
    assert "method=DELETE" not in printed(local_stack, "item", item, COLUMNS="400")

    of_request = logs("request", accepted.headers["x-request-id"])
    assert [row["service"] for row in of_request] == ["dynashard-api", "dynashard-writer", "dynashard-changes"]
    assert len(logs("tenant", tenant)) >= len(rows)


def test_a_direct_invocation_leaves_its_line(local_stack: LocalProcess, logs: Logs) -> None:
    event = {"operation": "update", "entity": "users", "tenant_id": "invoked", "key": {"id": "nobody"}, "patch": {}}
    batch = {"operation": "batch_write", "entity": "users", "tenant_id": "invoked", "delete": [{"id": "nobody"}]}
    with local_stack.client(None) as client:
        for each in (event, batch):
            answer = client.post("/2015-03-31/functions/commands/invocations", json=each, headers=SIGNED)
            assert "ok" in answer.json(), answer.text

    rows = [row for row in logs("item", "users/nobody") if row.get("tenant") == "invoked"]

    assert [(row["operation"], row.get("code")) for row in rows] == [("update", "not_found"), ("delete", None)]
    assert {(row["service"], row["tenant"]) for row in rows} == {("dynashard-commands", "invoked")}
    assert len({row["request_id"] for row in rows}) == 2


def test_the_logs_say_who_deleted_an_item_in_a_batch(local_stack: LocalProcess, logs: Logs) -> None:
    client, item = local_stack.client("batched"), "users/of-a-batch"
    stored = client.put(f"/v1/{item}", json=ADA).json()["revision"]
    requests = [
        {"operation": "put", "item": {**ADA, "id": "of-a-batch"}, "if_match": stored},
        {"operation": "create", "item": {**ADA, "id": "beside"}},
    ]
    put = client.post("/v1/users/batch", json={"requests": requests})
    replaced, created = [each["result"] for each in put.json()["outcomes"]]
    gone = client.post("/v1/users/batch", json={"requests": [{"operation": "delete", "key": {"id": "of-a-batch"}}]})
    event: dict[str, Any] = {"operation": "batch", "entity": "users", "tenant_id": "batched", "caller": EVE}
    event["requests"] = [{"operation": "delete", "key": {"id": "of-a-batch"}}]
    client.post("/2015-03-31/functions/commands/invocations", json=event, headers=SIGNED)

    rows = [row for row in logs("item", item) if row["service"] != "dynashard-changes"]

    assert [(row["service"].removeprefix("dynashard-"), row.get("operation"), row.get("code")) for row in rows] == [
        ("api", None, None),
        ("api", "put", None),
        ("api", "delete", None),
        ("commands", "delete", "not_found"),
    ]
    assert [row["request_id"] for row in rows[1:3]] == [each.headers["x-request-id"] for each in (put, gone)]
    assert rows[2]["caller"] == rows[0]["caller"]
    assert rows[3]["caller"] == "eve"
    soon(
        lambda: {
            row["item"]: row["revision"]
            for row in logs("request", put.headers["x-request-id"])
            if row["service"] == "dynashard-changes"
        },
        {item: replaced["item"]["revision"], "users/beside": created["revision"]},
    )


def test_an_item_whose_id_the_server_makes_is_named_by_its_location(local_stack: LocalProcess, logs: Logs) -> None:
    created = local_stack.client("posting").post("/v1/users", json=ADA)

    rows = logs("item", created.headers["location"])

    [posted] = [row for row in rows if row.get("method") == "POST"]
    assert (posted["revision"], posted["status"]) == (created.json()["revision"], "201")


def test_saved_queries_run_over_the_local_logs(local_stack: LocalProcess, logs: Logs) -> None:
    local_stack.client("counted").get("/v1/users")

    rows = logs("expensive-listings")

    assert [row["requests"] for row in rows if row.get("tenant") == "counted"] == ["1"]
