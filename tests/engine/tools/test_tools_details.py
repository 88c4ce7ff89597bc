"""`dynashard details`: pieces that interrupted writes have left are removed and reported."""

import time
from contextlib import suppress

import pytest

from domain.samples.incidents import Incident
from dynashard import Collection, Dynashard
from dynashard.runtime import Runtime
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from tests.engine.command_line import CURSOR_KEYS, CommandLine
from tests.engine.patterns.attachment_world import Dying, Killed

pytestmark = pytest.mark.engine

DAYS = 24 * 60 * 60


@pytest.fixture
def before(wire: Transport, local_table: str) -> Collection[Incident]:
    """The incidents, with a clock of two days ago."""
    return incidents(wire, local_table)


def incidents(wire: Transport, table: str) -> Collection[Incident]:
    db = Dynashard(
        wire,
        table=table,
        topology=DeclaredTopology(),
        cursor_keys=CURSOR_KEYS,
        runtime=Runtime(lambda: time.time() - 2 * DAYS),
    )
    return db.collection(Incident)


def leave(wire: Transport, table: str, tenant: str) -> None:
    """Leave the pieces of a writer that is killed before the item points to its version."""
    with suppress(Killed):
        incidents(Dying(wire, before=2), table).create(
            Incident(tenant_id=tenant, id="lost", number=2, title="Lost", details=[2])
        )


def test_a_sweep_removes_only_unreferenced_pieces(
    command_line: CommandLine, wire: Transport, local_table: str, tenant: str, before: Collection[Incident]
) -> None:
    kept = before.create(Incident(tenant_id=tenant, id="kept", number=1, title="Kept", details=[1]))
    command_line.run("details", "sweep", "--json")
    leave(wire, local_table, tenant)

    looked = command_line.run("details", "sweep", "incidents", "--dry-run", "--json").summary
    young = command_line.run("details", "sweep", "incidents", "--hours", "72", "--json").summary
    said = command_line.run("details", "sweep", "incidents")
    again = command_line.run("details", "sweep", "--json").summary

    assert (looked["entities"]["incidents"]["removed"], young["entities"]["incidents"]["removed"]) == (1, 0)
    assert (said.status, "1 removed with 1 pieces" in said.out) == (0, True)
    assert again["entities"]["incidents"]["removed"] == 0
    assert before.get(kept, include=["details"]).details == [1]
    before.delete(kept)


def test_a_sweep_of_an_entity_without_attachments_is_refused(command_line: CommandLine) -> None:
    wrong = command_line.run("details", "sweep", "users")

    assert wrong.status == 1
    assert "users have no attachments. Those with some are: incidents" in wrong.err
