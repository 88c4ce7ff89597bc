"""Listings over HTTP."""

import json
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynashard import Dynashard
from dynashard.cursor_keys import CursorKeys
from dynashard.testing.faults import FaultyTransport, throttled
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from dynashard.transport.interface import metered
from dynashard_serving.api.app import App, build_app
from dynashard_serving.operations import pages
from tests.api_caller import Answer, Caller, a_user
from tests.depth import examples
from tests.engine.api.api_on_engine import KEYS, TOPOLOGY, caller_on, settings_of
from tests.roles import as_function

pytestmark = pytest.mark.engine

IDS = [f"{number:03d}" for number in range(60)]


@pytest.fixture(scope="module")
def caller(transport: Transport, create_table: Any) -> Caller:
    """Sixty users: departments eng and ops by turns, every tenth disabled, all with one manager."""
    caller = caller_on(transport, create_table())
    for number, identifier in enumerate(IDS):
        caller.post(
            "/v1/users",
            a_user(
                id=identifier,
                email=f"user{identifier}@example.com",
                department=("eng", "ops")[number % 2],
                status="disabled" if number % 10 == 0 else "active",
                manager_id="boss",
            ),
        )
    caller.of("xyz").post("/v1/users", a_user(id="theirs", department="eng", manager_id="boss"))
    return caller


def walk(caller: Caller, **query: str) -> list[list[str]]:
    """Follow the links of a listing, and return the identifiers of each page."""
    path, pages = "/v1/users", []
    answer = caller.get(path, query=query)
    while True:
        assert answer.status == 200, answer.content
        pages.append([item["id"] for item in answer.json["items"]])
        following = next_link(answer)
        assert (following is None) == (answer.json["cursor"] is None)
        if following is None:
            return pages
        target = urlsplit(following)
        answer = caller.get(target.path, query=target.query)


def next_link(answer: Answer) -> str | None:
    link = answer.headers.get("link")
    if link is None:
        return None
    assert link.startswith("<"), link
    assert link.endswith('>; rel="next"'), link
    return link[1 : link.index(">")]


def flat(pages: list[list[str]]) -> list[str]:
    return [identifier for page in pages for identifier in page]


@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    order=st.sampled_from(["round_robin", "ordered", "shard"]),
    direction=st.sampled_from(["asc", "desc"]),
    limit=st.integers(4, 70),
)
def test_links_lead_through_every_item_once(caller: Caller, order: str, direction: str, limit: int) -> None:
    pages = walk(caller, order=order, direction=direction, limit=str(limit))

    assert sorted(flat(pages)) == IDS
    assert all(len(page) <= limit for page in pages)
    if order == "ordered":
        assert flat(pages) == (IDS if direction == "asc" else IDS[::-1])


def test_a_page_has_fifty_items_by_default(caller: Caller) -> None:
    assert len(caller.get("/v1/users").json["items"]) == 50


def test_a_day_selects_the_partition_that_begins_with_it_in_utc(caller: Caller) -> None:
    for at in ("2026-11-21", "2026-11-21T10:00:00Z", "2026-11-21T12:00:00+02:00"):
        assert caller.get("/v1/pings", query={"index": "by_time", "at": at}).status == 200

    assert caller.get("/v1/pings", query={"index": "by_time", "at": "1026-11-21"}).fields.keys() == {"at"}


@pytest.mark.parametrize("asked", ["pings?at=20261121", "accesses?path=/a&accessed_at[gte]=2026"])
def test_a_number_is_not_a_time_because_a_year_would_be_a_second_of_1970(caller: Caller, asked: str) -> None:
    path, _, query = asked.partition("?")

    assert set(caller.get(f"/v1/{path}", query=query).fields.values()) == {"datetime_parsing"}


def test_items_carry_their_revision(caller: Caller) -> None:
    [item] = caller.get("/v1/users", query="order=ordered&limit=1").json["items"]

    assert item == caller.get("/v1/users/000").json


