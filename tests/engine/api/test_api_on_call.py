"""Who is on call, over REST: layers, shifts and overrides of a schedule."""

from typing import Any

import pytest

from dynashard.transport import Transport
from tests.api_caller import Caller
from tests.engine.commands.commands_on_engine import Service, commands_on

pytestmark = pytest.mark.engine

LAYER = {"users": ["ada", "bob"], "starts_at": "2026-03-23T08:00:00+01:00", "unit": "days"}


def schedule(caller: Caller, *layers: dict[str, Any], **fields: Any) -> str:
    """Store a schedule and return its path."""
    body = {"team_id": "red", "schedule_id": "day", "name": "Day", "time_zone": "Europe/Berlin", "layers": layers}
    made = caller.post("/v1/schedules", {**body, **fields})
    assert made.status == 201, made.json
    return str(made.headers["location"])


def turn(caller: Caller, kind: str, user: str, starts_at: str, ends_at: str, **fields: Any) -> None:
    body = {"team_id": "red", "schedule_id": "day", "user_id": user, "starts_at": starts_at, "ends_at": ends_at}
    made = caller.post(f"/v1/{kind}", {**body, **fields})
    assert made.status == 201, made.json


def test_layers_take_turns_on_the_clock_of_the_zone(caller: Caller) -> None:
    path = schedule(caller, LAYER)

    before = caller.get(f"{path}/on-call", query={"at": "2026-03-29T05:59:59Z"})
    after = caller.get(f"{path}/on-call", query={"at": "2026-03-29T06:00:00Z"})

    assert (before.status, before.json["user_id"], before.json["until"]) == (200, "bob", "2026-03-29T06:00:00Z")
    assert after.json == {
        "at": "2026-03-29T06:00:00Z",
        "user_id": "ada",
        "source": "layer",
        "source_id": "1",
        "until": "2026-03-30T06:00:00Z",
        "next_user_id": "bob",
    }


def test_an_override_counts_as_soon_as_it_is_stored(caller: Caller) -> None:
    path = schedule(caller, LAYER)
    turn(caller, "shifts", "cy", "2026-03-24T08:00:00Z", "2026-03-24T16:00:00Z")
    turn(caller, "overrides", "dan", "2026-03-24T10:00:00Z", "2026-03-24T11:00:00Z", override_id="o1")

    rota = caller.get(f"{path}/rota", query={"from": "2026-03-24T07:30:00Z", "to": "2026-03-24T17:00:00Z"})

    assert [(each["starts_at"][11:16], each["user_id"], each["source"]) for each in rota.json["items"]] == [
        ("07:30", "bob", "layer"),
        ("08:00", "cy", "shift"),
        ("10:00", "dan", "override"),
        ("11:00", "cy", "shift"),
        ("16:00", "bob", "layer"),
    ]
    now = caller.get(f"{path}/on-call", query={"at": "2026-03-24T10:30:00Z"}).json
    assert (now["user_id"], now["source_id"], now["next_user_id"]) == ("dan", "o1", "cy")


def test_turns_of_a_schedule_whose_id_begins_alike_do_not_count(caller: Caller) -> None:
    path = schedule(caller, schedule_id="d")
    schedule(caller)
    turn(caller, "overrides", "dan", "2026-03-24T10:00:00Z", "2026-03-24T11:00:00Z")

    assert caller.get(f"{path}/on-call", query={"at": "2026-03-24T10:30:00Z"}).json["user_id"] is None


@pytest.mark.parametrize("lone", ["2026-03-24", "2026-03-24T00:00:00"])
def test_a_day_and_a_time_without_a_zone_are_in_utc(
    caller: Caller, transport: Transport, table: str, lone: str
) -> None:
    path = schedule(caller, LAYER)
    whole = {"from": "2026-03-24T00:00:00Z", "to": "2026-03-26T00:00:00Z"}

    rota = caller.get(f"{path}/rota", query={"from": lone, "to": "2026-03-26"}).json
    now = caller.get(f"{path}/on-call", query={"at": lone}).json
    service = Service(commands_on(transport, table), entity="schedules/rota")
    key = {"team_id": "red", "schedule_id": "day"}

    assert rota == caller.get(f"{path}/rota", query=whole).json
    assert now == caller.get(f"{path}/on-call", query={"at": whole["from"]}).json
    assert service.result("list", key=key, **{"from": lone, "to": "2026-03-26"})["items"] == rota["items"]


