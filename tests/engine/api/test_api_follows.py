"""Follows over REST: edges that are listed and counted from both ends."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.api_caller import Caller

pytestmark = pytest.mark.engine


def follow(caller: Caller, node: str, other: str) -> None:
    assert caller.post("/v1/follows", {"node": node, "other": other}).status == 201


def others(caller: Caller, **query: str) -> list[str]:
    return [item["other"] for item in caller.get("/v1/follows", query=query).json["items"]]


def counts(caller: Caller, node: str) -> tuple[int, int]:
    found = caller.get("/v1/follows/counts", query={"of": node}).json
    return found["following"], found["followers"]


def test_an_edge_is_listed_from_both_ends_and_counted(caller: Caller) -> None:
    created = caller.post("/v1/follows", {"node": "User.9", "other": "Actor.5"})

    assert (created.status, created.headers["location"]) == (201, "/v1/follows/User.9/Actor.5")
    assert caller.get("/v1/follows/User.9/Actor.5").json == created.json
    assert others(caller, of="User.9") == ["Actor.5"]
    assert others(caller, of="Actor.5", way="backward") == ["User.9"]
    assert others(caller, of="Actor.5") == []
    assert (counts(caller, "User.9"), counts(caller, "Actor.5")) == ((1, 0), (0, 1))


def test_following_twice_changes_nothing(caller: Caller) -> None:
    first = caller.post("/v1/follows", {"node": "User.9", "other": "Actor.5"})
    second = caller.post("/v1/follows", {"node": "User.9", "other": "Actor.5"})

    assert (first.status, second.status) == (201, 200)
    assert second.json == first.json
    assert counts(caller, "Actor.5") == (0, 1)


def test_an_edge_is_removed_from_both_ends_once(caller: Caller) -> None:
    follow(caller, "User.9", "Actor.5")

    assert caller.delete("/v1/follows/User.9/Actor.5").status == 204
    assert caller.delete("/v1/follows/User.9/Actor.5").code == "not_found"
    assert caller.get("/v1/follows/User.9/Actor.5").status == 404
    assert others(caller, of="Actor.5", way="backward") == []
    assert counts(caller, "Actor.5") == (0, 0)


def test_edges_are_listed_by_type_and_page_by_page(caller: Caller) -> None:
    for other in ("Actor.1", "Actor.2", "Actor.3", "Series.1"):
        follow(caller, "User.9", other)

    assert others(caller, of="User.9", type="Actor") == ["Actor.1", "Actor.2", "Actor.3"]
    assert others(caller, of="User.9", type="Actor", order="newest")[:1] == ["Actor.3"]
    first = caller.get("/v1/follows", query={"of": "User.9", "limit": "3"})
    assert 'rel="next"' in first.headers["link"]
    rest = caller.get("/v1/follows", query={"of": "User.9", "limit": "3", "cursor": first.json["cursor"]})
    assert [item["other"] for item in [*first.json["items"], *rest.json["items"]]] == others(caller, of="User.9")


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ({}, {"of": "missing"}),
        ({"of": "nobody"}, {"of": "invalid_value"}),
        ({"of": "User.1:2"}, {"of": "invalid_value"}),
        ({"of": "User.1", "order": "newest"}, {"type": "invalid_query"}),
        ({"of": "User.1", "way": "up"}, {"way": "literal_error"}),
        ({"of": "User.1", "limit": "0"}, {"limit": "greater_than_equal"}),
        ({"of": "User.1", "direction": "asc"}, {"direction": "unknown_parameter"}),
    ],
)
def test_a_bad_listing_is_refused_by_field(caller: Caller, query: Mapping[str, str], fields: dict[str, str]) -> None:
    assert caller.get("/v1/follows", query=query).fields == fields


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"node": "User.1"}, ["other"]),
        ({"node": "User.1", "other": "x"}, ["other"]),
        ({"node": "User.1", "other": "Actor.1", "since": "2026-01-01T00:00:00Z"}, ["since"]),
        ([], [""]),
    ],
)
def test_a_bad_edge_is_refused_by_field(caller: Caller, body: Any, fields: list[str]) -> None:
    assert list(caller.post("/v1/follows", body).fields) == fields


@pytest.mark.parametrize(
    ("node", "other", "at_fault"),
    [
        ("User.a/b", "Actor.1", "node"),
        ("User.a?b", "Actor.1", "node"),
        ("User.a", "Actor.1?", "other"),
        ("User.a", "Actor.1\n2", "other"),
    ],
)
def test_an_edge_that_no_path_could_address_is_refused(caller: Caller, node: str, other: str, at_fault: str) -> None:
    refused = caller.post("/v1/follows", {"node": node, "other": other})

    assert (refused.status, refused.fields) == (422, {at_fault: "unaddressable"})


def test_the_path_of_an_edge_reads_it_even_with_a_slash_in_its_last_id(caller: Caller) -> None:
    created = caller.post("/v1/follows", {"node": "User.ä", "other": "Actor.a/b c"})

    assert caller.get(created.headers["location"]).json == created.json


EDGE = "/v1/follows/User.9/Actor.5"


def test_an_edge_that_has_not_changed_is_304(caller: Caller) -> None:
    follow(caller, "User.9", "Actor.5")
    tag = caller.get(EDGE).headers["etag"]

    unchanged = caller.get(EDGE, headers={"if-none-match": f'"other", W/{tag}'})

    assert (unchanged.status, unchanged.content, unchanged.headers["etag"]) == (304, b"", tag)
    assert caller.get(EDGE, headers={"if-none-match": '"other"'}).status == 200
    assert caller.get(EDGE, headers={"if-match": '"other"'}).code == "revision_mismatch"


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"if-match": '"other"'}, "revision_mismatch"),
        ({"if-match": 'W/"other"'}, "revision_mismatch"),
        ({"if-none-match": "*"}, "precondition_failed"),
        ({"if-match": "other"}, "malformed_header"),
    ],
)
def test_an_edge_is_not_removed_if_a_condition_does_not_hold(
    caller: Caller, headers: Mapping[str, str], code: str
) -> None:
    follow(caller, "User.9", "Actor.5")

    assert caller.delete(EDGE, headers=headers).code == code
    assert counts(caller, "Actor.5") == (0, 1)


def test_an_edge_is_removed_at_the_revision_that_was_read(caller: Caller) -> None:
    follow(caller, "User.9", "Actor.5")
    tag = caller.get(EDGE).headers["etag"]

    assert caller.delete(EDGE, headers={"if-match": f'"other", {tag}'}).status == 204
    assert caller.delete(EDGE, headers={"if-match": tag}).code == "not_found"
    assert counts(caller, "Actor.5") == (0, 0)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/follows", "GET, POST, HEAD"),
        ("PUT", "/v1/follows/User.1/Actor.1", "GET, DELETE, HEAD"),
        ("POST", "/v1/follows/counts", "GET, HEAD"),
    ],
)
def test_an_edge_refuses_other_methods(caller: Caller, method: str, path: str, allowed: str) -> None:
    answer = caller.send(method, path, {})

    assert (answer.status, answer.headers["allow"]) == (405, allowed)


def test_an_invalid_cursor_is_400(caller: Caller) -> None:
    answer = caller.get("/v1/follows", query={"of": "User.1", "cursor": "x"})

    assert (answer.status, answer.code) == (400, "invalid_cursor")


def test_another_tenant_sees_nothing(caller: Caller) -> None:
    follow(caller, "User.9", "Actor.5")
    other = caller.of("other")

    assert others(other, of="User.9") == []
    assert counts(other, "Actor.5") == (0, 0)
    assert other.get("/v1/follows/User.9/Actor.5").status == 404
    assert other.delete("/v1/follows/User.9/Actor.5").status == 404
