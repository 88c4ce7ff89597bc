"""Every read of an item answers the same text as its write."""

from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from pydantic import Field

from dynashard import Entity, Key, Registry
from dynashard.transport import Transport
from dynashard_serving.api.app import build_app
from dynashard_serving.commands.handler import build_commands
from dynashard_serving.declare import Exposed
from dynashard_serving.documents import representation, without, written
from dynashard_serving.domain import domain_of
from tests.api_caller import Answer, Caller
from tests.depth import examples
from tests.engine.api.api_on_engine import TOPOLOGY, settings_of
from tests.engine.raw_dynamodb import RawDynamoDB
from tests.every_field import Everything, items
from tests.roles import as_function

pytestmark = pytest.mark.engine


class Loose(Entity, name="test.v1.Loose", key=Key("{tenant_id}", "{id}"), registry=Registry()):
    """An entity with values of any type."""

    tenant_id: str
    id: str
    note: str = ""
    named: dict[str, Any] = Field(default_factory=dict)
    one: Any = None
    many: list[object] = Field(default_factory=list)
    bare: dict = Field(default_factory=dict)  # type: ignore[type-arg]
    row: list = Field(default_factory=list)  # type: ignore[type-arg]


EXPOSED = (Exposed(Everything, path="everything"),)


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(item=items)
def test_every_read_answers_what_the_write_answered(transport: Transport, table: str, item: Everything) -> None:
    api, commands = (as_function(function, transport, table, TOPOLOGY) for function in ("api", "commands"))
    caller = Caller(build_app(settings_of(table), api, domain=domain_of(*EXPOSED)))
    direct = build_commands(settings_of(table), commands, domain=domain_of(*EXPOSED))
    identity = uuid4().hex
    body = {**without(representation(item, None), ["tenant_id", "id"]), "id": identity}

    created = caller.post("/v1/everything", body)
    assert created.status == 201, created.json
    read = caller.get(f"/v1/everything/{identity}")
    listed = caller.get("/v1/everything", query=f"prefix={identity}")
    invoked = direct.answer(
        {"operation": "get", "entity": "everything", "tenant_id": created.json["tenant_id"], "key": {"id": identity}}
    )
    patched = caller.patch(f"/v1/everything/{identity}", {})
    put = caller.put(f"/v1/everything/{identity}", created.json)

    assert read.content == created.content
    assert listed.json["items"] == [created.json]
    assert written(invoked["result"]).encode() == created.content
    assert _unrevised(patched) == _unrevised(put) == _unrevised(created)


def test_a_patch_keeps_fractions_in_values_of_any_type(transport: Transport, dynamodb: RawDynamoDB, table: str) -> None:
    served = domain_of(Exposed(Loose, path="loose"))
    caller = Caller(build_app(settings_of(table), as_function("api", transport, table, TOPOLOGY), domain=served))
    given = {"named": {"a": 0.1, "b": [1.5, "1"]}, "one": 0.5, "many": [{"c": 0.25}], "bare": {"d": 2.5}, "row": [7.5]}

    caller.put("/v1/loose/1", given)
    [before] = dynamodb.call("Scan", TableName=table)["Items"]
    patched = caller.patch("/v1/loose/1", {"note": "new"}).json
    [after] = dynamodb.call("Scan", TableName=table)["Items"]

    assert {name: patched[name] for name in given} == given
    assert {name: after[name] for name in given} == {name: before[name] for name in given}


def _unrevised(answer: Answer) -> list[tuple[str, str]]:
    return [(name, written(value)) for name, value in answer.json.items() if name != "revision"]
