"""`dynashard verify --mend` leaves alone what the layer has not written, and shows no tenant another's items."""

import json
from typing import Any, Final

import pytest

from domain.samples.users import User
from dynashard import definition
from dynashard.transport.interface import Wire
from tests.engine.tools.reshard_world import ReshardWorld

pytestmark = pytest.mark.engine

USERS: Final = definition(User)


def rows(world: ReshardWorld) -> list[Wire]:
    found: list[Wire] = world.wire.call("Scan", {"TableName": world.table, "ConsistentRead": True})["Items"]
    return sorted(found, key=lambda row: (row["PK"]["S"], row["SK"]["S"]))


def put(world: ReshardWorld, row: Wire) -> None:
    world.wire.call("PutItem", {"TableName": world.table, "Item": row})


def row(place: str, sort: str, **more: Any) -> Wire:
    return {"PK": {"S": place}, "SK": {"S": sort}, **more}


def user(world: ReshardWorld, tenant: str) -> Wire:
    """A stored user of a tenant."""
    world.layer().collection(User).create(User(tenant_id=tenant, email=f"a@{tenant}.com", display_name="A"))
    return next(each for each in rows(world) if each["PK"]["S"].startswith(f"user.v1.User:{tenant}:"))


def of_others() -> list[Wire]:
    """Rows of other programs, half of them under keys that look a little like ours."""
    names = ["CONFIG", "session#123", "user.v1.Users:abc:1", "user.v1.User", "user.v1.User:abc:1:2:3", "x:y", "lock"]
    return [row(name, f"v{n}", data={"S": "theirs"}) for name in names for n in range(4)] + [
        row("CONFIG", "typed", Type={"S": "config.v1.Config"}, Rev={"S": "r"}),
        row("abc_1", "moved", MovedTo={"N": "4"}),
    ]


def strays(world: ReshardWorld) -> list[Wire]:
    """Two strays of each key, whose home is empty."""
    made = user(world, "stray")
    world.wire.call("DeleteItem", {"TableName": world.table, "Key": {"PK": made["PK"], "SK": made["SK"]}})
    home = int(made["PK"]["S"].rpartition(":")[2])
    return [{**made, "PK": {"S": f"user.v1.User:stray:{(home + n) % 16}"}} for n in (1, 2)]


def of_foreign_tenants(world: ReshardWorld) -> list[Wire]:
    """Items of one tenant whose fields say that they are another's."""
    return [{**user(world, f"t{n}"), "tenant_id": {"S": "abc"}} for n in range(5)]


def unrevised(world: ReshardWorld) -> list[Wire]:
    """Items without a type or a revision, at a wrong place or with wrong index keys, which nobody has adopted."""
    made = []
    for n, lacking in enumerate([("Rev",), ("Type",), ("Type", "Rev")] * 2):
        item = {name: value for name, value in user(world, f"u{n}").items() if name not in lacking}
        made.append({**item, "GSI1SK": {"S": "wrong"}})
    bare = {name: value for name, value in user(world, "bare").items() if name not in ("Type", "Rev")}
    return [*made, {**bare, "PK": {"S": "user.v1.User:bare"}}]


MARKERS: Final = [{"S": "32"}, {"N": "-1"}, {"N": "1.5"}, {"N": "5000"}, {"N": "7"}, {"BOOL": True}, {"NULL": True}]


def damaged_markers() -> list[Wire]:
    return [row(f"user.v1.User:marked:{n}", f"m{n}", MovedTo=each) for n, each in enumerate(MARKERS)]


def markers_of_others() -> list[Wire]:
    """Rows of another program that have the attribute of our markers, at a place where a marker is left over."""
    theirs = {"Type": {"S": "parcel"}, "Rev": {"S": "r"}}
    return [
        row("user.v1.User:parcel:3", "typed", MovedTo={"N": "4"}, **theirs),
        row("user.v1.User:parcel:3", "plain", MovedTo={"N": "4"}, address={"S": "theirs"}),
    ]


def planted(world: ReshardWorld) -> list[Wire]:
    found = [*of_others(), *strays(world), *of_foreign_tenants(world), *unrevised(world), *damaged_markers()]
    found += markers_of_others()
    for each in found:
        put(world, each)
    return found


