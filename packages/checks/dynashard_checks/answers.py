"""Answers of HTTP/1.1 as bytes, well-formed or damaged on purpose."""

from collections.abc import Sequence
from random import Random
from zlib import crc32

BODY = b'{"Item":{"PK":{"S":"a"},"SK":{"S":"b"},"photo":{"B":"AAEC"}},"ConsumedCapacity":{"CapacityUnits":0.5}}'


def counted(body: bytes = BODY, *more: str, status: int = 200, version: str = "HTTP/1.1") -> bytes:
    """Return an answer whose length is given, with further header lines."""
    lines = [f"{version} {status} OK", f"x-amz-crc32: {crc32(body)}", f"Content-Length: {len(body)}", *more]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chunked(body: bytes = BODY, sizes: Sequence[int] = (10, 3), *, extension: str = "", trailer: str = "") -> bytes:
    """Return an answer in chunks of these sizes, and one with the rest."""
    head = f"HTTP/1.1 200 OK\r\nx-amz-crc32: {crc32(body)}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    pieces, rest = [], body
    for size in [*sizes, len(body)]:
        piece, rest = rest[:size], rest[size:]
        if piece:
            pieces.append(f"{len(piece):x}{extension}\r\n".encode() + piece + b"\r\n")
    return head + b"".join(pieces) + f"0\r\n{trailer}\r\n".encode()


def damaged(answer: bytes, random: Random) -> bytes:
    """Return an answer with one change: cut, lengthened, or with other bytes at one place."""
    at = random.randrange(len(answer))
    length = random.randrange(1, 9)
    before, after = answer[:at], answer[at:]
    changes = (
        b"",
        after[length:],
        random.randbytes(length) + after,
        random.randbytes(length) + after[length:],
        after[:length] + after,
    )
    return before + random.choice(changes)


def pieces_of(answer: bytes, random: Random) -> list[bytes]:
    """Return the bytes in pieces of random lengths, as a network delivers them."""
    places = sorted(random.randrange(len(answer) + 1) for _ in range(random.randrange(6)))
    return [answer[begin:end] for begin, end in zip([0, *places], [*places, len(answer)], strict=True)]
