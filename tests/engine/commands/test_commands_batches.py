"""Batches by direct invocation, where other writers interfere and where one answer cannot hold all results."""

from typing import Any, Final

import pytest

from dynashard import Dynashard, Entity, Key, Registry, Shards
from dynashard.testing.faults import FaultyTransport, meanwhile
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from dynashard_serving.declare import Access, Exposed
from tests.engine.api.api_on_engine import KEYS
from tests.engine.commands.commands_on_engine import TENANT, Service, commands_on

pytestmark = pytest.mark.engine

LARGE: Final = "x" * 350_000


class Box(Entity, name="boxed.v1.Box", key=Key("{tenant_id}", "{id}"), shards=Shards(2), registry=Registry()):
    """Its fields are called like the members of a put's result."""

    tenant_id: str
    id: str
    item: str
    created: bool = True


class Note(Entity, name="noted.v1.Note", key=Key("{tenant_id}", "{id}"), shards=Shards(2), registry=Registry()):
    tenant_id: str
    id: str
    owner: str
    text: str = ""


def test_a_large_batch_names_what_it_wrote_whatever_the_fields_are_called(transport: Transport, table: str) -> None:
    service = Service(commands_on(transport, table, exposed=(Exposed(Box, "boxes"),)), entity="boxes")
    for number in range(18):
        service.result("put", item={"id": str(number), "item": LARGE})
    # Those of either consistency are read by themselves, and fit.
    reads = [{"operation": "get", "key": {"id": str(n)}, "consistent": n < 9} for n in range(18)]
    writes: list[dict[str, Any]] = [
        {"operation": "create", "item": {"id": "new", "item": "a"}},
        {"operation": "put", "item": {"id": "put", "item": "b"}},
    ]

    outcomes = service.result("batch", requests=[*reads, *writes])

    create, put = (each["result"] for each in outcomes[-2:])
    assert create.keys() == {"id", "revision"}
    assert (create["id"], put["item"]["id"], put["created"]) == ("new", "put", True)


@pytest.mark.parametrize("operation", ["put", "delete"])
def test_a_batch_that_another_writer_overtakes_refuses_no_condition_that_nobody_sent(
    transport: Transport, table: str, operation: str
) -> None:
    notes = Dynashard(transport, table=table, topology=DeclaredTopology(), cursor_keys=KEYS).collection(Note)
    stored = notes.create(Note(tenant_id=TENANT, id="1", owner="ada"))
    other = meanwhile("UpdateItem" if operation == "put" else "DeleteItem", lambda: notes.replace(stored))
    faulty = FaultyTransport(transport)
    exposed = Exposed(Note, "notes", access=Access(read="n:read", write="n:write", owner="{owner}"))
    service = Service(commands_on(faulty, table, exposed=(exposed,)), entity="notes")
    service.result("put", item={"id": "2", "owner": "ada"})
    faulty.inject(other)
    writes = {"put": [{"id": "1", "owner": "ada"}]} if operation == "put" else {"delete": [{"id": "1"}]}

    result = service.result("batch_write", **writes, caller={"subject": "ada", "scopes": ["n:read", "n:write"]})

    assert not faulty.waiting
    (outcome,) = result[operation]
    assert outcome["error"]["code"] == "write_contended"
    assert outcome["error"]["retry_after"] == 1
