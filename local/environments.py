"""Execution environments: processes that run a function as Lambda does, one event at a time each.

Threads would not do. The event handler of Powertools keeps the event it works on in an attribute of a class, as
Lambda allows; two events in one process would see each other's caller.
"""

import asyncio
import importlib
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import orjson

from local import stopping
from local.errors import LocalStackError

MAX_PAYLOAD_BYTES = 6 * 1024 * 1024
"""Lambda's limit for the event and for the answer of a synchronous call."""


class FunctionError(Exception):
    """The function failed, or took too long; its log says how."""


class PayloadTooLargeError(Exception):
    """The event is larger than Lambda takes."""


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """A function as the template describes it. `handler` is `module:attribute`."""

    name: str
    handler: str
    environment: Mapping[str, str]
    timeout_seconds: int = 30
    memory_mb: int = 128


@dataclass(frozen=True, slots=True)
class LambdaContext:
    """The second argument of a handler."""

    function_name: str
    memory_limit_in_mb: int
    aws_request_id: str
    deadline: float
    function_version: str = "$LATEST"
    log_group_name: str = "local"
    log_stream_name: str = "local"
    identity: None = None
    client_context: None = None
    clock: Callable[[], float] = field(default=time.time, repr=False)

    @property
    def invoked_function_arn(self) -> str:
        """The function's ARN, in the account that the local stack pretends to be."""
        return f"arn:aws:lambda:us-east-1:000000000000:function:{self.function_name}"

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until the function's timeout."""
        return max(0, int((self.deadline - self.clock()) * 1000))


class Environments:
    """The execution environments of one function; new ones start on demand, up to a limit, as on Lambda.

    Args:
        spec: the function.
        limit: how many environments may run.
        log: where the function's standard output goes.
    """

    def __init__(self, spec: FunctionSpec, *, limit: int, log: Path) -> None:
        self._spec = spec
        self._limit = limit
        self._log = log
        self._context = multiprocessing.get_context("spawn")
        # Environments end when the other end of this pipe is closed: by us, or by the kernel when we are killed.
        self._watched, self._life = self._context.Pipe(duplex=False)
        self._pool = self._new_pool()

    def _new_pool(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            self._limit,
            mp_context=self._context,
            initializer=_enter,
            initargs=(dict(self._spec.environment), str(self._log), sys.path, self._watched),
        )

    def warm(self) -> None:
        """Start the first environment and import the handler.

        Raises:
            LocalStackError: the handler cannot be imported; the log has the traceback.
        """
        # Cut in the middle, the pool would neither know the process it has started nor wait for it.
        with stopping.deferred(), _no_interrupt():
            future = self._pool.submit(_load, self._spec.handler)
        try:
            problem = future.result()
        except BrokenProcessPool:
            problem = "its process ended"
        if problem:
            raise LocalStackError(f"{self._spec.handler} cannot be started ({problem}): see {self._log}.")

    async def invoke(self, event: Mapping[str, Any], request_id: str) -> Any:
        """What the handler returns for an event, through JSON as on Lambda.

        Raises:
            PayloadTooLargeError: the event is over 6 MB; the function was not called.
            FunctionError: the handler raised, ended its process, took too long, or answered more than 6 MB.
        """
        payload = orjson.dumps(event)
        if len(payload) > MAX_PAYLOAD_BYTES:
            raise PayloadTooLargeError
        pool, spec = self._pool, self._spec
        if self._life.closed:
            raise FunctionError("the local stack is ending")
        with _no_interrupt():
            call = pool.submit(_invoke, spec, payload, request_id)
        try:
            answer = await asyncio.wrap_future(call)
        except BrokenProcessPool:
            if self._pool is pool and not self._life.closed:
                self._pool = self._new_pool()
            raise FunctionError("the function's process ended") from None
        if answer is None:
            raise FunctionError("the function raised an error")
        if len(answer) > MAX_PAYLOAD_BYTES:
            raise FunctionError("the function's answer is over 6 MB")
        return orjson.loads(answer)

    def close(self) -> None:
        """End all environments, whatever they are doing; their callers get a FunctionError."""
        self.abandon()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def abandon(self) -> None:
        """The same without waiting; may be called from any thread."""
        self._life.close()


@contextmanager
def _no_interrupt() -> Iterator[None]:
    # A process inherits the mask: Ctrl-C is for the server, which ends its environments in order.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _enter(environment: dict[str, str], log: str, path: list[str], life: Connection) -> None:
    """Make a fresh process an execution environment: its variables, its log, no life without its parent."""
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:] = path
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
    threading.Thread(target=_end_with, args=[life], daemon=True).start()


def _end_with(life: Connection) -> None:
    life.poll(None)
    os._exit(0)


def _handler(name: str) -> Callable[[Any, LambdaContext], Any]:
    module, _, attribute = name.partition(":")
    handler: Callable[[Any, LambdaContext], Any] = getattr(importlib.import_module(module), attribute)
    return handler


def _load(handler: str) -> str:
    try:
        _handler(handler)
    except Exception as error:  # noqa: BLE001 - whatever a module raises while it is imported is told in one line
        traceback.print_exc()
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return ""


def _invoke(spec: FunctionSpec, payload: bytes, request_id: str) -> bytes | None:
    context = LambdaContext(spec.name, spec.memory_mb, request_id, time.time() + spec.timeout_seconds)
    signal.signal(signal.SIGALRM, _time_out)
    signal.alarm(spec.timeout_seconds)
    try:
        answer = _handler(spec.handler)(orjson.loads(payload), context)
        return orjson.dumps(answer)
    except (Exception, _TimedOut):  # noqa: BLE001 - as Lambda's runtime does: log it, tell the caller it failed
        traceback.print_exc()
        return None
    finally:
        signal.alarm(0)
        sys.stdout.flush()


class _TimedOut(BaseException):
    """Not an Exception, so that no handler takes it for one of its own."""


def _time_out(*_: object) -> None:
    raise _TimedOut("the function's timeout has passed")
