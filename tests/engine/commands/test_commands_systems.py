"""Direct invocation of edges, roll-ups, revenue and joint listings, compared with REST."""

from datetime import UTC, datetime
from typing import Any

import pytest

from domain.samples.plays import EpisodePlays, SeriesPlays
from dynashard import Dynashard
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from dynashard_patterns import Level
from tests.api_caller import Caller
from tests.engine.api.api_on_engine import KEYS, caller_on
from tests.engine.commands.commands_on_engine import TENANT, Service, commands_on

pytestmark = pytest.mark.engine

TURN = {"user_id": "ada", "starts_at": "2026-11-21T08:00:00Z", "ends_at": "2026-11-21T16:00:00Z"}
HOURS = {"series": "s1", "episode": "e1", "level": "hour", "from": "2026-11-21", "to": "2026-11-22"}


@pytest.fixture
def service(transport: Transport, table: str) -> Service:
    return Service(commands_on(transport, table), entity="follows")


@pytest.fixture(scope="module")
def nowhere(transport: Transport) -> Service:
    """A service without a table, for requests that are refused before anything is sent."""
    return Service(commands_on(transport, "no-such-table"))


@pytest.fixture
def rest(transport: Transport, table: str) -> Caller:
    return caller_on(transport, table)


def follow(service: Service, *others: str) -> None:
    for other in others:
        service.result("create", item={"node": "User.9", "other": other})


def account(service: Service) -> None:
    """A team with two schedules of similar names, a shift in each, and another team."""
    for team in ("a", "b"):
        service.result("create", entity="teams", item={"team_id": team, "name": team})
    for schedule in ("day", "day2"):
        nested = {"team_id": "a", "schedule_id": schedule}
        service.result("create", entity="schedules", item={**nested, "name": schedule})
        service.result("create", entity="shifts", item={**nested, "shift_id": "1", **TURN})


def watched(transport: Transport, table: str) -> None:
    """Roll-ups: two hours of an episode in two slots each, and November of two series."""
    db = Dynashard(transport, table=table, topology=DeclaredTopology(), cursor_keys=KEYS)
    for hour, slot in ((9, 0), (9, 1), (10, 0), (10, 1)):
        start = datetime(2026, 11, 21, hour, tzinfo=UTC)
        row = {"series": "s1", "episode": "e1", "level": Level.HOUR, "start": start, "slot": slot}
        db.collection(EpisodePlays).create(EpisodePlays(tenant_id=TENANT, **row, pings=hour, seconds=60 * hour))
    for name, seconds in (("s1", 900), ("s2", 100)):
        row = {"series": name, "level": Level.MONTH, "start": datetime(2026, 11, 1, tzinfo=UTC)}
        db.collection(SeriesPlays).create(SeriesPlays(tenant_id=TENANT, **row, pings=2, seconds=seconds))


def test_edge_is_added_looked_up_counted_and_removed_as_over_rest(service: Service, rest: Caller) -> None:
    ends = {"node": "User.9", "other": "Actor.5"}

    added = service.result("create", item=ends)

    assert added["revision"]
    assert service.result("create", item=ends) == added
    assert service.result("get", key=ends, consistent=True) == rest.get("/v1/follows/User.9/Actor.5").json == added
    assert service.result("get", entity="follow.v1.Follow", key=ends) == added
    assert [service.result("count", of="User.9"), service.result("count", of="User.9", way="backward")] == [1, 0]
    assert rest.get("/v1/follows/counts", query={"of": "Actor.5"}).json == {"following": 0, "followers": 1}
    assert service.result("delete", key=ends) is None
    assert service.error("delete", key=ends)["code"] == service.error("get", key=ends)["code"] == "not_found"
    assert service.result("count", of="Actor.5", way="backward") == 0


@pytest.mark.parametrize("way_in", ["direct", "rest"])
def test_a_listing_of_edges_continues_over_the_other_entry_point(service: Service, rest: Caller, way_in: str) -> None:
    follow(service, "Actor.1", "Actor.2", "Actor.3", "Series.1")
    asked = {"of": "User.9", "type": "Actor", "order": "newest"}

    def direct(**more: str) -> Any:
        return service.result("list", **asked, limit=2, **more)

    def http(**more: str) -> Any:
        return rest.get("/v1/follows", query={**asked, "limit": "2", **more}).json

    first, then = (direct, http) if way_in == "direct" else (http, direct)
    begun = first()
    rest_of_it = then(cursor=begun["cursor"])

    assert [each["other"] for each in [*begun["items"], *rest_of_it["items"]]] == ["Actor.3", "Actor.2", "Actor.1"]
    assert rest_of_it["cursor"] is None


