"""`dynashard verify`: each kind of fault in a backend is planted, reported, repaired, and not found again."""

from collections.abc import Callable
from typing import Final

import pytest
from msgspec.structs import replace

from domain.samples.follows import FOLLOWS
from domain.samples.seats import Seats
from domain.samples.users import User
from dynashard import definition
from dynashard.resharding import Scope
from dynashard.topology import TopologyTable
from dynashard_patterns import CounterStore, EdgeStore
from tests.engine.tools.reshard_world import ReshardWorld
from tests.engine.tools.verify_world import (
    TENANT,
    backend,
    delete,
    leave_a_marker,
    leave_an_attachment,
    lose_a_copy,
    lose_a_user,
    lose_half_an_edge,
    lower_a_roll_up,
    miscount,
    put,
    report,
    spoil_an_index,
    stored,
    typed,
)

pytestmark = pytest.mark.engine


FAULTS: Final[dict[str, Callable[[ReshardWorld], None]]] = {
    "away": lose_a_user,
    "marker": leave_a_marker,
    "index": spoil_an_index,
    "count": miscount,
    "copy": lose_a_copy,
    "edge": lose_half_an_edge,
    "roll_up": lower_a_roll_up,
    "leftover": leave_an_attachment,
}


def test_every_kind_of_fault_is_reported_repaired_and_not_found_again(world: ReshardWorld) -> None:
    backend(world)
    status, right = report(world)
    assert (status, right["found"], right["findings"], right["others"]) == (0, {}, [], 0)
    assert right["items"] > 30

    for kind, plant in FAULTS.items():
        plant(world)
        checked = report(world)
        mended = report(world, "--mend")
        assert (checked[0], checked[1]["found"].get(kind, 0) > 0, checked[1]["mended"]) == (4, True, {}), (
            kind,
            checked,
        )
        # Half an edge also makes the count of its node wrong. The previous fault was repaired.
        assert set(checked[1]["found"]) <= {kind, *(["count"] if kind == "edge" else [])}, (kind, checked)
        assert (mended[0], mended[1]["mended"]) == (0, checked[1]["found"]), (kind, mended)

    again = report(world)
    assert (again[0], again[1]["found"]) == (0, {})


@pytest.mark.parametrize("entity", ["ping.v1.Ping", "follow.v1.Follow", "screening.v1.Seats"])
def test_a_marker_with_a_key_alone_is_a_finding_and_not_compared_with_anything(
    world: ReshardWorld, entity: str
) -> None:
    backend(world)
    CounterStore.on(world.layer(), Seats).add({"tenant_id": TENANT, "screening": "premiere"}, 3)
    beside = stored(world, typed(entity))
    put(world, {"PK": beside["PK"], "SK": {"S": f"{beside['SK']['S']}0"}, "MovedTo": {"N": "32"}})

    mended, right = report(world, "--mend"), report(world)

    # Which kind it is depends on whether that is the home of its key.
    assert (mended[0], [*mended[1]["found"].values()], mended[1]["mended"]) == (0, [1], mended[1]["found"])
    assert (right[0], right[1]["found"]) == (0, {})


def test_an_expired_item_that_does_not_fit_is_not_compared_with_anything(world: ReshardWorld) -> None:
    backend(world)
    put(world, {**stored(world, typed("ping.v1.Ping")), "at": {"S": "yesterday"}, "ExpiresAt": {"N": "1000"}})

    status, said = report(world)

    assert (status, said["found"]) == (0, {})


def test_an_entry_at_its_place_under_a_former_count_is_right(world: ReshardWorld) -> None:
    people = [User(tenant_id=TENANT, email=f"d{n}@example.com", display_name="D", department="legal") for n in range(9)]
    backend(world).collection(User).batch_write(put=people)
    table = TopologyTable(world.wire, world.topology_table)
    before = table.find("user.v1.User|GSI2")
    assert before is not None
    grown = replace(before.revised(world.clock(), count=64), former=frozenset({before.count}))
    table.save((before, grown))

    right = report(world)
    table.save((grown, replace(grown.revised(world.clock()), former=frozenset())))
    wrong = report(world)

    assert (right[0], right[1]["found"]) == (0, {})
    assert (wrong[0], wrong[1]["found"].get("index", 0) > 0) == (4, True)


def test_an_item_with_another_one_in_a_shard_of_a_former_count_is_not_brought_home(world: ReshardWorld) -> None:
    backend(world)
    table = TopologyTable(world.wire, world.topology_table)
    before = table.find("user.v1.User")
    assert before is not None
    grown = before.revised(world.clock(), count=64)
    table.save((before, grown))
    table.save((grown, grown.revised(world.clock() + 1, count=16)))
    lose_a_user(world)
    lost = next(each["where"] for each in report(world)[1]["findings"])
    place, _, sort = lost.partition(" / ")
    item = stored(world, lambda each: each["PK"]["S"] == place and each["SK"]["S"] == sort)
    put(world, {**item, "PK": {"S": f"{place.rpartition(':')[0]}:63"}})

    status, found = report(world, "--mend")

    assert (status, found["found"], found["mended"]) == (4, {"double": 2}, {})


