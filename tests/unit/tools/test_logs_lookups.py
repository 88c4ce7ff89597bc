"""`dynashard logs request|item|tenant`: the lines of all functions about one request, item or tenant."""

import json
from pathlib import Path
from typing import Any

import pytest

from dynashard_tools.failure import CommandError
from dynashard_tools.logs.command import logs
from dynashard_tools.logs.insights import Row, record_of, run_query
from dynashard_tools.logs.lookups import MOST, look_up

pytestmark = pytest.mark.unit


def line(second: int, service: str, **members: Any) -> dict[str, Any]:
    text = json.dumps({"service": service, **members})
    return record_of(service, f"2026-11-23 10:00:{second:02d}.000", text)


LINES = [
    line(1, "api", message="request", request_id="r-1", tenant="abc", method="PUT", item="users/ada", revision="A"),
    line(2, "changes", message="change", tenant="abc", operation="created", item="users/ada", revision="A"),
    line(3, "api", message="request", request_id="r-2", tenant="abc", method="GET", item="users/ada", revision="A"),
    line(4, "api", message="request", request_id="r-3", tenant="abc", method="DELETE", item="users/ada", caller="eve"),
    line(5, "changes", message="change", tenant="abc", operation="deleted", item="users/ada", before="A"),
    line(6, "api", message="request", request_id="r-4", tenant="xyz", method="PUT", item="users/a%40b", revision="B"),
    record_of("access", "2026-11-23 10:00:07.000", '{"requestId": "r-4", "ip": "192.0.2.1"}'),
]


def asked(subject: str, value: str) -> list[Row]:
    return look_up(subject, value, lambda text: run_query(text, LINES))


def test_an_items_lines_say_who_deleted_it() -> None:
    rows = asked("item", "users/ada")

    assert [row.get("method") or row["operation"] for row in rows] == ["PUT", "created", "GET", "DELETE", "deleted"]
    assert [row["caller"] for row in rows if row.get("method") == "DELETE"] == ["eve"]


@pytest.mark.parametrize("spelling", ["users/a@b", "users/a%40b", "/v1/users/a%40b"])
def test_an_item_is_found_by_any_spelling_of_its_path(spelling: str) -> None:
    assert [row["request_id"] for row in asked("item", spelling)] == ["r-4"]


@pytest.mark.parametrize("path", ["users", "/v1/users/", "ada"])
def test_a_path_without_an_item_is_refused_instead_of_finding_nothing(path: str) -> None:
    with pytest.raises(CommandError, match="names no item: write its path, such as users/ada"):
        asked("item", path)


def test_a_requests_lines_include_those_of_the_change_that_it_made() -> None:
    assert [row["service"] for row in asked("request", "r-1")] == ["api", "changes"]
    # A read shows a revision that another request wrote.
    assert [row["service"] for row in asked("request", "r-2")] == ["api"]


def test_a_request_is_found_in_the_gateways_log_too() -> None:
    assert [row["@timestamp"][17:19] for row in asked("request", "r-4")] == ["06", "07"]


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ("users/nobody", ""),
        ("/v1/user/ada", "no entity has the path user; did you mean users?\n"),
        ("x/y/z", "path x\n"),
    ],
)
def test_a_path_that_nothing_is_served_at_is_named_if_nothing_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], item: str, said: str
) -> None:
    (tmp_path / "api.log").touch()
    monkeypatch.setenv("DATA_DIR", str(tmp_path))

    logs("item", item)

    shown = capsys.readouterr()
    assert shown.out == "item: nothing in the last 60 minutes\n"
    assert shown.err.endswith(said) if said else shown.err == ""


def test_a_tenants_lines_are_of_no_other() -> None:
    assert {row["tenant"] for row in asked("tenant", "abc")} == {"abc"}
    assert len(asked("tenant", "abc")) == len(asked("tenant", "tenant_id=abc")) == 5


def test_of_more_lines_than_are_shown_the_newest_are_shown_in_the_order_of_their_time() -> None:
    lines = [line(second, "api", tenant="abc", request_id="r") for second in (1, 2) for _ in range(MOST - 1)]

    rows = look_up("tenant", "abc", lambda text: run_query(text, lines))

    assert [row["@timestamp"][17:19] for row in rows] == ["01"] + ["02"] * (MOST - 1)


def test_a_value_cannot_change_the_query() -> None:
    assert asked("tenant", 'x" or tenant = "abc') == []