def test_a_repair_changes_nothing_that_the_layer_has_not_written(world: ReshardWorld) -> None:
    world.layer().collection(User).create(User(tenant_id="abc", email="own@example.com", display_name="Own"))
    rows_of_others = planted(world)
    assert len(rows_of_others) >= 50
    before = rows(world)

    ended = world.run("verify", "--mend", "--json")

    report = json.loads(ended.out)
    assert rows(world) == before
    assert ended.status == 4
    assert ended.err.startswith("--mend may ")
    assert report["mended"] == {}
    assert report["others"] == len(of_others())
    assert report["found"] == {"double": 2, "unreadable": 6, "unrevised": 8, "damaged_marker": len(MARKERS)}


def test_no_tenant_is_shown_an_item_of_another_after_a_repair(world: ReshardWorld) -> None:
    planted(world)
    world.run("verify", "--mend")
    users = world.layer().collection(User)

    page = users.list({"tenant_id": "abc"}, limit=1000)
    found = users.list({"tenant_id": "abc"}, index="by_email", limit=1000)

    assert (page.items, found.items) == ([], [])
    for n in range(5):
        mine = users.list({"tenant_id": f"t{n}"})
        assert (len(mine.items), len(mine.undecodable)) == (0, 1)


def test_each_change_of_a_repair_is_listed_with_old_and_new_values(world: ReshardWorld) -> None:
    made = user(world, "abc")
    put(world, {**made, "GSI1SK": {"S": "wrong"}})
    put(world, row("user.v1.User:abc:3", "somebody", MovedTo={"N": "32"}))

    report = json.loads(world.run("verify", "users", "abc", "--mend", "--json").out)

    by_kind = {finding["kind"]: finding["changes"] for finding in report["findings"]}
    assert by_kind["index"] == {"GSI1SK": {"old": {"S": "wrong"}, "new": made["GSI1SK"]}}
    assert by_kind["marker"]["MovedTo"] == {"old": {"N": "32"}, "new": None}
    assert rows(world) == [made]


def test_rows_of_no_entity_are_findings_if_strict(world: ReshardWorld) -> None:
    put(world, row("CONFIG", "v1", data={"S": "theirs"}))
    before = rows(world)

    plain, strict = world.run("verify", "--json"), world.run("verify", "--strict", "--mend", "--json")

    assert (plain.status, json.loads(plain.out)["found"]) == (0, {})
    [finding] = json.loads(strict.out)["findings"]
    assert (strict.status, finding["kind"], finding["where"], finding["mended"]) == (4, "other", "CONFIG / v1", False)
    assert rows(world) == before


def test_an_item_that_readers_cannot_see_is_not_brought_into_an_index(world: ReshardWorld) -> None:
    made = user(world, "abc")
    world.wire.call("DeleteItem", {"TableName": world.table, "Key": {"PK": made["PK"], "SK": made["SK"]}})
    place = f"user.v1.User:abc:{(int(made['PK']['S'].rpartition(':')[2]) + 1) % 16}"
    put(world, {**made, "PK": {"S": place}, "GSI1SK": {"S": "wrong"}})
    before = rows(world)

    ended = world.run("verify", "--only", "index", "--mend", "--json")

    assert (ended.status, json.loads(ended.out)["found"]) == (0, {})
    assert rows(world) == before


def test_a_repair_announces_what_it_may_do_and_nothing_else(world: ReshardWorld) -> None:
    index, attachments = (world.run("verify", "--only", part, "--mend").err for part in ("index", "attachments"))

    assert index.startswith("--mend may write index keys anew. It touches only rows")
    assert attachments == "--mend may repair nothing of what is verified.\n"


def test_rows_that_do_not_fit_have_a_status_of_their_own(world: ReshardWorld) -> None:
    [foreign, *_] = of_foreign_tenants(world)
    put(world, foreign)

    unfit = world.run("verify", "users", "--mend")
    put(world, {**user(world, "abc"), "GSI1SK": {"S": "wrong"}})
    wrong, mended = world.run("verify", "users"), world.run("verify", "users", "--mend")

    assert (unfit.status, wrong.status, mended.status) == (3, 4, 3)
    assert "1 found wrong, 1 of them because they do not fit their declaration" in unfit.out
