"""Calls of DynamoDB in traces: what a daemon of X-Ray receives from a function."""

import json
import socket
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from dynashard import schema
from dynashard.errors import ConditionFailedError, EngineUnavailableError, OverloadedError, ThrottledError
from dynashard.transport.interface import Call, Transport
from dynashard_serving.telemetry.tracing import TracedTransport, Tracer, traced
from tests.waiting import HANG_SECONDS

pytestmark = pytest.mark.engine

ROOT, PARENT = "1-5759e988-bd862e3fe1be46a994272793", "53995c3f42cd8ad8"
SAMPLED = f"Root={ROOT};Parent={PARENT};Sampled=1"
KEY = {schema.PK: {"S": "user.v1.User:abc:1"}, schema.SK: {"S": "secret-id"}}


@pytest.fixture
def daemon() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.settimeout(HANG_SECONDS)
        yield listening


def environ(daemon: socket.socket, header: str = SAMPLED) -> dict[str, str]:
    host, port = daemon.getsockname()
    return {
        "AWS_XRAY_DAEMON_ADDRESS": f"{host}:{port}",
        "_X_AMZN_TRACE_ID": header,
        "AWS_REGION": "eu-west-1",
    }


def received(daemon: socket.socket) -> tuple[Mapping[str, Any], str]:
    """Return the next segment, and its text."""
    header, text = daemon.recv(65_536).decode().split("\n")
    assert json.loads(header) == {"format": "json", "version": 1}
    return json.loads(text), text


def test_a_call_is_a_subsegment_of_the_functions_segment(
    daemon: socket.socket, transport: Transport, table: str
) -> None:
    tracing = traced(transport, environ(daemon))

    answer = tracing.call("GetItem", {"TableName": table, "Key": KEY})

    segment, text = received(daemon)
    assert "Item" not in answer
    assert (segment["trace_id"], segment["parent_id"]) == (ROOT, PARENT)
    assert (segment["name"], segment["namespace"], segment["type"]) == ("DynamoDB", "aws", "subsegment")
    assert segment["aws"] == {
        "operation": "GetItem",
        "region": "eu-west-1",
        "resource_names": [table],
        "table_name": table,
    }
    assert len(segment["id"]) == 16
    assert segment["start_time"] <= segment["end_time"]
    assert not {"error", "fault", "throttle"} & segment.keys()
    assert "secret-id" not in text


def test_requests_that_travel_at_once_are_one_subsegment(
    daemon: socket.socket, transport: Transport, table: str
) -> None:
    tracing = traced(transport, environ(daemon))
    calls = [
        Call("GetItem", {"TableName": table, "Key": KEY}),
        Call("BatchGetItem", {"RequestItems": {table: {"Keys": [KEY]}}}),
        Call("TransactGetItems", {"TransactItems": [{"Get": {"TableName": table, "Key": KEY}}]}),
    ]

    tracing.try_all(calls)
    tracing.call_all(calls[:1])

    wave, single = received(daemon)[0], received(daemon)[0]
    assert (wave["aws"]["operation"], wave["aws"]["table_name"]) == ("BatchGetItem+GetItem+TransactGetItems", table)
    assert (wave["annotations"], single["annotations"]) == ({"requests": 3}, {"requests": 1})
    assert wave["id"] != single["id"]


def test_an_error_is_raised_as_it_is_and_marked(daemon: socket.socket, transport: Transport, table: str) -> None:
    tracing = traced(transport, environ(daemon))
    missing = {"TableName": table, "Key": KEY, "ConditionExpression": "attribute_exists(SK)"}

    with pytest.raises(ConditionFailedError):
        tracing.call("DeleteItem", missing)

    assert received(daemon)[0]["error"] is True


@pytest.mark.parametrize(
    ("error", "flags"),
    [
        (ThrottledError("slow", operation="GetItem"), {"error", "throttle"}),
        (EngineUnavailableError("away", operation="GetItem"), {"fault"}),
        (OverloadedError("full"), {"error"}),
    ],
)
def test_the_kind_of_an_error_is_that_of_x_ray(error: Exception, flags: set[str]) -> None:
    sent = list[bytes]()
    tracer = Tracer({"_X_AMZN_TRACE_ID": SAMPLED}, sent.append)

    with pytest.raises(type(error)), tracer.call("GetItem", []):
        raise error

    [datagram] = sent
    segment = json.loads(datagram.split(b"\n")[1])
    assert {name for name in ("error", "fault", "throttle") if segment.get(name)} == flags
    assert "region" not in segment["aws"]


@pytest.mark.parametrize(
    "header", ["", f"Root={ROOT};Parent={PARENT};Sampled=0", f"Root={ROOT};Sampled=1", "Sampled=1", "nonsense"]
)
def test_a_trace_that_is_not_recorded_gets_nothing(transport: Transport, table: str, header: str) -> None:
    sent = list[bytes]()
    tracing = TracedTransport(transport, Tracer({"_X_AMZN_TRACE_ID": header}, sent.append))

    tracing.call("GetItem", {"TableName": table, "Key": KEY})

    assert sent == []


def test_a_daemon_that_cannot_be_reached_does_not_fail_a_request(transport: Transport, table: str) -> None:
    def refuse(_: bytes) -> None:
        raise BlockingIOError

    tracing = TracedTransport(transport, Tracer({"_X_AMZN_TRACE_ID": SAMPLED}, refuse))

    assert "Item" not in tracing.call("GetItem", {"TableName": table, "Key": KEY})


@pytest.mark.parametrize("address", ["", "somewhere", "tcp:127.0.0.1:x"])
def test_without_a_daemon_the_transport_is_as_it_was(transport: Transport, address: str) -> None:
    assert traced(transport, {"AWS_XRAY_DAEMON_ADDRESS": address}) is transport
