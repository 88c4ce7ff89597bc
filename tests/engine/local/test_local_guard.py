"""The engine's port answers tools, and neither web pages nor requests for another host."""

import asyncio
import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dynashard.transport import connect
from dynashard_checks.schedules.wire import TABLE, LeanWire, create_tables
from dynashard_local.engine.front import Front, passed_on
from dynashard_local.engine.guard import guarded_engine
from dynashard_local.engine.messages import Answer
from dynashard_local.engine.process import Engine
from dynashard_local.engine.simulated_limits import limits_of
from dynashard_local.errors import LocalStackError
from dynashard_local.settings import Settings

pytestmark = pytest.mark.engine

HEADERS = {
    "content-type": "application/x-amz-json-1.0",
    "authorization": (
        "AWS4-HMAC-SHA256 Credential=a/20300101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0"
    ),
    "x-amz-date": "20300101T000000Z",
}
ITEM = {"PK": {"S": "a"}, "SK": {"S": "1"}}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with guarded_engine(Settings(data_dir=tmp_path_factory.mktemp("data"), dynamodb_port=0)) as running:
        wire = LeanWire(int(urlsplit(running.public).port or 0))
        create_tables(wire)
        wire.close()
        yield running


def asked(engine: Engine, operation: str, **headers: str) -> tuple[int, str]:
    at = urlsplit(engine.public)
    connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=60)
    body = json.dumps({"TableName": TABLE, "Item": ITEM} if operation == "PutItem" else {})
    named = {**HEADERS, "x-amz-target": f"DynamoDB_20120810.{operation}", **headers}
    try:
        connection.request("POST", "/", body, named)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def stored(engine: Engine) -> int:
    transport = connect(engine.endpoint, "us-east-1", access_key="a", secret_key="b")  # noqa: S106
    count = transport.call("Scan", {"TableName": TABLE})["Count"]
    transport.close()
    return int(count)


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"origin": "https://example.com"}, "https://example.com"),
        ({"origin": "http://localhost:5173"}, "web pages"),
        ({"Origin": "null"}, "web pages"),
        ({"sec-fetch-site": "cross-site"}, "web pages"),
        ({"host": "rebound.example.com"}, "127.0.0.1 and localhost"),
        ({"host": "127.0.0.1.example.com:8001"}, "127.0.0.1 and localhost"),
    ],
)
def test_a_web_page_cannot_use_the_database(engine: Engine, headers: dict[str, str], said: str) -> None:
    before = stored(engine)

    status, text = asked(engine, "PutItem", **headers)

    assert status == 403
    assert said in text
    assert stored(engine) == before


def test_tools_use_the_database(engine: Engine) -> None:
    assert asked(engine, "PutItem")[0] == 200
    assert asked(engine, "PutItem", host="localhost:8001")[0] == 200
    assert stored(engine) == 1


def test_requests_that_share_a_connection_are_each_checked(engine: Engine) -> None:
    at = urlsplit(engine.public)
    connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=60)
    headers = {**HEADERS, "x-amz-target": "DynamoDB_20120810.ListTables"}
    connection.request("POST", "/", "{}", headers)
    first = connection.getresponse()
    first.read()
    connection.request("POST", "/", "{}", {**headers, "origin": "https://example.com"})
    second = connection.getresponse()

    assert (first.status, second.status) == (200, 403)
    connection.close()


def test_the_engine_itself_is_not_where_pages_look(engine: Engine) -> None:
    assert engine.endpoint != engine.public
    assert urlsplit(engine.endpoint).port != urlsplit(engine.public).port


def test_a_taken_port_is_named(tmp_path: Path, engine: Engine) -> None:
    port = urlsplit(engine.public).port

    with (
        pytest.raises(LocalStackError, match=f"Port {port} cannot be used"),
        guarded_engine(Settings.model_validate({"data_dir": tmp_path / "other", "dynamodb_port": port})),
    ):
        pass


HALF = b"POST / HTTP/1.1\r\nhost: 127.0.0.1\r\n"
WHOLE = HALF + b"content-length: 2\r\nx-amz-target: DynamoDB_20120810.ListTables\r\n\r\n{}"


@pytest.mark.parametrize("sent", [b"", HALF, WHOLE[:-1]], ids=["nothing", "half of the headers", "half of the body"])
def test_a_connection_that_never_sends_a_whole_request_is_closed(engine: Engine, sent: bytes) -> None:
    assert asyncio.run(_received(engine, sent)) == b""


def test_a_connection_that_rests_between_requests_stays_open(engine: Engine) -> None:
    assert b"HTTP/1.1 403" in asyncio.run(_answers_after_a_rest(engine))


def test_a_client_that_waits_for_100_continue_gets_the_answer_too(engine: Engine) -> None:
    waiting = WHOLE.replace(b"\r\n\r\n", b"\r\nExpect: 100-Continue\r\n\r\n")

    [answer, refusal] = asyncio.run(_statuses(engine, WHOLE))

    assert asyncio.run(_statuses(engine, waiting)) == [b"100", answer, refusal]


SIGNED = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
LIST = f"POST / HTTP/1.1\r\nhost: 127.0.0.1\r\nx-amz-target: DynamoDB_20120810.ListTables\r\n{SIGNED}"
CLOSING = "connection: close\r\n\r\n{}"


