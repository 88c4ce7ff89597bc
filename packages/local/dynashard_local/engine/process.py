"""Starts, watches and stops the embedded DynamoDB engine."""

import http.client
import platform
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from threading import Event, Thread

from dynashard_local.data_folder import locked, release
from dynashard_local.engine.stream_index import index_stream
from dynashard_local.errors import LocalStackError
from dynashard_local.root import backend_root
from dynashard_local.settings import Settings

DATABASE = "dynamodb.sqlite"
LOG = "engine.log"
PORT_ATTEMPTS = 5
START_SECONDS = 60.0
STOP_SECONDS = 5.0
LOG_TAIL_LINES = 15

# The shell becomes the engine, so the engine is our own child. Before that it starts a watchdog that reads the pipe
# from us: a line means an orderly stop; the end of the pipe means that we were killed, by kill -9 too. Unlike Linux's
# parent-death signal this also works on macOS, and there is no moment without a watchdog.
_WATCHED = 'exec 3<&0; (read -r _ <&3 && exit; kill -9 $$) & exec 3<&-; exec "$@" </dev/null'


_Address = tuple[str, int]
"""A host and a port."""


class PortTakenError(LocalStackError):
    """Another process uses the engine's port."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A DynamoDB engine.

    Attributes:
        endpoint: where it answers the stack's own processes.
        process: None if it was running already.
        public: where it answers people and tools; empty if that is the endpoint.
    """

    endpoint: str
    log: Path | None = None
    process: subprocess.Popen[bytes] | None = None
    public: str = ""

    def on_exit(self, report: Callable[[str], None]) -> None:
        """Call `report` from a thread with one message when the engine's process ends by itself."""
        process = self.process
        if process is None:
            return

        def watch() -> None:
            status = process.wait()
            report(f"The DynamoDB engine ended (status {status}). The end of {self.log}:\n{self.log_tail()}")

        Thread(target=watch, name="engine-watch", daemon=True).start()

    def log_tail(self) -> str:
        """The last lines of the engine's log."""
        if self.log is None:
            return ""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(f"  {line}" for line in lines[-LOG_TAIL_LINES:])


def engine_program(settings: Settings, *, system: str = sys.platform, machine: str = "") -> Path:
    """Return the engine's program for a platform, by default this one; `settings.dynoxide_bin` overrides it.

    Raises:
        LocalStackError: there is none.
    """
    if settings.dynoxide_bin is not None:
        if not settings.dynoxide_bin.is_file():
            raise LocalStackError(f"DYNOXIDE_BIN={settings.dynoxide_bin} is not a file: correct or unset it.")
        return settings.dynoxide_bin
    names = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
    machine = (machine or platform.machine()).lower()
    target = f"{system}-{names.get(machine, machine)}"
    program = backend_root() / "node_modules" / "@dynoxide" / target / "dynoxide"
    if not program.is_file():
        raise LocalStackError(
            f"There is no DynamoDB engine for {target} in node_modules: run `make setup`; if that installs "
            "none, set DYNOXIDE_BIN to a dynoxide program, or DYNAMODB_ENDPOINT to an engine that runs."
        )
    return program


def free_port(host: str = "127.0.0.1") -> int:
    """Return a port of an address of this machine that is free at this moment."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


@contextmanager
def running_engine(settings: Settings, host: str = "127.0.0.1") -> Iterator[Engine]:
    """Run a DynamoDB engine on `DATA_DIR` during the block, unless `DYNAMODB_ENDPOINT` names a running one.

    It listens on an address of this machine, on any free port if `DYNAMODB_PORT` is 0.

    The engine is in a session of its own, so that Ctrl-C does not reach it before the last request. It ends with this
    process in every case.

    Raises:
        LocalStackError: no program, the port is taken, the data is in use or damaged, or no answer comes.
    """
    if settings.dynamodb_endpoint is not None:
        yield Engine(settings.dynamodb_endpoint.rstrip("/"))
        return
    program = engine_program(settings)
    with locked(settings.data_dir / "lock") as lock, ExitStack() as stack:
        # The watchdog may live a moment longer than the engine.
        stack.callback(release, lock)
        if settings.dynamodb_port:
            at = (host, settings.dynamodb_port)
            yield stack.enter_context(_serving(program, settings.data_dir, at, lock))
        else:
            start = partial(_serving, program, settings.data_dir, lock=lock)
            yield _on_a_free_port(host, lambda at: stack.enter_context(start(at)))


def _on_a_free_port(host: str, start: Callable[[_Address], Engine]) -> Engine:
    # With port 0 the engine does not report its port. Another process may take a free port before the engine does.
    for _ in range(PORT_ATTEMPTS - 1):
        with suppress(PortTakenError):
            return start((host, free_port(host)))
    return start((host, free_port(host)))


@contextmanager
def _serving(program: Path, data_dir: Path, at: _Address, lock: int) -> Iterator[Engine]:
    refuse_taken(*at)
    (host, port), log, database = at, data_dir / LOG, data_dir / DATABASE
    shell = ["/bin/sh", "-c", _WATCHED, "engine"]
    serve = [str(program), "serve", "--host", host, "--port", str(port), "--db-path", str(database)]
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - the program is the checkout's, or the user's own choice
            [*shell, *serve],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(lock,),
        )
    try:
        engine = Engine(f"http://{host}:{port}", log, process)
        _await_ready(engine, at, database)
        index_stream(database)
        yield engine
    finally:
        _stop(process)


def refuse_taken(host: str, port: int) -> None:
    """Raise `PortTakenError` if another process listens there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise PortTakenError(_taken(port, str(error.strerror))) from None


def _taken(port: int, reason: str) -> str:
    return f"Port {port} cannot be used for the DynamoDB engine ({reason}): free it, or set DYNAMODB_PORT."


def _await_ready(engine: Engine, at: _Address, database: Path) -> None:
    process, (_, port) = engine.process, at
    if process is None:
        return
    deadline = time.monotonic() + START_SECONDS
    pause = Event()
    while process.poll() is None:
        # The log line comes first, because an answer alone could come from another engine on the same port.
        if "listening on" in engine.log_tail() and _healthy(at):
            return
        if time.monotonic() > deadline:
            raise LocalStackError(f"The DynamoDB engine does not answer on port {port}: see {engine.log}.")
        pause.wait(0.005)
    said = engine.log_tail()
    if "already in use" in said:
        raise PortTakenError(_taken(port, "already in use"))
    if any(sign in said for sign in ("not a valid SQLite", "malformed", "unable to open database")):
        raise LocalStackError(
            f"{database} is damaged or not a database of the engine: restore it from a copy, or move it away to "
            "begin with empty tables."
        )
    raise LocalStackError(f"The DynamoDB engine did not start (status {process.returncode}): {said.strip()}")


def _healthy(at: _Address) -> bool:
    # urllib and botocore would use the environment's proxy.
    connection = http.client.HTTPConnection(*at, timeout=2)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status == HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        try:
            process.stdin.write(b"stop\n")
            process.stdin.close()
        except BrokenPipeError:
            pass  # The watchdog is gone.
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
