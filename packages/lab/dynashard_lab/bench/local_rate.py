"""Compare local stacks: GETs answered in a second of CPU time by all processes of a stack, which is pinned to one core.

    python -m dynashard_lab.bench.local_rate [CHECKOUT ...]      # by default only this checkout

The stacks run side by side and are measured in turn, so a slow minute of the machine affects all of them.
"""

import argparse
import http.client
import json
import os
import re
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dynashard_local.root import backend_root

CONNECTIONS: Final = 8
START_LINE: Final = re.compile(r"ready on http://127\.0\.0\.1:(\d+)")
WARM_UPS: Final = 5
TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Stack:
    """A local stack that runs: its process, its port, and the bytes of the request that it is measured by."""

    name: str
    process: int
    port: int
    request: bytes

    def cpu_seconds(self) -> float:
        """Return the CPU time of all of its processes so far."""
        return sum(_cpu_seconds(each) for each in [self.process, *_descendants(self.process)])


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement: GETs in a second of CPU time, and in a second of the clock."""

    per_cpu_second: float
    per_second: float


def main() -> None:
    """Measure, and print one line for each stack with its ratio to the first."""
    parser = argparse.ArgumentParser(prog="python -m dynashard_lab.bench.local_rate", description=__doc__)
    parser.add_argument("checkouts", nargs="*", type=Path, default=[backend_root()], metavar="CHECKOUT")
    parser.add_argument("--rounds", type=int, default=7, help="samples of each stack (default 7)")
    parser.add_argument("--requests", type=int, default=1000, help="GETs of each sample (default 1000)")
    parser.add_argument("--core", type=int, default=0, help="where the stacks run (default 0)")
    asked = parser.parse_args()
    with ExitStack() as opened:
        stacks = [opened.enter_context(_stack(checkout, asked.core)) for checkout in asked.checkouts]
        samples = _measured(stacks, asked.rounds, asked.requests)
    for number, stack in enumerate(stacks):
        pairs = zip(samples[number], samples[0], strict=True)
        ratio = statistics.median(one.per_cpu_second / first.per_cpu_second for one, first in pairs)
        per_cpu = statistics.median(sample.per_cpu_second for sample in samples[number])
        per_second = statistics.median(sample.per_second for sample in samples[number])
        print(f"{stack.name}: {per_cpu:.0f} GET/s of CPU time, {per_second:.0f} GET/s, {ratio:.2f} x the first")


def _measured(stacks: list[Stack], rounds: int, requests: int) -> list[list[Sample]]:
    samples: list[list[Sample]] = [[] for _ in stacks]
    for stack in stacks:
        _warm(stack, requests)
    for _ in range(rounds):
        for number, stack in enumerate(stacks):
            cpu, wall = stack.cpu_seconds(), time.perf_counter()
            answer_many(stack, requests)
            wall, cpu = time.perf_counter() - wall, stack.cpu_seconds() - cpu
            samples[number].append(Sample(requests / cpu, requests / wall))
    return samples


def _warm(stack: Stack, requests: int) -> None:
    """Let the stack start all of its environments. It may shed load meanwhile."""
    for _ in range(WARM_UPS):
        with suppress(AssertionError):
            answer_many(stack, requests)
            return
    sys.exit(f"{stack.name} does not answer")


def answer_many(stack: Stack, requests: int) -> None:
    """Let a stack answer a number of GETs on a few connections. Raises `AssertionError` if one is not a 200."""
    waiting, sent = selectors.DefaultSelector(), 0
    with ExitStack() as opened:
        for _ in range(CONNECTIONS):
            made = opened.enter_context(socket.create_connection(("127.0.0.1", stack.port)))
            waiting.register(made, selectors.EVENT_READ)
            made.sendall(stack.request)
            sent += 1
        answered = 0
        while answered < requests:
            for key, _ in waiting.select():
                connection = key.fileobj
                assert isinstance(connection, socket.socket)  # noqa: S101 - only sockets are registered
                _read_answer(connection)
                answered += 1
                if sent < requests:
                    connection.sendall(stack.request)
                    sent += 1


def _read_answer(connection: socket.socket) -> None:
    answer = b""
    while not answer.partition(b"\r\n\r\n")[2]:
        received = connection.recv(65536)
        answer += received
        if not received or not answer.startswith(b"HTTP/1.1 200 "):
            raise AssertionError(answer)


@contextmanager
def _stack(checkout: Path, core: int) -> Iterator[Stack]:
    # Checkouts of 0.1.0 and before are compared too.
    module = "dynashard_local" if (checkout / "packages").is_dir() else "local"
    with tempfile.TemporaryDirectory(prefix="dynashard-rate-") as data:
        environ = {"PATH": os.environ["PATH"], "DATA_DIR": data, "PORT": "0", "DYNAMODB_PORT": "0"}
        environ |= {name: value for name in ("TRANSPORT", "LOCAL_WORKERS") if (value := os.environ.get(name))}
        with (
            (Path(data) / "output").open("wb") as output,
            subprocess.Popen(  # noqa: S603 - a checkout's own module
                ["taskset", "-c", str(core), str(checkout / ".venv/bin/python"), "-m", module],  # noqa: S607 - util-linux
                cwd=checkout,
                env=environ | {"LOCAL_RELOAD": "off"},
                stdout=output,
            ) as process,
        ):
            try:
                yield _ready(checkout, process, Path(output.name))
            finally:
                process.terminate()


def _ready(checkout: Path, process: subprocess.Popen[bytes], output: Path) -> Stack:
    while process.poll() is None:
        if found := START_LINE.search(output.read_text()):
            port = int(found[1])
            return Stack(str(checkout), process.pid, port, _request(port))
        time.sleep(0.1)
    sys.exit(f"{checkout} does not start")


def _request(port: int) -> bytes:
    """Create a user, and return the bytes of a GET of it."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/local/tokens", json.dumps({"tenant_id": "abc"}))
    token = json.loads(connection.getresponse().read())["token"]
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    user = json.dumps({"email": "ada@example.com", "display_name": "Ada Lovelace"})
    connection.request("POST", "/v1/users", user, headers)
    path = f"/v1/users/{json.loads(connection.getresponse().read())['id']}"
    connection.close()
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n".encode()


def _descendants(process: int) -> list[int]:
    children = [int(each) for each in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    for task in Path(f"/proc/{process}/task").iterdir():
        if task.name != str(process):
            children += [int(each) for each in (task / "children").read_text().split()]
    return [each for child in children for each in (child, *_descendants(child))]


def _cpu_seconds(process: int) -> float:
    """Return the CPU time of a process, by its threads, to the nanosecond where the kernel counts so."""
    tasks = list(Path(f"/proc/{process}/task").iterdir())
    try:
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
    except FileNotFoundError:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


if __name__ == "__main__":
    main()