def test_edges_are_listed_from_both_ends(service: Service, rest: Caller) -> None:
    follow(service, "Actor.1", "Series.1")

    for query in ({"of": "User.9"}, {"of": "Series.1", "way": "backward"}, {"of": "Series.1"}):
        assert service.result("list", **query) == rest.get("/v1/follows", query=query).json
    assert [each["other"] for each in service.result("list", of="User.9")["items"]] == ["Actor.1", "Series.1"]


def test_roll_ups_and_revenue_are_those_of_rest(
    service: Service, rest: Caller, transport: Transport, table: str
) -> None:
    watched(transport, table)
    service.result("create", entity="licences", item={"series": "s1", "licensor_id": "north"})
    month = {"level": "month", "from": "2026-11-01T00:00:00Z", "to": "2026-12-01T00:00:00Z"}

    hours = service.result("list", entity="roll-ups", **HOURS)
    divided = service.result("get", entity="revenue", month="2026-11", amount=1000)

    assert [(each["start"], each["pings"]) for each in hours["items"]] == [
        ("2026-11-21T09:00:00Z", 18),
        ("2026-11-21T10:00:00Z", 20),
    ]
    assert hours == {**rest.get("/v1/roll-ups", query=HOURS).json, "cursor": None}
    assert (
        service.result("list", entity="roll-ups", **month)["items"]
        == (rest.get("/v1/roll-ups", query=month).json["items"])
    )
    assert [each["amount"] for each in divided["licensors"]] == [900, 100]
    assert divided == rest.get("/v1/revenue", query={"month": "2026-11", "amount": "1000"}).json


def test_account_is_listed_as_one_and_in_parts_as_over_rest(service: Service, rest: Caller) -> None:
    account(service)

    everything = service.result("list", entity="on-call")
    day = {"team_id": "a", "schedule_id": "day"}
    schedule = service.result("list", entity="on-call", sort=day)

    assert len(everything["items"]) == 6
    assert everything == rest.get("/v1/on-call").json
    assert [each["type"] for each in schedule["items"]] == ["team.v1.Schedule", "team.v1.Shift"]
    assert schedule == rest.get("/v1/on-call", query=day).json


def test_a_joint_listing_continues_over_the_other_entry_point(service: Service, rest: Caller) -> None:
    account(service)
    asked: dict[str, Any] = {"order": "ordered", "direction": "desc"}

    first = service.result("list", entity="on-call", limit=2, **asked)
    second = rest.get("/v1/on-call", query={**asked, "limit": "2", "cursor": first["cursor"]}).json
    third = service.result("list", entity="on-call", limit=1000, cursor=second["cursor"], **asked)

    found = [*first["items"], *second["items"], *third["items"]]
    assert found == service.result("list", entity="on-call", **asked)["items"]
    assert (len(found), third["cursor"]) == (6, None)


def test_contacts_of_users_are_listed_as_one_as_over_rest(service: Service, rest: Caller) -> None:
    for user in ("ada", "bob"):
        method = {"user_id": user, "method_id": "m1", "channel": "sms", "address": "+49 30 1"}
        service.result("create", entity="contact-methods", item=method)
        rule = {"user_id": user, "rule_id": "r1", "method_id": "m1"}
        service.result("create", entity="notification-rules", item=rule)

    one = service.result("list", entity="contacts", partition={"user_id": "ada"})
    both = service.result("list", entity="contacts", partition={"user_id": ["ada", "bob"]})

    assert [each["type"] for each in one["items"]] == ["contact.v1.ContactMethod", "contact.v1.NotificationRule"]
    assert one == rest.get("/v1/contacts", query={"user_id": "ada"}).json
    assert len(both["items"]) == 4


