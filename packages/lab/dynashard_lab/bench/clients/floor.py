"""The floor: the bytes of a request, made beforehand, over a plain socket; of the answer only its length is read."""

import json
import selectors
import socket
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final
from urllib.parse import urlsplit

from dynashard_lab.bench import stored

_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"Content-Length: "


def request_of(operation: str, body: Mapping[str, Any]) -> bytes:
    """Return a request as DynamoDB's clients send it, with a signature that nobody checks."""
    content = json.dumps(body, separators=(",", ":")).encode()
    lines = [
        "POST / HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/x-amz-json-1.0",
        f"X-Amz-Target: DynamoDB_20120810.{operation}",
        "X-Amz-Date: 20261122T120000Z",
        f"Authorization: AWS4-HMAC-SHA256 Credential=local/20261122/eu-west-1/dynamodb, Signature={'0' * 64}",
        f"Content-Length: {len(content)}",
    ]
    return "\r\n".join(lines).encode() + _END + content


class Connection:
    """A socket, and how much of an answer has arrived."""

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        self.socket = socket.create_connection((place.hostname, place.port or 80))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = b""
        self._missing = -1

    def send(self, request: bytes) -> None:
        """Write a request."""
        self._received, self._missing = b"", -1
        self.socket.sendall(request)

    def receive(self) -> bool:
        """Read what has arrived, and return whether the answer is complete."""
        piece = self.socket.recv(1 << 18)
        if self._missing >= 0:
            self._missing -= len(piece)
            return self._missing <= 0
        self._received += piece
        head, separator, rest = self._received.partition(_END)
        if not separator:
            return False
        after = head.index(_LENGTH) + len(_LENGTH)
        self._missing = int(head[after : head.index(b"\r\n", after)]) - len(rest)
        return self._missing <= 0


class Floor:
    """A client that cannot be beaten. It answers what was asked for, without a look at what came."""

    loop = None

    def __init__(self, url: str, shards: int) -> None:
        self._url, self._shards = url, shards
        self._connection = Connection(url)
        self._get, self._put = request_of("GetItem", stored.GET), request_of("PutItem", stored.PUT)
        self._update = request_of("UpdateItem", stored.UPDATE)
        self._attached, self._index = (
            request_of("GetItem", stored.ATTACHED_GET),
            request_of("Query", stored.INDEX_QUERY),
        )
        self._page, self._fields = request_of("Query", stored.PAGE_QUERY), request_of("Query", stored.FIELDS_QUERY)

    @cached_property
    def _writes(self) -> bytes:
        return request_of("BatchWriteItem", stored.batch_write())

    @cached_property
    def _keys(self) -> bytes:
        return request_of("BatchGetItem", stored.batch_get())

    @cached_property
    def _fan(self) -> list[tuple[Connection, bytes]]:
        return [(Connection(self._url), request_of("Query", stored.query_of(shard))) for shard in range(self._shards)]

    def get(self) -> int:
        return self._exchange(self._get, 1)

    def put(self) -> int:
        return self._exchange(self._put, 1)

    def attached(self) -> int:
        return self._exchange(self._attached, 1)

    def update(self) -> int:
        return self._exchange(self._update, 1)

    def batch_write(self) -> int:
        return self._exchange(self._writes, stored.BATCH)

    def batch_get(self) -> int:
        return self._exchange(self._keys, stored.PAGE)

    def page(self) -> int:
        return self._exchange(self._page, stored.PAGE)

    def index(self) -> int:
        return self._exchange(self._index, stored.PAGE)

    def three_fields(self) -> int:
        return self._exchange(self._fields, stored.PAGE)

    def fan_out(self) -> int:
        with selectors.DefaultSelector() as waiting:
            for connection, request in self._fan:
                connection.send(request)
                waiting.register(connection.socket, selectors.EVENT_READ, connection)
            left = len(self._fan)
            while left:
                for key, _ in waiting.select():
                    if key.data.receive():
                        waiting.unregister(key.fileobj)
                        left -= 1
        return self._shards * stored.PAGE

    def scan(self) -> int:
        raise NotImplementedError("The floor reads no cursor, so it cannot follow pages.")

    def close(self) -> None:
        self._connection.socket.close()
        for connection, _ in self.__dict__.get("_fan", ()):
            connection.socket.close()

    def _exchange(self, request: bytes, items: int) -> int:
        self._connection.send(request)
        while not self._connection.receive():
            pass
        return items