@pytest.mark.parametrize(
    ("sent", "status", "said"),
    [
        (f"{LIST}content-length: -2\r\n{CLOSING}", 400, "Content-Length must be a whole number."),
        (f"{LIST}content-length: \r\n{CLOSING}", 400, "Content-Length must be a whole number."),
        (f"{LIST}content-length: {'9' * 5000}\r\n{CLOSING}", 413, "at most 16777216 bytes"),
        (f"{LIST}content-length: 16777217\r\n{CLOSING}", 413, "at most 16777216 bytes"),
        (f"{LIST}content-length: 2\r\ncontent-length: 9\r\n{CLOSING}", 400, "not valid HTTP/1.1"),
        (f"{LIST}content-length : 2\r\n{CLOSING}", 400, "not valid HTTP/1.1"),
        (f"{LIST}content-length: 2\r\nhost: localhost\r\n{CLOSING}", 400, "not valid HTTP/1.1"),
        (f"{LIST}content-length: 2\r\nx-a: a\norigin: https://example.com\r\n{CLOSING}", 400, "not valid HTTP/1.1"),
        (f"{LIST}content-length: 2\r\norigin:\thttps://example.com\r\n{CLOSING}", 403, "web pages"),
        (f"{LIST}transfer-encoding: chunked\r\n{CLOSING}", 411, "needs a Content-Length"),
        (f"{LIST}transfer-encoding:\r\n chunked\r\n{CLOSING}", 400, "not valid HTTP/1.1"),
        (f"{LIST}x-a: {'a' * 100_000}\r\n{CLOSING}", 431, "at most 65536 bytes"),
        ("\x00\x01\r\n\r\n", 400, "not valid HTTP/1.1"),
    ],
    ids=lambda given: str(given).removeprefix(LIST)[:40],
)
def test_a_request_without_a_clear_end_is_refused_in_the_engines_form(
    engine: Engine, sent: str, status: int, said: str
) -> None:
    head, _, body = asyncio.run(_received(engine, sent.encode(), receive_seconds=10.0)).partition(b"\r\n\r\n")

    assert int(head.split()[1]) == status
    assert said in json.loads(body)["message"]


def test_head_is_answered_without_a_body_and_leaves_the_connection_usable(engine: Engine) -> None:
    head = b"HEAD / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"

    assert asyncio.run(_statuses(engine, head)) == [b"404", b"403"]


@pytest.mark.parametrize("line", ["HTTP/1.0", "HTTP/1.1\r\nconnection: close", "HTTP/1.1\r\nConnection: Close, te"])
def test_a_connection_that_its_client_wants_closed_is_closed_after_the_answer(engine: Engine, line: str) -> None:
    sent = f"{LIST}content-length: 2\r\n\r\n{{}}".replace("HTTP/1.1", line).encode()

    answer = asyncio.run(asyncio.wait_for(_received(engine, sent, receive_seconds=10.0), timeout=10.0))

    assert b"TableNames" in answer


def test_a_refusal_is_read_by_a_client_that_is_still_sending(engine: Engine) -> None:
    sent = f"{LIST}content-length: 20000000\r\n\r\n".encode() + b"a" * 20_000_000

    assert asyncio.run(_received(engine, sent, receive_seconds=30.0)).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("operation", ["PutItem", "Query", "BatchWriteItem", "TransactWriteItems"])
@pytest.mark.parametrize(
    "body", ["", "[]", "{", "{}", '{"Item": 1}', '{"RequestItems": {"a": [{}]}}', '{"TransactItems": [{}]}']
)
def test_with_limits_the_engine_refuses_what_is_malformed(engine: Engine, operation: str, body: str) -> None:
    sent = f"{LIST.replace('ListTables', operation)}content-length: {len(body)}\r\nconnection: close\r\n\r\n{body}"

    answer = asyncio.run(_received(engine, sent.encode(), receive_seconds=10.0, answer=limits_of("hot-tenant")))

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"__type" in answer


async def _statuses(engine: Engine, sent: bytes) -> list[bytes]:
    """Send a request, and one that is refused, which ends the connection."""
    async with await _serving(engine, receive_seconds=10.0) as server:
        reader, writer = await _connected(server, sent)
        writer.write(HALF + b"origin: https://example.com\r\n\r\n")
        return [each.split()[0] for each in (await reader.read()).split(b"HTTP/1.1")[1:]]


async def _answers_after_a_rest(engine: Engine) -> bytes:
    """Send a request, and after a while one that is refused, which ends the connection."""
    async with await _serving(engine, receive_seconds=1.0) as server:
        reader, writer = await _connected(server, WHOLE)
        await reader.readuntil(b"\r\n\r\n")
        # It begins later than the rest of the other one, so it would be closed later, too.
        half, _ = await _connected(server, HALF)
        await half.read()
        writer.write(HALF + b"origin: https://example.com\r\n\r\n")
        return await reader.read()


async def _received(engine: Engine, sent: bytes, *, receive_seconds: float = 0.0, answer: Answer = passed_on) -> bytes:
    async with await _serving(engine, receive_seconds=receive_seconds, answer=answer) as server:
        reader, _ = await _connected(server, sent)
        return await reader.read()


async def _serving(engine: Engine, *, receive_seconds: float, answer: Answer = passed_on) -> asyncio.Server:
    at = urlsplit(engine.endpoint)
    front = Front(at.hostname or "", at.port or 0, answer, receive_seconds=receive_seconds)
    return await asyncio.start_server(front.serve, "127.0.0.1", 0)


async def _connected(server: asyncio.Server, sent: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(sent)
    return reader, writer