def test_prefix_and_range_select_by_sort_key(caller: Caller) -> None:
    assert flat(walk(caller, order="ordered", prefix="01")) == IDS[10:20]
    assert flat(walk(caller, order="ordered", **{"from": "010", "to": "013"})) == ["010", "011", "012"]
    assert flat(walk(caller, order="ordered", prefix="01", **{"from": "018", "to": "9"})) == ["018", "019"]


def test_filter_makes_pages_short_and_the_list_complete(caller: Caller) -> None:
    pages = walk(caller, status="disabled", limit="7")

    assert sorted(flat(pages)) == IDS[::10]


def test_an_index_is_queried_by_its_fields(caller: Caller) -> None:
    eng = walk(caller, index="by_department", department="eng", order="ordered", limit="9")
    managed = walk(caller, index="by_manager", manager_id="boss", department="ops", limit="13")

    assert flat(eng) == IDS[::2]
    assert sorted(flat(managed)) == IDS[1::2]


def test_item_is_looked_up_by_its_email(caller: Caller) -> None:
    found = caller.get("/v1/users", query={"index": "by_email", "email": "user007@example.com"})

    assert [item["id"] for item in found.json["items"]] == ["007"]
    assert found.json["cursor"] is None


def test_lookup_does_not_find_longer_emails(caller: Caller) -> None:
    caller.of("lookup").post("/v1/users", a_user(email="a@b.c"))
    caller.of("lookup").post("/v1/users", a_user(email="a@b.com"))

    found = caller.of("lookup").get("/v1/users", query={"index": "by_email", "email": "a@b.c"})

    assert [item["email"] for item in found.json["items"]] == ["a@b.c"]


def test_only_the_wanted_fields_are_answered(caller: Caller) -> None:
    answer = caller.get("/v1/users", query="fields=id,status,expires_at&order=ordered&limit=2")

    assert answer.json["items"] == [
        {"id": "000", "status": "disabled", "expires_at": None},
        {"id": "001", "status": "active", "expires_at": None},
    ]


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("limit=0", {"limit": "out_of_range"}),
        ("limit=1001", {"limit": "out_of_range"}),
        ("limit=-1", {"limit": "out_of_range"}),
        ("limit=", {"limit": "out_of_range"}),
        ("limit=ten", {"limit": "out_of_range"}),
        ("limit=%D9%A1", {"limit": "out_of_range"}),
        ("limit=1&limit=1", {"limit": "repeated_parameter"}),
        ("page=1&sort=x", {"page": "unknown_parameter", "sort": "unknown_parameter"}),
        ("display_name=a", {"display_name": "unknown_parameter"}),
        ("tenant_id=xyz", {"tenant_id": "unknown_parameter"}),
        ("order=random", {"order": "enum"}),
        ("direction=down", {"direction": "enum"}),
        ("consistent=yes", {"consistent": "enum"}),
        ("index=by_shoe", {"index": "enum"}),
        ("index=by_department", {"department": "missing"}),
        ("index=by_department&department=", {"department": "string_too_short"}),
        ("index=by_department&department=a:0", {"department": "invalid_key"}),
        ("index=by_email&email=a@b.c&prefix=b&from=c", {"prefix": "contradiction"}),
        ("index=by_email&email=a@b.c&to=a", {"to": "contradiction"}),
        ("index=by_email&consistent=true", {"consistent": "invalid_query"}),
        ("status=asleep", {"status": "enum"}),
        ("fields=id,shoe", {"fields": "enum"}),
        ("fields=", {"fields": "enum"}),
        ("prefix=", {"prefix": "invalid_query"}),
        ("prefix=&to=b", {"prefix": "invalid_query"}),
        ("prefix=b&to=b", {"to": "contradiction"}),
        ("prefix=b&from=c", {"from": "contradiction"}),
        ("prefix=b&from=bb&to=ba", {"to": "invalid_query"}),
        ("from=b&to=a", {"to": "invalid_query"}),
    ],
)
def test_an_impossible_query_is_refused_with_the_parameter(caller: Caller, query: str, fields: dict[str, str]) -> None:
    assert caller.get("/v1/users", query=query).fields == fields


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/v1/users?departmnt=a", "did you mean department? This listing filters by department, manager_id, status."),
        ("/v1/users?index=by_department&department=a&state=b", "This listing filters by manager_id, status."),
        ("/v1/schedules?team_id=t&state=b", "This listing takes no filters."),
    ],
)
def test_the_error_of_a_mistyped_filter_names_the_filters_of_the_listing(caller: Caller, path: str, says: str) -> None:
    path, _, query = path.partition("?")

    [error] = caller.get(path, query=query).json["errors"]

    assert says in error["message"]


