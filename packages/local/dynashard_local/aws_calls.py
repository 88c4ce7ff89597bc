"""Serves calls of an AWS service over HTTP on 127.0.0.1, in botocore's JSON protocol.

So the clients of functions and tools need only the endpoint's URL.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Protocol


class RefusedError(Exception):
    """The service refuses the call; `code` is its name for the reason."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Calls(Protocol):
    """What answers the calls of a service."""

    namespace: str
    """What the service writes before the codes of its errors."""

    def answer(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a call; raises `RefusedError`."""
        ...


@contextmanager
def serving(calls: Calls) -> Iterator[str]:
    """Serve a service on a free port of 127.0.0.1 during the block; yields the URL."""
    handler = type("Handler", (_Handler,), {"calls": calls})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    Thread(target=server.serve_forever, name=calls.namespace, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    calls: Calls
    protocol_version = "HTTP/1.1"
    # Otherwise every answer on a kept connection waits for an acknowledgement.
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_POST(self) -> None:
        operation = self.headers.get("X-Amz-Target", "").rpartition(".")[2]
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            self._write(HTTPStatus.OK, self.calls.answer(operation, json.loads(body)))
        except RefusedError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, error.code, str(error))
        except (KeyError, TypeError, ValueError) as error:
            self._refuse(HTTPStatus.BAD_REQUEST, "InvalidParameterValue", repr(error))
        except sqlite3.Error as error:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable", repr(error))

    def log_message(self, *_: Any) -> None:
        """Log nothing, because the functions log what they send."""

    def _refuse(self, status: HTTPStatus, code: str, message: str) -> None:
        self._write(status, {"__type": f"{self.calls.namespace}#{code}", "message": message})

    def _write(self, status: HTTPStatus, document: Mapping[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/x-amz-json-1.0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
