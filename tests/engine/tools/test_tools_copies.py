"""`dynashard copies`: drifted copies are reported, repaired, and not found again."""

import pytest

from domain.samples.incidents import Incident
from domain.samples.participations import Participation
from dynashard import Dynashard, Entity, Key, Registry, Shards
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from tests.engine.command_line import CURSOR_KEYS, CommandLine

pytestmark = pytest.mark.engine


@pytest.fixture
def db(wire: Transport, local_table: str) -> Dynashard:
    return Dynashard(wire, table=local_table, topology=DeclaredTopology(), cursor_keys=CURSOR_KEYS)


def test_copies_are_checked_and_repaired(command_line: CommandLine, db: Dynashard, tenant: str) -> None:
    incidents, participations = db.collection(Incident), db.collection(Participation)
    mine = incidents.create(
        Incident(tenant_id=tenant, number=1, title="Fire", participants=["user_ada", "user_bob"], team="team_x")
    )

    checked = command_line.run("copies", "check", "participations", "--tenant", tenant, "--json")
    mended = command_line.run("copies", "repair", "participations", "--tenant", tenant)
    right = command_line.run("copies", "check", "participations", "--tenant", tenant)
    listed = participations.list({"tenant_id": tenant, "participant": "team_x"}, index="by_participant", prefix="OPEN#")
    incidents.delete(mine)
    orphans = command_line.run("copies", "repair", "participations", "--tenant", tenant, "--json").summary
    again = command_line.run("copies", "repair", "participations", "--tenant", tenant, "--json").summary

    assert (checked.status, checked.summary["drift"]) == (3, {"missing": 3, "wrong": 0, "extra": 0})
    assert (mended.status, "1 items, 3 copies: 3 mended" in mended.out) == (0, True)
    assert (right.status, "0 differ" in right.out) == (0, True)
    assert [(each.incident_id, each.title) for each in listed.items] == [(mine.id, "Fire")]
    assert orphans["drift"] == {"missing": 0, "wrong": 0, "extra": 3}
    assert again["drift"] == {"missing": 0, "wrong": 0, "extra": 0}


class Loose(Entity, name="incident.v1.Incident", key=Key("{tenant_id}", "{id}"), shards=Shards(4), registry=Registry()):
    """An incident with a number of another type than the domain declares."""

    tenant_id: str
    id: str = "loose"
    number: str = "one"
    title: str = "without a number"


def test_what_cannot_be_copied_is_reported_and_the_rest_is_repaired(
    command_line: CommandLine, db: Dynashard, tenant: str
) -> None:
    loose = db.collection(Loose).create(Loose(tenant_id=tenant))
    db.collection(Incident).create(Incident(tenant_id=tenant, number=1, title="Fire", participants=["user_ada"]))

    mended = command_line.run("copies", "repair", "participations", "--tenant", tenant)
    checked = command_line.run("copies", "check", "participations", "--tenant", tenant, "--json")
    db.collection(Loose).delete(loose)

    assert (mended.status, checked.status) == (3, 3)
    assert "2 items, 1 copies: 1 mended" in mended.out
    assert "left out: " in mended.err
    assert "loose" in mended.err
    assert (checked.summary["drift"]["missing"], checked.summary["unfit"]) == (0, 1)


def test_an_entity_without_copies_is_refused(command_line: CommandLine) -> None:
    wrong = command_line.run("copies", "check", "users")

    assert wrong.status == 1
    assert "There are: participations" in wrong.err
