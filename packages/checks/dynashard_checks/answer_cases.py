"""Answers as they may arrive: complete, in pieces, cut, slow, chunked, pipelined, damaged, malformed or not at all."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Literal

from dynashard_checks.answers import chunked, counted, damaged, pieces_of

Ending = Literal["closed", "reset", "slow"]
Demand = Literal["exact", "doubt", "unsent", "any"]
ENDINGS: Final[tuple[Ending, ...]] = ("closed", "reset", "slow")


@dataclass(frozen=True, slots=True)
class Truth:
    """An answer that DynamoDB gave to an operation."""

    operation: str
    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Case:
    """One attempt: what DynamoDB answered, and what arrives of it.

    Attributes:
        kind: the name of the fault, for the report.
        truth: what DynamoDB answered.
        pieces: what arrives, in order; none is empty.
        ending: what happens to the connection afterwards.
        demand: which outcome is right: exactly that of the truth; doubt (no usable answer came); certainly not sent;
            or any that does not contradict another transport.
        length: bytes of the answer alone; None if nobody knows where it ends.
    """

    kind: str
    truth: Truth
    pieces: Sequence[bytes]
    ending: Ending
    demand: Demand
    length: int | None = None


def _truth(operation: str, status: int, body: Mapping[str, Any]) -> Truth:
    return Truth(operation, status, json.dumps(body, ensure_ascii=False).encode())


def _error(operation: str, code: str, status: int = 400, **more: Any) -> Truth:
    body = {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "It was refused.", **more}
    return _truth(operation, status, body)


_ITEM: Final = {"PK": {"S": "a"}, "SK": {"S": 'ä "x" \U0001f600\\'}, "photo": {"B": "AAEC"}, "n": {"N": "-1.5"}}
_REASONS: Final = [{"reason": "TableWriteKeyRangeThroughputExceeded", "resource": "arn:aws:dynamodb:::table/users"}]
_CANCELLED: Final = [
    {"Code": "None"},
    {"Code": "ConditionalCheckFailed", "Item": _ITEM, "Message": "It does not hold."},
]
TRUTHS: Final = (
    _truth("GetItem", 200, {"Item": _ITEM, "ConsumedCapacity": {"TableName": "users", "CapacityUnits": 0.5}}),
    _truth("GetItem", 200, {}),
    _truth("Query", 200, {"Items": [{**_ITEM, "n": {"N": str(n)}} for n in range(20)], "Count": 20}),
    _truth("PutItem", 200, {}),
    _truth("PutItem", 200, {"Attributes": _ITEM}),
    _truth("UpdateItem", 200, {"Attributes": _ITEM}),
    _truth("TransactWriteItems", 200, {}),
    _error("GetItem", "ResourceNotFoundException"),
    _error("Query", "ProvisionedThroughputExceededException", ThrottlingReasons=_REASONS),
    _error("PutItem", "ConditionalCheckFailedException", Item=_ITEM),
    _error("UpdateItem", "ThrottlingException", throttlingReasons=_REASONS),
    _error("TransactWriteItems", "TransactionCanceledException", CancellationReasons=_CANCELLED),
    _error("TransactWriteItems", "IdempotentParameterMismatchException"),
    _error("PutItem", "InternalServerError", status=500),
    Truth("Query", 503, b"<html>Service Unavailable</html>"),
    Truth("UpdateItem", 502, b""),
)
OPERATIONS: Final = tuple(dict.fromkeys(truth.operation for truth in TRUTHS))
_OF_OPERATION: Final = {each: [t for t in TRUTHS if t.operation == each] for each in OPERATIONS}

_HEADERS: Final = (
    "Connection: close",
    "Connection: keep-alive",
    "X-Amzn-RequestId: ABC",
    "Server: \t Server ",
    "Date: Sun, 22 Nov 2026 12:00:00 GMT",
)
_ODD_HEADERS: Final = (
    "Content-Length: 0",
    "Content-Length: 5",
    "Content-Length: +2",
    "Content-Length: 2, 2",
    "Content-Length:",
    "Content-Length: 99999999999999999999",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: identity",
    "Content-Encoding: gzip",
    "x-amz-crc32: 1",
    "x-amz-crc32:",
    " folded",
    "no colon",
    ": no name",
    "X-A : b",
    "X-A: a\nX-B: b",
    "X-A: a\0b",
    "X-Long: " + "a" * 70_000,
    *(f"X-{number}: b" for number in range(3)),
)


def draw(random: Random, operation: str) -> Case:
    """Return a random case of an operation."""
    truth = random.choice(_OF_OPERATION[operation])
    return random.choice(_KINDS)(random, truth)


def _sent(random: Random, truth: Truth, *more: str) -> bytes:
    """Return the truth as DynamoDB sends it, with the body's length or in chunks."""
    headers = [*random.sample(_HEADERS, random.randrange(3)), *more]
    if random.random() < 0.6 or not truth.body:  # noqa: PLR2004 - more often than not
        return counted(truth.body, *headers, status=truth.status)
    sizes = [random.randrange(1, 60) for _ in range(random.randrange(5))]
    data = chunked(truth.body, sizes, extension=random.choice(["", ";a=b"]), trailer=random.choice(["", "X-T: 1\r\n"]))
    head = [f"HTTP/1.1 {truth.status} OK", *headers, ""]
    return "\r\n".join(head).encode() + data.partition(b"\r\n")[2]