def test_a_mistyped_parameter_is_named_once_and_a_long_one_has_no_suggestion(caller: Caller) -> None:
    short, long = (caller.get("/v1/users", query={"departmen" + "t" * n: "a"}).json["errors"] for n in (2, 60))

    assert short[0]["message"].count("department") == 2
    assert long[0]["message"].startswith("Unknown query parameter. This listing filters by department")


def test_single_items_take_no_other_query(caller: Caller) -> None:
    assert caller.get("/v1/users/000", query="limit=1").fields == {"limit": "unknown_parameter"}
    assert caller.delete("/v1/users/000", query="consistent=true").fields == {"consistent": "unknown_parameter"}


def test_cursor_of_another_query_is_refused(caller: Caller) -> None:
    cursor = caller.get("/v1/users", query="limit=5").json["cursor"]

    for query in ("order=ordered", "prefix=0", "index=by_email", "status=active", "direction=desc"):
        answer = caller.get("/v1/users", query=f"{query}&cursor={cursor}")
        assert (answer.status, answer.code) == (400, "invalid_cursor"), query


@pytest.mark.parametrize("change", ["{}x", "x{}", "{}.{}", "", "%00", "%F0%9F%98%80"])
def test_changed_cursor_is_refused(caller: Caller, change: str) -> None:
    cursor = caller.get("/v1/users", query="limit=5").json["cursor"]

    answer = caller.get("/v1/users", query=f"cursor={change.format(cursor, cursor)}")

    assert (answer.status, answer.code) == (400, "invalid_cursor")


def test_page_size_may_change_between_pages(caller: Caller) -> None:
    first = caller.get("/v1/users", query="limit=5").json

    rest = caller.get("/v1/users", query={"limit": "1000", "cursor": first["cursor"]}).json

    assert sorted(item["id"] for item in [*first["items"], *rest["items"]]) == IDS


def test_link_keeps_the_query_and_its_escapes(caller: Caller) -> None:
    tenant = caller.of("links")
    for _ in range(3):
        tenant.post("/v1/users", a_user(department="r&d ü"))

    answer = tenant.get("/v1/users", query={"index": "by_department", "department": "r&d ü", "limit": "2"})

    link = next_link(answer)
    assert link is not None
    assert link.startswith("/v1/users?index=by_department&department=r%26d+%C3%BC&limit=2&cursor=")
    assert len(tenant.get("/v1/users", query=urlsplit(link).query).json["items"]) == 1


def test_a_page_is_short_if_lambda_could_not_answer_it_whole(
    transport: Transport, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "MAX_ANSWER_BYTES", 4_000)
    caller = caller_on(transport, table)
    for identifier in IDS:
        caller.post("/v1/users", a_user(id=identifier, display_name="x" * 200))

    first = caller.get("/v1/users", query="limit=60&order=ordered")

    assert len(first.content) <= 4_000
    assert flat(walk(caller, limit="60", order="ordered")) == IDS


def test_an_item_larger_than_an_answer_is_answered_alone(
    transport: Transport, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "MAX_ANSWER_BYTES", 10)
    caller = caller_on(transport, table)
    caller.post("/v1/users", a_user(id="1"))
    caller.post("/v1/users", a_user(id="2"))

    assert walk(caller, order="ordered") == [["1"], ["2"], []]


