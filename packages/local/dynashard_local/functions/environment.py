"""An execution environment: a process that runs one function as Lambda does, one event at a time.

Threads would not do. The event handler of Powertools keeps the current event in an attribute of a class, as Lambda
allows. Two events in one process would see each other's caller.
"""

import importlib
import json
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from dynashard_local.functions.frames import Frames
from dynashard_local.root import backend_root

if TYPE_CHECKING:
    from ctypes import c_byte

STOP_SECONDS: Final = 5.0
"""How long a process may take to end before it is killed."""
_SPAWN: Final = multiprocessing.get_context("spawn")


class NotBegunError(Exception):
    """The process ended before it began the work: nothing of it was done, and another process can do it."""


class ProcessEndedError(Exception):
    """The process ended after it began the work."""


class PayloadTooLargeError(Exception):
    """The event is larger than Lambda accepts."""


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


class Lifeline:
    """Keeps environments alive: they end when it ends, or when this process is killed."""

    def __init__(self) -> None:
        self.watched, self._held = _SPAWN.Pipe(duplex=False)

    @property
    def ended(self) -> bool:
        """Whether `end` was called."""
        return self._held.closed

    def end(self) -> None:
        """End every environment at once. Safe to call twice, and from any thread."""
        self._held.close()


class Environment:
    """One process that runs a function, and logs its standard output. It does one piece of work at a time.

    A caller may wait for the result of `invoke`, or `send` an event and `receive` its answer when `fileno` is readable.
    """

    def __init__(self, spec: FunctionSpec, log: Path, life: Lifeline) -> None:
        self._pipe, theirs = socket.socketpair()
        # In shared memory, because a byte among the answers would wake the caller for each event once more.
        self._begun = _SPAWN.RawValue("b", 0)
        self._frames = Frames(self._pipe.fileno())
        self._process = _SPAWN.Process(
            target=_serve,
            args=(spec, str(log), sys.path, life.watched, (theirs, self._begun)),
            daemon=True,
        )
        with _no_interrupt():
            self._process.start()
        # Our copy of its end is closed, so that the pipe ends with the process.
        theirs.close()

    def problem(self) -> str:
        """Import the handler. Return its error in one line, or an empty text. The log has the traceback."""
        try:
            return self.invoke(b"").decode()
        except (NotBegunError, ProcessEndedError):
            return "its process ended"

    def invoke(self, work: bytes) -> bytes:
        """Send an event and wait for its answer. Raises as `send` and `receive`."""
        self.send(work)
        try:
            return self._frames.next()
        except (EOFError, OSError) as error:
            raise self._ended from error

    def fileno(self) -> int:
        """Return the descriptor that is readable when an answer, or a part of one, has arrived."""
        return self._pipe.fileno()

    def send(self, work: bytes) -> None:
        """Send an event, made by `work_of`. Does not wait if it has at most `MAX_UNREAD` bytes.

        Raises:
            NotBegunError: the process had ended, and the handler was not called.
        """
        self._begun.value = False
        try:
            self._frames.write(work)
        except OSError as error:
            raise NotBegunError from error

    def receive(self) -> bytes | None:
        """Read what has arrived of an answer; return the answer when it is whole, as JSON, else None.

        The answer is empty if the handler raised an error, which is in the log.

        Raises:
            NotBegunError: the process has ended, and the handler was not called.
            ProcessEndedError: the process ended while the handler ran.
        """
        try:
            return self._frames.read()
        except (EOFError, OSError) as error:
            raise self._ended from error

    def end(self) -> None:
        """Wait for the end of the process, which serves no event any more, or whose `Lifeline` has ended."""
        # A process that waits for an event ends when its pipe does, which an event loop may still watch.
        with suppress(OSError):
            self._pipe.shutdown(socket.SHUT_RDWR)
        self._pipe.close()
        self._process.join(STOP_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._process.close()

    @property
    def _ended(self) -> NotBegunError | ProcessEndedError:
        return ProcessEndedError() if self._begun.value else NotBegunError()


def work_of(payload: bytes, request_id: str) -> bytes:
    """Return what an environment is sent for an event."""
    return b"%s\n%s" % (request_id.encode(), payload)


def event_text(event: Mapping[str, Any]) -> bytes:
    """Return an event as JSON. Raises `PayloadTooLargeError` if it is nested too deeply for the JSON library."""
    try:
        return orjson.dumps(event)
    except TypeError:
        # orjson writes 254 levels. Lambda accepts deeper events, which the functions refuse.
        try:
            return json.dumps(event).encode()
        except RecursionError as error:
            raise PayloadTooLargeError from error


@contextmanager
def _no_interrupt() -> Iterator[None]:
    # A process inherits the mask. The server handles Ctrl-C, and ends its environments in order.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(
    spec: FunctionSpec, log: str, path: list[str], life: Connection, shared: tuple[socket.socket, "c_byte"]
) -> None:
    """Serve one event after the other until the other end of the pipe closes. This runs in the new process."""
    work, begun = shared
    _enter(dict(spec.environment), log, path, life)
    signal.signal(signal.SIGALRM, _time_out)
    frames = Frames(work.fileno())
    with suppress(EOFError, OSError):
        while True:
            request_id, _, payload = frames.next().partition(b"\n")
            # From here on the event may have been handled, so that no other process may get it.
            begun.value = True
            frames.write(_invoke(spec, payload, request_id.decode()) if payload else _load(spec.handler).encode())