@pytest.mark.parametrize(
    ("entity", "operation", "members", "fields"),
    [
        ("follows", "create", {"item": {"node": "User.1", "other": "x"}}, {"other": "invalid_value"}),
        ("follows", "create", {"item": {"node": "User.1"}}, {"other": "missing"}),
        ("follows", "create", {}, {"item": "missing"}),
        ("follows", "get", {"key": {"node": "User.1", "x": 1}}, {"key.x": "unknown_parameter", "key.other": "missing"}),
        ("follows", "delete", {"key": {"node": 1, "other": []}}, {"key.node": "missing", "key.other": "missing"}),
        ("follows", "delete", {"key": {}, "if_match": "x"}, {"if_match": "unknown_parameter"}),
        ("follows", "list", {}, {"of": "missing"}),
        ("follows", "list", {"of": "nobody"}, {"of": "invalid_value"}),
        ("follows", "list", {"of": "User.\ud800"}, {"": "json_invalid"}),
        ("follows", "list", {"of": "User.1", "order": "newest"}, {"type": "invalid_query"}),
        ("follows", "list", {"of": "User.1", "limit": 1001}, {"limit": "less_than_equal"}),
        ("follows", "count", {"of": "User.1", "way": "up"}, {"way": "literal_error"}),
        ("follows", "count", {"of": "nobody"}, {"of": "invalid_value"}),
        ("roll-ups", "list", {}, {"level": "missing", "from": "missing", "to": "missing"}),
        ("roll-ups", "list", {**HOURS, "to": "2026-11-20"}, {"to": "invalid_query"}),
        ("roll-ups", "list", {**HOURS, "shard": 1}, {"shard": "unknown_parameter"}),
        ("revenue", "get", {"month": "2026-13"}, {"month": "string_pattern_mismatch"}),
        ("revenue", "get", {"month": "2026-11", "amount": -1}, {"amount": "greater_than_equal"}),
        ("on-call", "list", {"sort": {"schedule_id": "day"}}, {"sort.team_id": "missing"}),
        ("on-call", "list", {"sort": {"shift_id": "1"}}, {"sort.shift_id": "unknown_parameter"}),
        ("on-call", "list", {"sort": {"team_id": "a"}, "prefix": "x"}, {"prefix": "contradiction"}),
        ("on-call", "list", {"partition": {"user_id": "a"}}, {"partition.user_id": "unknown_parameter"}),
        ("on-call", "list", {"from": "b", "to": "a"}, {"to": "invalid_query"}),
        ("contacts", "list", {}, {"partition.user_id": "missing"}),
        ("contacts", "list", {"tenant": "x", "partition": {"user_id": "a"}}, {"tenant": "unknown_parameter"}),
    ],
)
def test_bad_request_is_refused_by_member(
    nowhere: Service, entity: str, operation: str, members: dict[str, Any], fields: dict[str, str]
) -> None:
    assert nowhere.fields(operation, entity=entity, **members) == fields


@pytest.mark.parametrize(
    ("entity", "operation", "able"),
    [
        ("follows", "put", "create, get, delete, list, count"),
        ("roll-ups", "count", "list"),
        ("revenue", "list", "get"),
        ("on-call", "create", "list"),
        ("contacts", "batch_get", "list"),
    ],
)
def test_an_unsupported_operation_is_refused_with_the_supported_ones(
    nowhere: Service, entity: str, operation: str, able: str
) -> None:
    error = nowhere.error(operation, entity=entity)

    assert error["code"] == "method_not_allowed"
    assert error["message"] == f"{entity} is not served with {operation}; it is with {able}."


def test_another_tenant_sees_nothing(service: Service, transport: Transport, table: str) -> None:
    account(service)
    follow(service, "Actor.5")
    watched(transport, table)
    other = Service(service.commands, tenant="other", entity="follows")

    assert other.result("list", of="User.9") == {"items": [], "cursor": None}
    assert other.result("count", of="User.9") == 0
    assert other.error("delete", key={"node": "User.9", "other": "Actor.5"})["code"] == "not_found"
    assert other.result("list", entity="on-call")["items"] == []
    assert other.result("list", entity="roll-ups", **HOURS)["items"] == []
    assert other.result("get", entity="revenue", month="2026-11")["seconds"] == 0
    mine = service.result("list", entity="on-call", limit=2)["cursor"]
    assert other.error("list", entity="on-call", limit=2, cursor=mine)["code"] == "invalid_cursor"
    assert service.error("list", entity="follows", of="User.9", cursor=mine)["code"] == "invalid_cursor"
