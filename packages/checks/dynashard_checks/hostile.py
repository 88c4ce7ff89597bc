"""Measure the most expensive known requests, and how much they slow down other callers.

    python -m dynashard_checks.hostile --help

Each request is answered by its function's real handler in a process of its own, on the engine of a local stack. Its
CPU, the peak memory of the process, its Queries and the size of the answer are compared with the bounds of
docs/limits.md. Then all of them are sent over HTTP to that stack, one after the other, while a neighbour reads an item.
"""

import argparse
import base64
import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, Final

import httpx

from dynashard.transport.interface import metered
from dynashard_checks.hostile_requests import API, COMMANDS, REQUESTS, TENANT, WARM, Hostile
from dynashard_checks.threads import at_work
from dynashard_local.stack import Stack, running_stack

MAX_CPU_SECONDS: Final = 1.0
MAX_MEGABYTES: Final = 300.0
MAX_QUERIES: Final = 300
MAX_ANSWER_BYTES: Final = 50_000
MAX_SLOWER: Final = 3.0
_MEGABYTE: Final = 1_000_000
_QUIET_SECONDS: Final = 5.0
_LAMBDA: Final = "/2015-03-31/functions/commands/invocations"
_SIGNED: Final = {"authorization": "AWS4-HMAC-SHA256 Credential=local"}


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one request, and its answer."""

    cpu_seconds: float
    peak_megabytes: float
    queries: int
    answer_bytes: int
    refused: bool
    code: str

    def held(self, wanted: Hostile) -> bool:
        """Return whether the request stayed within its bounds."""
        size = not wanted.refused or self.answer_bytes < MAX_ANSWER_BYTES
        work = self.cpu_seconds <= MAX_CPU_SECONDS and self.peak_megabytes <= MAX_MEGABYTES
        return size and work and self.queries <= MAX_QUERIES and self.refused == wanted.refused


def answered(answer: Mapping[str, Any]) -> tuple[bool, str]:
    """Return whether an answer refuses the request as the caller's fault, and the code of the answer."""
    if "statusCode" in answer:
        refused = 400 <= answer["statusCode"] < 500  # noqa: PLR2004 - the caller's faults
        return refused, json.loads(answer["body"]).get("code", "") if refused else str(answer["statusCode"])
    error = answer.get("error") or {}
    return not answer["ok"] and "retry_after" not in error, str(error.get("code", "ok"))


def measure(module: str, warm: Mapping[str, Any], event: Mapping[str, Any]) -> Cost:
    """Answer an event in this process, after `warm`, and return its cost."""
    handler: Callable[[Any, Any], dict[str, Any]] = importlib.import_module(module).handler
    handler(dict(warm), None)
    begun = _cpu()
    with metered() as meter:
        answer = handler(event, None)
    spent = _cpu() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / _MEGABYTE
    refused, code = answered(answer)
    size = len(answer["body"].encode()) if "body" in answer else len(json.dumps(answer))
    return Cost(spent, peak, meter.queries, size, refused, code)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measured_apart(hostile: Hostile, variables: Mapping[str, str], folder: Path) -> Cost:
    """Let a new process answer a request on the tables that `variables` name, and return its cost."""
    path = folder / "event.json"
    path.write_text(json.dumps(hostile.build()))
    command = [sys.executable, "-m", "dynashard_checks.hostile", "--function", hostile.function, "--event", str(path)]
    done = subprocess.run(command, env={**variables}, capture_output=True, text=True, check=True)  # noqa: S603 - ours
    return Cost(**json.loads(done.stdout.splitlines()[-1]))


class Neighbour:
    """A caller of another tenant that reads one item again and again.

    Args:
        client: sends its requests.
    """

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        user = client.post("/v1/users", json={"email": "ada@example.com", "display_name": "Ada"})
        user.raise_for_status()
        self._path = user.headers["location"]
        self.seconds: list[float] = []

    def read_until(self, stopped: Event) -> None:
        """Read until `stopped` is set."""
        while not stopped.is_set():
            begun = time.perf_counter()
            self._client.get(self._path).raise_for_status()
            self.seconds.append(time.perf_counter() - begun)

    def median_while(self, work: Callable[[], None]) -> float:
        """Return the median duration of its reads while `work` runs, in milliseconds.

        Raises:
            httpx.HTTPError: one of them failed, or was refused.
        """
        self.seconds = []
        stopped = Event()
        with at_work(partial(self.read_until, stopped)):
            try:
                work()
            finally:
                stopped.set()
        return statistics.median(self.seconds) * 1000


def over_http(stack: Stack, times: int) -> tuple[float, float]:
    """Return the neighbour's median in milliseconds: alone, and while each hostile request is sent `times` times."""
    events = [(hostile.function, hostile.build()) for hostile in REQUESTS]
    with stack.client("neighbour") as neighbour, stack.client(TENANT) as hostile:
        reader = Neighbour(neighbour)
        for _ in range(50):
            neighbour.get("/v1/health")
        alone = reader.median_while(lambda: time.sleep(_QUIET_SECONDS))

        def send() -> None:
            for _ in range(times):
                for function, event in events:
                    _send(hostile, function, event)

        return alone, reader.median_while(send)


def _send(client: httpx.Client, function: str, event: Mapping[str, Any]) -> None:
    try:
        if function == COMMANDS:
            client.post(_LAMBDA, json=event, headers=_SIGNED, auth=lambda request: request)
            return
        client.request(
            event["requestContext"]["http"]["method"],
            event["rawPath"] + ("?" + event["rawQueryString"] if event["rawQueryString"] else ""),
            headers=event["headers"],
            content=base64.b64decode(event["body"] or ""),
        )
    except (httpx.InvalidURL, httpx.NetworkError, httpx.RemoteProtocolError):
        # The request is too long for the client, or for the server, which closes the connection.
        return


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the costs, and return 1 if a bound is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=5, help="how often each is sent over HTTP; 0 sends none")
    parser.add_argument("--only", default="", help="send only requests whose names contain this text")
    parser.add_argument("--function", choices=[API, COMMANDS], help=argparse.SUPPRESS)
    parser.add_argument("--event", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.function:
        print(json.dumps(asdict(measure(asked.function, WARM[asked.function], json.loads(asked.event.read_text())))))
        return 0
    failed = False
    with tempfile.TemporaryDirectory() as folder, running_stack(Path(folder), lease=30) as stack:
        print(f"{'request':46} {'CPU s':>6} {'MB':>6} {'Queries':>8} {'bytes':>7}  answer")
        for hostile in REQUESTS:
            if asked.only not in hostile.name:
                continue
            cost = measured_apart(hostile, {**stack.variables, "PYTHONPATH": os.pathsep.join(sys.path)}, Path(folder))
            held = cost.held(hostile)
            failed |= not held
            figures = f"{cost.cpu_seconds:6.2f} {cost.peak_megabytes:6.0f} {cost.queries:8} {cost.answer_bytes:7}"
            print(f"{hostile.name:46} {figures}  {cost.code}{'' if held else '   TOO MUCH'}", flush=True)
        if asked.times:
            alone, loaded = over_http(stack, asked.times)
            slower = loaded / alone
            failed |= slower > MAX_SLOWER
            print(f"a neighbour's GET: {alone:.1f} ms alone, {loaded:.1f} ms during these requests: {slower:.1f} times")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