def _enter(environment: dict[str, str], log: str, path: list[str], life: Connection) -> None:
    """Give a new process its variables and its log, and let it end with its parent."""
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


@cache
def _handler(name: str) -> Callable[[Any, LambdaContext], Any]:
    module, _, attribute = name.partition(":")
    handler: Callable[[Any, LambdaContext], Any] = getattr(importlib.import_module(module), attribute)
    return handler


def _load(handler: str) -> str:
    try:
        _handler(handler)
    except Exception as error:  # noqa: BLE001 - any error of an import is reported in one line
        traceback.print_exc()
        return f"{type(error).__name__}: {error}".splitlines()[0] + _where(error)
    return ""


def _where(error: Exception) -> str:
    """Return the file and line of our own code where an error was raised; empty if none is known."""
    from dynashard import errors  # noqa: PLC0415 - after an error alone

    if isinstance(error, SyntaxError):
        # Its text names the file without its folder.
        at = [(error.filename or "", error.lineno)]
    else:
        at = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    # What is left out is Python's own, or installed; of a wrong declaration also the library that refuses it, which a
    # checkout of Dynashard has among its own code.
    library = [str(Path(errors.__file__).parents[1])] if isinstance(error, errors.DeclarationError) else []
    outside = ["<", sys.prefix, sys.base_prefix, *library]
    ours = [(name, line) for name, line in at if name and not name.startswith(tuple(outside))]
    if not ours:
        return ""
    path, line = Path(ours[-1][0]), ours[-1][1]
    return f" ({path.relative_to(root) if path.is_relative_to(root := backend_root()) else path}, line {line})"


def _invoke(spec: FunctionSpec, payload: bytes, request_id: str) -> bytes:
    context = LambdaContext(spec.name, spec.memory_mb, request_id, time.time() + spec.timeout_seconds)
    signal.alarm(spec.timeout_seconds)
    try:
        answer = _handler(spec.handler)(orjson.loads(payload), context)
        return orjson.dumps(answer)
    except (Exception, _TimedOut):  # noqa: BLE001 - as Lambda's runtime: log any error, and report a failure
        traceback.print_exc()
        return b""
    finally:
        signal.alarm(0)
        sys.stdout.flush()


class _TimedOut(BaseException):
    """Not an Exception, so that handlers do not catch it."""


def _time_out(*_: object) -> None:
    raise _TimedOut("the function's timeout has passed")