def test_an_incomplete_attachment_is_reported_and_cannot_be_repaired(world: ReshardWorld) -> None:
    backend(world)
    delete(world, stored(world, lambda each: each["SK"]["S"].startswith("p#")))

    checked, mended = report(world), report(world, "--mend")

    assert [each["kind"] for each in checked[1]["findings"]] == ["attachment"]
    assert (checked[0], mended[0], mended[1]["mended"]) == (4, 4, {})


def test_one_partition_is_verified_by_itself(world: ReshardWorld) -> None:
    db = backend(world)
    db.collection(User).create(User(tenant_id="other", email="a@example.com", display_name="A"))
    lose_a_user(world)

    mine, theirs = report(world, "users", "abc"), report(world, "users", "other")
    whole = report(world, "users")

    assert (mine[0], mine[1]["found"], mine[1]["items"]) == (4, {"away": 1}, 20)
    assert (theirs[0], theirs[1]["found"], theirs[1]["items"]) == (0, {}, 1)
    assert (whole[0], whole[1]["items"]) == (4, 21)


def test_a_partition_that_holds_nothing_may_be_mistyped(world: ReshardWorld) -> None:
    backend(world)

    missing, stored = world.run("verify", "users", "abd"), world.run("verify", "users", f"tenant_id={TENANT}")

    assert (missing.status, missing.err) == (0, "abd holds nothing to verify: check the name\n")
    assert (stored.status, stored.err) == (0, "")


def test_findings_are_printed_in_words(world: ReshardWorld) -> None:
    backend(world)
    lose_a_user(world)

    checked = world.run("verify", "users", "abc")
    mended = world.run("verify", "users", "abc", "--mend", "--read-units", "100000")
    right = world.run("verify", "users", "abc")

    assert (checked.status, mended.status, right.status) == (4, 0, 0)
    assert "away: user.v1.User:abc:" in checked.out
    assert "its home is user.v1.User:abc:" in checked.out
    assert "20 items: 1 found wrong; " in checked.out
    assert "(mended)" in mended.out
    assert "1 found wrong, 1 mended" in mended.out
    assert "20 items: 0 found wrong" in right.out
    for _ in range(2):
        delete(world, stored(world, lambda item: item["SK"]["S"] == "FAN_OF.Actor.5"))
    halves = world.run("verify", "follows", "--only", "edges").out
    assert "the other half is missing of " in halves
    assert " more\n" not in halves


def test_a_running_change_is_reported_and_the_rest_is_verified(world: ReshardWorld) -> None:
    backend(world)
    scope = Scope(definition(User), "user.v1.User:abc")
    world.resharder().start(scope, 32)
    world.bring_to(scope, "move")

    outcome = world.run("verify", "users", "abc")

    assert outcome.status == 4
    assert "user.v1.User:abc is changing its shard count" in outcome.out
    assert "20 items: 0 found wrong" in outcome.out
    world.bring_to(scope, "stable")
    assert world.run("verify", "users", "abc").status == 0


def test_wrong_arguments_are_one_line(world: ReshardWorld) -> None:
    unknown, parts = world.run("verify", "nobody"), world.run("verify", "users", "a:b")

    assert (unknown.status, parts.status) == (1, 1)
    assert "no entity is called 'nobody'" in unknown.err
    assert "has 2 parts" in parts.err


def test_a_repair_of_edges_lists_the_half_that_it_writes_and_the_count_that_it_corrects(world: ReshardWorld) -> None:
    backend(world)
    lost = stored(world, lambda each: each["SK"]["S"] == "FANNED_BY.User.1")
    lose_half_an_edge(world)

    half = report(world, "follows", "--mend")[1]["findings"]
    miscount(world)
    count = report(world, "follows", "--mend")[1]["findings"]

    [change] = next(each for each in half if each["kind"] == "edge")["changes"].items()
    assert change[0] == "the other half of FAN_OF.Actor.5"
    assert change[1]["old"] is None
    assert change[1]["new"]["M"].items() <= lost.items()
    assert {"node", "other", "since"} <= change[1]["new"]["M"].keys()
    [finding] = count
    [corrected] = finding["changes"].values()
    assert int(corrected["old"]["N"]) == int(corrected["new"]["N"]) + 7


def test_a_half_of_an_edge_that_is_written_is_counted_once_at_its_node(world: ReshardWorld) -> None:
    backend(world)
    half = stored(world, lambda item: item["SK"]["S"] == "FANNED_BY.User.1")
    delete(world, half)
    edges = EdgeStore.on(world.layer(), FOLLOWS)

    mended = report(world, "follows", f"{TENANT}:User.1", "--mend")
    right = report(world)

    # The half was counted at its node, although it was not there.
    assert (mended[0], mended[1]["mended"]) == (0, {"edge": 1, "count": 1})
    assert (right[0], right[1]["found"]) == (0, {})
    assert edges.count(TENANT, "Actor.5", "backward", consistent=True) == 3


def test_one_item_is_counted_in_the_singular(world: ReshardWorld) -> None:
    world.layer().collection(User).create(tenant_id=TENANT, email="a@example.com", display_name="Ada")

    assert world.run("verify", "users", TENANT).out.startswith("1 item: 0 found wrong; ")
