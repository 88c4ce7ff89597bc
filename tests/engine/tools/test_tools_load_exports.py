"""`dynashard load --from-export`: files that the exports have written, loaded as they are."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from domain.samples.incidents import Incident, IncidentState
from domain.samples.users import User
from dynashard import Collection, Dynashard
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from dynashard_tools.load.rows import MAX_ROW_BYTES
from tests.engine.command_line import CURSOR_KEYS, CommandLine, user

pytestmark = pytest.mark.engine

Incidents = Collection[Incident]
DETAILS = {"load": 0.25, "alerts": [1, 2.5], "text": "1.5"}


@pytest.fixture
def incidents(wire: Transport, local_table: str, tenant: str) -> Iterator[Incidents]:
    topology = DeclaredTopology()
    found = Dynashard(wire, table=local_table, topology=topology, cursor_keys=CURSOR_KEYS).collection(Incident)
    first = Incident(
        tenant_id=tenant,
        id="i1",
        number=7,
        title='Late, and "quoted"',
        state=IncidentState.CLOSED,
        closed_at="2026-11-20T10:00:00+01:00",
        critical=True,
        participants=["user_a", "team_r"],
        details=DETAILS,
    )
    found.create(first)
    found.create(Incident(tenant_id=tenant, id="i2", title="Bare"))
    yield found
    for item in list(found.scan({"tenant_id": tenant})):
        found.delete(item)


def stored(incidents: Incidents, tenant: str) -> dict[str, Any]:
    """Return the items of a tenant with their details, without what a load sets anew."""
    keys = [{"tenant_id": tenant, "id": item.id} for item in incidents.scan({"tenant_id": tenant})]
    items = [incidents.get(key, include=("details",)).model_dump() for key in keys]
    return {item["id"]: item | {"created_at": None, "updated_at": None} for item in items}


@pytest.mark.parametrize("name", ["incidents.jsonl", "incidents.csv"])
def test_an_export_is_loaded_as_it_is_and_leaves_attachments_unchanged(
    command_line: CommandLine, incidents: Incidents, tenant: str, tmp_path: Path, name: str
) -> None:
    file, before = tmp_path / name, stored(incidents, tenant)
    assert command_line.run("export", "incidents", "--tenant", tenant, "--to", file).status == 0
    incidents.update({"tenant_id": tenant, "id": "i1"}, set={"title": "Changed", "participants": []})
    incidents.delete({"tenant_id": tenant, "id": "i2"})
    changed = incidents.get({"tenant_id": tenant, "id": "i1"}).revision

    loaded = command_line.run("load", "incidents", file, "--from-export", "--json")

    assert (loaded.status, loaded.summary["items"], loaded.summary["refused"]) == (0, 2, 0), loaded.err
    assert stored(incidents, tenant) == before
    assert incidents.get({"tenant_id": tenant, "id": "i1"}).revision != changed


def test_each_entity_of_the_export_of_an_account_is_loaded_with_its_attachments(
    command_line: CommandLine, incidents: Incidents, users: Collection[User], tenant: str, tmp_path: Path
) -> None:
    users.create(User(tenant_id=tenant, id="u1", email="ada@example.com", display_name="Ada"))
    file, before = tmp_path / "account.jsonl", stored(incidents, tenant)
    assert command_line.run("account", "export", tenant, "--to", file).status == 0
    assert command_line.run("account", "purge", tenant, "--confirm", tenant).status == 0
    incidents.create(Incident(tenant_id=tenant, id="i2", title="Another", details={"of": "another"}))

    loaded = command_line.run("load", "incidents", file, "--from-export", "--tenant", tenant, "--json")
    of_users = command_line.run("load", "users", file, "--from-export")

    assert (loaded.status, loaded.summary["items"], loaded.summary["of_other_entities"]) == (0, 2, 1), loaded.err
    assert stored(incidents, tenant) == before
    assert (of_users.status, [each.email for each in users.scan({"tenant_id": tenant})]) == (0, ["ada@example.com"])
    assert "0 lines refused, 2 lines of other entities" in of_users.out


def test_an_item_with_a_large_attachment_is_loaded(
    command_line: CommandLine, incidents: Incidents, tenant: str, tmp_path: Path
) -> None:
    large = "x" * (MAX_ROW_BYTES + 1)
    incidents.update({"tenant_id": tenant, "id": "i1"}, set={"details": large})
    file = tmp_path / "account.jsonl"
    assert command_line.run("account", "export", tenant, "--to", file).status == 0
    incidents.delete({"tenant_id": tenant, "id": "i1"})

    assert command_line.run("load", "incidents", file, "--from-export").status == 0

    assert incidents.get({"tenant_id": tenant, "id": "i1"}, include=("details",)).details == large


def test_without_the_option_a_line_of_an_export_is_refused_with_the_cure(
    command_line: CommandLine, users: Collection[User], tenant: str
) -> None:
    item = user(0, id="1", tenant_id=tenant, created_at="2026-01-01T00:00:00Z", revision="r")
    line = {"entity": "user.v1.User", "item": item}

    alone = command_line.run("load", "users", command_line.file("users.jsonl", item))
    of_account = command_line.run("load", "users", command_line.file("account.jsonl", line))

    assert alone.status == of_account.status == 1
    assert "created_at: is set by the server; leave it out, or load an export with --from-export" in alone.err
    assert "line 1: is a line of the export of an account; load it with --from-export" in of_account.err
    assert not list(users.scan({"tenant_id": tenant}))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({"entity": "user.v1.User", "item": user(0, emial="x")}, "emial: is not a field"),
        ({"entity": "user.v1.User", "item": user(0, tenant_id="foreign")}, "tenant_id: differs from the tenant"),
        ({"entity": "user.v1.User", "item": ["u"]}, "its item is not a JSON object"),
        ({"entity": "user.v1.User", "item": user(0), **user(0)}, "entity: is not a field"),
        (user(0, email=7), "email: Input should be a valid string"),
        ("{", "not JSON"),
    ],
)
def test_mistakes_in_an_export_are_refused(
    command_line: CommandLine, tenant: str, line: Any, reason: str, tmp_path: Path
) -> None:
    file = tmp_path / "users.jsonl"
    file.write_text(line if isinstance(line, str) else json.dumps(line))

    refused = command_line.run("load", "users", file, "--from-export", "--tenant", tenant)

    assert refused.status == 1
    assert reason in refused.err