@pytest.mark.parametrize("number", ["1700000000", 1700000000], ids=["text", "number"])
def test_a_number_is_not_a_time(caller: Caller, transport: Transport, table: str, number: str | int) -> None:
    path = schedule(caller, LAYER)
    service = Service(commands_on(transport, table), entity="schedules/on-call")

    refused = caller.get(f"{path}/on-call", query={"at": str(number)})
    invoked = service.fields("get", key={"team_id": "red", "schedule_id": "day"}, at=number)

    assert (refused.status, refused.fields) == (422, {"at": "datetime_parsing"})
    assert invoked == {"at": "datetime_parsing"}


def test_a_gap_is_said(caller: Caller) -> None:
    path = schedule(caller)

    found = caller.get(f"{path}/on-call").json
    assert (found["user_id"], found["source"], found["until"]) == (None, None, None)


def test_a_schedule_that_does_not_exist_is_not_found(caller: Caller) -> None:
    assert caller.get("/v1/schedules/red/day/on-call").status == 404
    path = schedule(caller)
    assert (
        caller.of("other").get(f"{path}/rota", query="from=2026-03-24T00:00:00Z&to=2026-03-25T00:00:00Z").status == 404
    )


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("from=2026-01-01T00:00:00Z", {"to": "missing"}),
        ("from=2026-01-01T00:00:00Z&to=2026-04-04T00:00:00Z", {"": "value_error"}),
        ("from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", {"": "value_error"}),
        ("from=soon&to=2026-01-01T00:00:00Z", {"from": "datetime_from_date_parsing"}),
        ("from=1999-01-01T00:00:00Z&to=1999-01-02T00:00:00Z", {"from": "value_error", "to": "value_error"}),
        ("at=2026-01-01T00:00:00Z", {"at": "unknown_parameter"}),
    ],
)
def test_a_bad_range_is_refused_by_field(caller: Caller, query: str, fields: dict[str, str]) -> None:
    assert caller.get(f"{schedule(caller)}/rota", query=query).fields == fields


def test_parameters_that_contradict_each_other_are_refused_with_what_is_wrong(caller: Caller) -> None:
    refused = caller.get(f"{schedule(caller)}/rota", query="from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z").json

    assert refused["detail"] == "Not accepted: to must be after from, by at most 92 days."
    assert refused["errors"][0]["message"] == "to must be after from, by at most 92 days"


@pytest.mark.parametrize(
    ("layer", "at"),
    [
        ({"users": []}, "layers.0.users"),
        ({"every": 0}, "layers.0.every"),
        ({"starts_at": "2026-03-23T08:00:00"}, "layers.0.starts_at"),
        ({"ends_at": "2026-03-23T07:00:00Z"}, "layers.0"),
        ({"restrictions": [{"opens": "8:00", "closes": "24:00"}]}, "layers.0.restrictions.0.opens"),
        ({"rotation": 1}, "layers.0.rotation"),
    ],
)
def test_a_bad_layer_is_refused_by_field(caller: Caller, layer: dict[str, Any], at: str) -> None:
    refused = caller.put("/v1/schedules/red/day", {"name": "Day", "layers": [{**LAYER, **layer}]})

    assert at in refused.fields


def test_a_zone_that_does_not_exist_is_refused(caller: Caller) -> None:
    for zone in ("Europe/Nowhere", "../etc/passwd", "/etc/passwd", "\x00", "localtime", "right/Europe/Berlin"):
        assert list(caller.put("/v1/schedules/red/day", {"name": "Day", "time_zone": zone}).fields) == ["time_zone"]


def test_an_id_that_ends_like_the_path_of_a_read_is_refused(caller: Caller) -> None:
    refused = caller.post("/v1/schedules", {"team_id": "red", "schedule_id": "a/on-call", "name": "Day"})

    assert refused.fields == {"schedule_id": "unaddressable"}
