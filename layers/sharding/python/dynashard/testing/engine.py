"""Find and run a local DynamoDB engine for tests: dynoxide, a single program, with its data in memory."""

import os
import platform
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from dynashard.errors import ConfigurationError

ENDPOINT: Final = "DYNAMODB_ENDPOINT"
PROGRAM: Final = "DYNOXIDE_BIN"
_MACHINES: Final = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
_ATTEMPTS: Final = 5
_WATCHED: Final = 'exec 3<&0; (read -r _ <&3; kill -9 $$) >/dev/null 2>&1 & exec 3<&-; exec "$@" </dev/null'
"""The engine ends when the process at the other end of its standard input ends, however that happens."""


@contextmanager
def engine_endpoint(environ: Mapping[str, str], folder: Path) -> Iterator[str]:
    """Yield the URL of an engine: the running one that `DYNAMODB_ENDPOINT` names, or one that is started for the block.

    Args:
        environ: the variables of the process; `DYNOXIDE_BIN` may name the program.
        folder: where to look for the npm package `@dynoxide/<platform>`, also in the folders above it.

    Raises `ConfigurationError` if there is no engine; the message says how to get one.
    """
    if endpoint := environ.get(ENDPOINT):
        yield endpoint.rstrip("/")
        return
    with engine_in_memory(engine_program(environ, folder)) as port:
        yield f"http://127.0.0.1:{port}"


def engine_program(environ: Mapping[str, str], folder: Path) -> Path:
    """Return the engine's program; arguments and errors as of `engine_endpoint`."""
    if named := environ.get(PROGRAM):
        program = Path(named)
        if not program.is_file():
            raise ConfigurationError(f"{PROGRAM} is {named}, which is not a file: correct or unset it")
        return program
    machine = platform.machine().lower()
    package = Path("node_modules") / "@dynoxide" / f"{sys.platform}-{_MACHINES.get(machine, machine)}"
    for place in (folder, *folder.parents):
        if (program := place / package / "dynoxide").is_file():
            return program
    raise ConfigurationError(
        f"there is no local DynamoDB engine: no {package} in {folder} or above it. Run "
        f"`npm install @dynoxide/{package.name}`, or set {PROGRAM} to a dynoxide program, or {ENDPOINT} to the URL of "
        "an engine that runs"
    )


@contextmanager
def engine_in_memory(program: Path) -> Iterator[int]:
    """Run an engine with its data in memory during the block, and yield its port on 127.0.0.1."""
    with ExitStack() as stack:
        # Another process may take a port before the engine does. Then another port is tried.
        for _ in range(_ATTEMPTS):
            port = free_port()
            if stack.enter_context(_running(program, port)):
                yield port
                return
        raise ConfigurationError(f"{program} does not listen on any of {_ATTEMPTS} free ports: run it to see why")


def free_port(host: str = "127.0.0.1") -> int:
    """Return a port of an address of this machine that is free at this moment."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


@contextmanager
def _running(program: Path, port: int) -> Iterator[bool]:
    """Start an engine, and yield whether it got the port."""
    command = ["/bin/sh", "-c", _WATCHED, "engine", str(program), "serve", "--host", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen(  # noqa: S603 - the engine that the caller has named
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        # One request at a time needs no second thread.
        env={**os.environ, "TOKIO_WORKER_THREADS": "1"},
    ) as process:
        if process.stdin is None or process.stdout is None:
            raise AssertionError("both are pipes")
        try:
            yield any(b"listening on" in line for line in process.stdout)
        finally:
            process.stdin.close()