def test_cursor_keys_are_read_only_for_a_cursor(transport: Transport, table: str) -> None:
    rotating = Rotating()
    rotating.keys = ()
    caller = Caller(rotating.app(transport, table))

    created = [caller.post("/v1/users", a_user(id=identifier)).status for identifier in IDS[:4]]
    without_cursor = [caller.get(f"/v1/users/{IDS[0]}").status, caller.get("/v1/users").status]

    assert (created, without_cursor) == ([201] * 4, [200, 200])
    assert caller.get("/v1/users", query="limit=2").status == 500


def test_a_throttled_listing_answers_with_retry_after(transport: Transport, table: str) -> None:
    faulty = FaultyTransport(transport, [throttled("Query", reason="TableReadAccountLimitExceeded", nth=None)])

    answer = caller_on(faulty, table).get("/v1/users")

    assert (answer.status, answer.code) == (429, "table_throttled")
    assert answer.headers["retry-after"].isdigit()
    assert answer.json["details"]["reasons"] == ["TableReadAccountLimitExceeded"]


class Rotating:
    """Cursor keys that a test rotates, and a clock that it sets."""

    def __init__(self) -> None:
        self.keys: tuple[str, ...] = KEYS
        self.now = 1_780_000_000.0

    def app(self, transport: Transport, table: str) -> App:
        transport = as_function("api", transport, table, TOPOLOGY)
        keys = CursorKeys(lambda: self.keys, lambda: self.now)
        backend = Dynashard(transport, table=table, topology=DeclaredTopology(), cursor_keys=keys)
        return build_app(settings_of(table), transport, backend=backend)


def test_cursor_outlives_a_rotation_and_dies_with_its_key(transport: Transport, table: str) -> None:
    rotating = Rotating()
    old = Caller(rotating.app(transport, table))
    for identifier in IDS[:4]:
        old.post("/v1/users", a_user(id=identifier))
    cursor = old.get("/v1/users", query="limit=2").json["cursor"]

    rotating.keys = ("the-key-after-that", KEYS[0])
    fresh = Caller(rotating.app(transport, table))
    kept = fresh.get("/v1/users", query={"limit": "2", "cursor": cursor})
    rotating.keys = ("the-key-after-that",)
    dead = Caller(rotating.app(transport, table)).get("/v1/users", query={"limit": "2", "cursor": cursor})

    assert kept.status == 200
    assert (dead.status, dead.code) == (400, "invalid_cursor")


def test_a_cursor_of_a_newer_key_makes_the_function_reload_its_keys(transport: Transport, table: str) -> None:
    rotating = Rotating()
    behind = Caller(rotating.app(transport, table))
    for identifier in IDS[:4]:
        behind.post("/v1/users", a_user(id=identifier))
    behind.get("/v1/users", query="limit=2")
    rotating.keys = ("the-key-after-that", *KEYS)
    cursor = Caller(rotating.app(transport, table)).get("/v1/users", query="limit=2").json["cursor"]

    early = behind.get("/v1/users", query={"limit": "2", "cursor": cursor})
    rotating.now += 60
    later = behind.get("/v1/users", query={"limit": "2", "cursor": cursor})

    assert (early.status, later.status) == (400, 200)
    assert json.loads(later.content)["items"]


def test_an_ordered_listing_reads_less_once_an_earlier_request_has_shown_how_large_items_are(
    transport: Transport, table: str
) -> None:
    everybody = [f"user_{number:060}" for number in range(2)]
    writing = caller_on(transport, table)
    for number in range(24):
        body = {"id": f"i{number:02}", "title": "Large", "participants": everybody}
        assert writing.post("/v1/incidents", body).status == 201

    caller = caller_on(transport, table)
    # The first request also reads the shard count, which is not measured.
    caller.get("/v1/incidents", query="limit=1")

    def units() -> float:
        with metered() as meter:
            answer = caller.get("/v1/incidents", query="order=ordered&limit=4")
        assert [item["id"] for item in answer.json["items"]] == ["i00", "i01", "i02", "i03"]
        return meter.consumed.read_units

    first, second = units(), units()

    assert second < first