def _in_pieces(random: Random, data: bytes) -> list[bytes]:
    """Return the bytes as a network delivers them: in one piece, in a few, or one by one."""
    way = random.randrange(10)
    if way < 5:  # noqa: PLR2004 - half of them
        return [data]
    if way == 9 and len(data) < 1000:  # noqa: PLR2004 - one by one is slow
        return [data[at : at + 1] for at in range(len(data))]
    return [piece for piece in pieces_of(data, random) if piece]


def _whole(random: Random, truth: Truth) -> Case:
    data = _sent(random, truth)
    return Case("whole", truth, _in_pieces(random, data), "slow", "exact", len(data))


def _without_checksum(random: Random, truth: Truth) -> Case:
    head, end, body = counted(truth.body, status=truth.status).partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.startswith(b"x-amz-crc32")]
    data = b"\r\n".join(lines) + end + body
    return Case("without a checksum", truth, _in_pieces(random, data), "slow", "exact", len(data))


def _interim(random: Random, truth: Truth) -> Case:
    data = b"HTTP/1.1 100 Continue\r\n\r\n" * random.randrange(1, 4) + _sent(random, truth)
    return Case("after interim answers", truth, _in_pieces(random, data), "slow", "exact", len(data))


def _pipelined(random: Random, truth: Truth) -> Case:
    data = _sent(random, truth)
    stray = random.choice([data, _sent(random, random.choice(TRUTHS)), random.randbytes(random.randrange(1, 40))])
    return Case("pipelined", truth, _in_pieces(random, data + stray), random.choice(ENDINGS), "exact", len(data))


def _cut(random: Random, truth: Truth) -> Case:
    data = _sent(random, truth)
    pieces = _in_pieces(random, data[: random.randrange(len(data))])
    return Case("cut", truth, [piece for piece in pieces if piece], random.choice(ENDINGS), "doubt")


def _other_body(random: Random, truth: Truth) -> Case:
    """The body of another answer, of the same length, under the checksum of this one."""
    if not truth.body:
        return _cut(random, truth)
    at = random.randrange(len(truth.body))
    other = truth.body[:at] + bytes([truth.body[at] ^ random.randrange(1, 256)]) + truth.body[at + 1 :]
    head = counted(truth.body, status=truth.status).partition(b"\r\n\r\n")[0]
    data = head + b"\r\n\r\n" + other
    return Case("another body", truth, _in_pieces(random, data), "slow", "doubt")


def _odd_head(random: Random, truth: Truth) -> Case:
    data = _sent(random, truth, *random.sample(_ODD_HEADERS, random.randrange(1, 3)))
    return Case("odd headers", truth, _in_pieces(random, data), random.choice(ENDINGS), "any")


def _damaged(random: Random, truth: Truth) -> Case:
    data = _sent(random, truth)
    for _ in range(random.randrange(1, 4)):
        data = damaged(data, random) or b"\r\n"
    return Case("damaged", truth, _in_pieces(random, data), random.choice(ENDINGS), "any")


def _garbage(random: Random, truth: Truth) -> Case:
    head = random.choice([b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"])
    alphabet = random.choice([bytes(range(256)), b"\r\n 0123456789abcdef:;", b"HTP/1. 20\r\n"])
    data = head + bytes(random.choices(alphabet, k=random.randrange(1, 80)))
    return Case("garbage", truth, _in_pieces(random, data), random.choice(ENDINGS), "any")


def _unsent(random: Random, truth: Truth) -> Case:
    return Case("not sent", truth, (), random.choice(ENDINGS), "unsent")


_KINDS: Final[Sequence[Callable[[Random, Truth], Case]]] = (
    _whole, _without_checksum, _interim, _pipelined, _cut, _cut, _other_body, _odd_head, _odd_head, _damaged, _damaged,
    _damaged, _garbage, _unsent,
)  # fmt: skip
