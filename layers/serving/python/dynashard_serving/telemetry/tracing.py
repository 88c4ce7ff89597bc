"""Calls of DynamoDB in the traces of X-Ray: a subsegment for each call of a transport.

Lambda traces the function itself. What happens within it is sent here as one datagram a call to the daemon that Lambda
runs, without the X-Ray SDK and without botocore. Keys and items are not in it.
"""

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from dynashard.errors import DynashardError, EngineError, ThrottledError
from dynashard.runtime import SYSTEM, Runtime
from dynashard.transport.clock_offset import ClockOffset, clock_offset_of
from dynashard.transport.interface import Call, Resend, Transport, Wire

HEADER: Final = "_X_AMZN_TRACE_ID"
"""The variable that Lambda sets for each event: which trace it belongs to, and whether that is recorded."""
DAEMON: Final = "AWS_XRAY_DAEMON_ADDRESS"
REGION: Final = "AWS_REGION"
_PREFIX: Final = b'{"format": "json", "version": 1}\n'

Emit = Callable[[bytes], object]


@dataclass(frozen=True, slots=True)
class Tracer:
    """Reports calls to X-Ray.

    Attributes:
        environ: the variables of the function, which Lambda changes for each event.
        emit: sends a datagram. Its errors are ignored: a trace must not fail a request.
        runtime: clock and random bits of the identifiers.
    """

    environ: Mapping[str, str]
    emit: Emit
    runtime: Runtime = SYSTEM

    @contextmanager
    def call(self, operation: str, requests: Sequence[Mapping[str, Any]]) -> Iterator[None]:
        """Report what is done inside as one call of so many requests. Cost: no request; about 20 us."""
        parent = _parent(self.environ.get(HEADER, ""))
        if parent is None:
            yield
            return
        begun, failed = self.runtime.clock(), dict[str, bool]()
        try:
            yield
        except DynashardError as error:
            failed = _flags(error)
            raise
        finally:
            segment = parent | failed | self._described(operation, requests, begun)
            with suppress(OSError):
                self.emit(_PREFIX + orjson.dumps(segment))

    def _described(self, operation: str, requests: Sequence[Mapping[str, Any]], begun: float) -> dict[str, Any]:
        tables = sorted({name for each in requests for name in _tables(each)})
        aws: dict[str, Any] = {"operation": operation, "resource_names": tables}
        if len(tables) == 1:
            aws["table_name"] = tables[0]
        if region := self.environ.get(REGION):
            aws["region"] = region
        return {
            "id": f"{int(self.runtime.random() * 2**64):016x}",
            "type": "subsegment",
            "name": "DynamoDB",
            "namespace": "aws",
            "start_time": begun,
            "end_time": self.runtime.clock(),
            "aws": aws,
            "annotations": {"requests": len(requests)},
        }


@dataclass(frozen=True, slots=True)
class TracedTransport:
    """A transport whose calls are reported; requests that travel at once are one call. See `Transport`."""

    inner: Transport
    tracer: Tracer

    @property
    def clock_offset(self) -> ClockOffset:
        """How far the clock of this machine is off, as the inner transport has learned."""
        return clock_offset_of(self.inner)

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        """Send one request; see `Transport.call`."""
        with self.tracer.call(operation, [request]):
            return self.inner.call(operation, request, resend=resend)

    def call_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire]:
        """Send several requests at once; see `Transport.call_all`."""
        with self.tracer.call(_operations(calls), [each.request for each in calls]):
            return self.inner.call_all(calls, concurrency=concurrency)

    def try_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire | DynashardError]:
        """Send several requests at once; see `Transport.try_all`."""
        with self.tracer.call(_operations(calls), [each.request for each in calls]):
            return self.inner.try_all(calls, concurrency=concurrency)

    def close(self) -> None:
        """Close the transport; see `Transport.close`."""
        self.inner.close()


@dataclass(slots=True)
class Datagrams:
    """Sends datagrams to an address such as `127.0.0.1:2000`, without waiting."""

    address: str
    _socket: socket.socket | None = field(default=None, init=False)

    def __call__(self, datagram: bytes) -> None:
        """Send one. Raises `OSError` if it cannot be sent now."""
        host, _, port = self.address.rpartition(":")
        if self._socket is None:
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self._socket.setblocking(False)  # noqa: FBT003 - the signature of sockets
        self._socket.sendto(datagram, (host, int(port)))


def traced(transport: Transport, environ: Mapping[str, str]) -> Transport:
    """Return a transport whose calls are in the traces; the same one if nothing receives them. Cost: no request."""
    address = environ.get(DAEMON, "")
    if not address.rpartition(":")[2].isdecimal():
        return transport
    return TracedTransport(transport, Tracer(environ, Datagrams(address)))


def _parent(header: str) -> dict[str, Any] | None:
    """Return the trace and the segment to which a call belongs; None if it is not recorded."""
    parts = dict(part.split("=", 1) for part in header.split(";") if "=" in part)
    if parts.get("Sampled") != "1" or not parts.get("Root") or not parts.get("Parent"):
        return None
    return {"trace_id": parts["Root"], "parent_id": parts["Parent"]}


def _flags(error: DynashardError) -> dict[str, bool]:
    if isinstance(error, ThrottledError):
        return {"error": True, "throttle": True}
    return {"fault": True} if isinstance(error, EngineError) and error.retryable else {"error": True}


def _operations(calls: Sequence[Call]) -> str:
    return "+".join(sorted({each.operation for each in calls}))


def _tables(request: Mapping[str, Any]) -> Iterator[str]:
    """Yield the tables of a request: its own, those of its batch, or those of its transaction."""
    if name := request.get("TableName"):
        yield name
    yield from request.get("RequestItems", ())
    for step in request.get("TransactItems", ()):
        for each in step.values():
            yield each["TableName"]
