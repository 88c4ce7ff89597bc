"""The metrics of real requests: pages have items and read units, wrong cursors are counted, and rates have zeros."""

import json
from typing import Any

import pytest

from dynashard.transport import Transport
from dynashard_serving.api.request_log import WARNING
from dynashard_serving.telemetry import metric_names as names
from tests.api_caller import Caller, a_user
from tests.engine.api.api_on_engine import caller_on

pytestmark = pytest.mark.engine


@pytest.fixture
def caller(transport: Transport, table: str) -> Caller:
    """A caller of an API that writes metrics, on a table with three users."""
    made = caller_on(transport, table, environment="dev")
    for user in ("ada", "bob", "cyd"):
        assert made.put(f"/v1/users/{user}", a_user(email=f"{user}@example.com")).status == 201
    return made


def metrics_of(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The last record of metrics, by name."""
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines() if '"_aws"' in line]
    [directive] = records[-1]["_aws"]["CloudWatchMetrics"]
    return {each["Name"]: records[-1][each["Name"]] for each in directive["Metrics"]}


def test_a_page_has_its_items_and_read_units(caller: Caller, capsys: pytest.CaptureFixture[str]) -> None:
    caller.get("/v1/users", query="limit=2")

    found = metrics_of(capsys)
    assert found[names.ITEMS_LISTED] == [2]
    assert found[names.LISTING_READ_UNITS] == found[names.READ_UNITS]
    assert found[names.LISTING_READ_UNITS][0] > 0
    assert (found[names.SERVER_ERRORS], found[names.OUTCOME_UNKNOWN]) == ([0], [0])


def test_pages_of_families_and_edges_have_items_too(caller: Caller, capsys: pytest.CaptureFixture[str]) -> None:
    for path in ("/v1/on-call", "/v1/follows?of=Actor.5&way=forward"):
        answer = caller.get(path.partition("?")[0], query=path.partition("?")[2])
        found = metrics_of(capsys)
        assert (answer.status, found.get(names.ITEMS_LISTED)) == (200, [0]), path


def test_a_wrong_cursor_is_counted_and_a_single_item_is_no_page(
    caller: Caller, capsys: pytest.CaptureFixture[str]
) -> None:
    assert caller.get("/v1/users", query="cursor=wrong").code == "invalid_cursor"
    wrong = metrics_of(capsys)
    caller.get("/v1/users/ada")
    single = metrics_of(capsys)

    assert wrong[names.CURSOR_ERRORS] == [1]
    assert not {names.CURSOR_ERRORS, names.ITEMS_LISTED, names.LISTING_READ_UNITS} & {*single}


def test_a_line_names_the_item_that_its_request_is_about(caller: Caller, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    made = caller.post("/v1/users", a_user(id="dan", email="dan@example.com"))
    read = caller.get("/v1/users/dan")
    caller.get("/v1/users")
    caller.get("/v1/users/nobody")

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert [(line.get("item"), line.get("revision")) for line in lines] == [
        ("users/dan", made.etag.strip('"')),
        ("users/dan", read.etag.strip('"')),
        (None, None),
        ("users/nobody", None),
    ]
    assert {line["caller"] for line in lines} == {"tester"}


BATCH: list[dict[str, Any]] = [
    {"operation": "get", "key": {"id": "bob"}},
    {"operation": "create", "item": a_user(email="new@example.com")},
    {"operation": "put", "item": a_user(id="cyd", email="no address")},
    {"operation": "update", "key": {"id": "bob"}, "patch": {"display_name": "Bob"}},
    {"operation": "delete", "key": {"id": "ada"}},
]


def test_each_request_of_a_batch_has_a_line_beside_that_of_the_batch(
    caller: Caller, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()

    answer = caller.post("/v1/users/batch", {"requests": BATCH})

    whole, *lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    got, made, _, changed, _ = [each.get("result") for each in answer.json["outcomes"]]
    assert [
        (line["operation"], line.get("item"), line.get("revision"), line.get("code"), line["entity"]) for line in lines
    ] == [
        ("get", "users/bob", got["revision"], None, "user.v1.User"),
        ("create", f"users/{made['id']}", made["revision"], None, "user.v1.User"),
        ("put", "users/cyd", None, "validation_failed", "user.v1.User"),
        ("update", "users/bob", changed["revision"], None, "user.v1.User"),
        ("delete", "users/ada", None, None, "user.v1.User"),
    ]
    of_request = ("request_id", "tenant", "caller")
    assert {tuple(line[name] for name in of_request) for line in (whole, *lines)} == {
        (answer.headers["x-request-id"], whole["tenant"], "tester")
    }
    # Only the batch itself counts in metrics and in queries over requests.
    assert (whole["message"], "_aws" in whole, "item" in whole) == ("request", True, False)
    assert {(line["message"], "_aws" in line) for line in lines} == {("batch", False)}


def test_a_level_above_info_hides_the_lines_of_a_batchs_requests(
    transport: Transport, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    caller = caller_on(transport, table, environment="dev", log_level=WARNING)

    caller.post("/v1/users/batch", {"requests": BATCH})

    assert [json.loads(line)["message"] for line in capsys.readouterr().out.splitlines()] == ["request"]


def test_without_keys_the_lines_of_a_batch_name_no_item(
    transport: Transport, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    caller = caller_on(transport, table, environment="dev", log_item_keys=False)

    caller.post("/v1/users/batch", {"requests": BATCH})

    _, *lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == len(BATCH)
    assert not {"item", "caller"} & {name for line in lines for name in line}
