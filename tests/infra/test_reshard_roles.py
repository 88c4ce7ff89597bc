"""The roles of the functions that change counts: each allows all that its function needs, and no more."""

from typing import Any

import pytest

from dynashard.testing.faults import conflict, unprocessed
from tests.infra.cloudwatch_metrics import CloudWatch
from tests.infra.reshard_aws import Mappings
from tests.infra.reshard_world import ASKED, IDS, ROLES, Fault, Locker, Note, World
from tests.roles import BY_LAMBDA, Grant

pytestmark = pytest.mark.infra


def test_a_whole_family_of_random_placement_shrinks_within_the_roles(parcels: World) -> None:
    parcels.collection(Note).create(Note(tenant="abc", id="1"))
    for to in (4, 1):
        parcels.start(to, entity="notes", partition=None)
        parcels.deliver()
        assert [execution.status for execution in parcels.run()] == ["SUCCEEDED"]

    (family,) = parcels.operate("topology.show", entity="notes")["result"]
    assert (family["count"], family["target"], family["error"]) == (1, None, None)
    assert ("Table", "Scan") in parcels.wire.used["Advance"]
    assert len(list(parcels.collection(Note).scan({"tenant": "abc"}, consistent=True))) == 1


def test_a_role_allows_what_its_function_needs_and_no_more(parcels: World) -> None:
    family = {**ASKED, "partition": None}
    notes: dict[str, Any] = {"entity": "notes", "partition": {"tenant": "abc"}}
    parcels.collection(Note).create(Note(tenant="abc", id="1"))
    for asked in (ASKED, family, {**notes, "partition": None}, notes):
        for to in (4, 1):
            resize(parcels, to, **asked)
    fail_for_good(parcels)
    meet_a_taken_home(parcels)
    move_what_is_stored_late(parcels)
    parcels.start(2, **notes)
    parcels.lose()
    parcels.clock.now += 400
    parcels.look()
    parcels.run()
    shrink_by_themselves(parcels)
    leave_reads_undone(parcels)
    parcels.stream_age(Mappings(), CloudWatch(now=parcels.clock.now)).seconds()

    roles, used = parcels.wire.roles, parcels.wire.used
    granted = {
        who: {each for each in role.grants | role.others if each[1] not in BY_LAMBDA | {"sqs:SendMessage"}}
        for who, role in roles.items()
    }
    assert {who: used[who] - granted[who] for who in ROLES if used[who] - granted[who]} == {}
    assert {who: granted[who] - used[who] for who in ROLES if granted[who] - used[who]} == {}
    assert {resource for resource, _ in roles["Operator"].grants} == {"Topology"}


def resize(parcels: World, to: int, **asked: Any) -> None:
    """Change a count, with a pause."""
    parcels.operate("reshard.start", **asked, to=to)
    parcels.operate("reshard.pause", **asked)
    parcels.operate("reshard.resume", **asked)
    parcels.deliver()
    assert {execution.status for execution in parcels.run()} == {"SUCCEEDED"}


def fail_for_good(parcels: World) -> None:
    """Have each call of the worker fail, and let the resize be completed."""
    parcels.faults = [Fault("Work", None, 0)]
    parcels.start(8)
    parcels.deliver()
    parcels.run()
    parcels.faults = []
    parcels.operate("reshard.resume", **ASKED)
    parcels.deliver()
    parcels.run()


def meet_a_taken_home(parcels: World) -> None:
    """Have the mover meet a conflict, so that it reads items again, and then another item at a new home."""
    parcels.put_twice(IDS[0])
    with parcels.struck(conflict("TransactWriteItems")):
        parcels.start(1)
        parcels.deliver()
        parcels.run()
    assert "an item stands there already" in parcels.status()["error"]


def move_what_is_stored_late(parcels: World) -> None:
    """Have the mover meet items with unique values in their former shards, after it has moved the others."""
    asked: dict[str, Any] = {"entity": "lockers", "partition": {"tenant": "abc"}}
    names = list(IDS)

    def late(_entry: str) -> None:
        if names and parcels.operate("reshard.status", **asked)["result"]["stage"] == "settle":
            parcels.store_late(*names)
            names.clear()

    parcels.meanwhile = late
    parcels.start(4, **asked)
    parcels.deliver()
    ended = [execution.status for execution in parcels.run()]
    assert ended == ["SUCCEEDED"], parcels.operate("reshard.status", **asked)
    assert len(list(parcels.collection(Locker).scan({"tenant": "abc"}, consistent=True))) == len(IDS)


def shrink_by_themselves(parcels: World) -> None:
    """Have a count that grew after throttles be quiet for long."""
    parcels.grow({"tenant": "quiet"}, 4)
    parcels.deliver()
    parcels.run()
    parcels.clock.now += 30 * 24 * 3600
    assert len(parcels.shrink()) == 1


def leave_reads_undone(parcels: World) -> None:
    """Have each function meet a read of the topology that DynamoDB leaves undone in part."""
    with parcels.struck(unprocessed("BatchGetItem", keep=1, nth=None)):
        parcels.look()
        parcels.deliver()
        parcels.run()
        parcels.faults = [Fault("Advance", None, 0)]
        parcels.start(4, partition={"tenant": "other"})
        parcels.deliver()
        parcels.run()


@pytest.mark.parametrize(
    ("who", "grant", "asked"),
    [
        ("Advance", ("Table", "Scan"), {"entity": "notes", "partition": None}),
        ("Advance", ("Table", "Query"), {"entity": "notes", "partition": {"tenant": "abc"}}),
        ("Work", ("Table", "UpdateItem"), ASKED),
    ],
)
def test_a_role_with_one_action_less_fails_the_resize(
    parcels: World, who: str, grant: Grant, asked: dict[str, Any]
) -> None:
    parcels.start(4, **asked)
    parcels.deliver()
    parcels.run()
    parcels.wire.roles[who] = parcels.wire.roles[who].without(grant)
    parcels.start(1, **asked)
    parcels.deliver()
    (failed,) = parcels.run()

    status = parcels.operate("reshard.status", **asked)["result"]
    assert failed.status == "FAILED"
    assert status["paused"] is True
    assert f"not authorized to perform: dynamodb:{grant[1]}" in status["error"]
