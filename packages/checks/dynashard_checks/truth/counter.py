"""Check that a counter is exact which many writers increase while answers are lost.

Each writer follows the rules of docs/promises.md. It reads the counter, writes the next number with `If-Match`, and
trusts every answer: after a 412 or 429 it starts again, because nothing was written. Only after `outcome_unknown` it
checks whether its number was written. For this check the counter has a number for each writer.
"""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random
from time import sleep
from typing import Final

from dynashard_checks.truth.api_clients import ApiClient, Reply
from dynashard_checks.truth.clients import LEVELS
from dynashard_checks.truth.records import REFUSALS

TENANT: Final = "counting"
_PATH: Final = "/v1/licensors/counter"
_OK: Final = 200
_MISMATCH: Final = 412
_MOST: Final = 3000
"""The largest number of requests of one writer."""


@dataclass(frozen=True, slots=True)
class Count:
    """The result of counting.

    Attributes:
        wanted: how many increments the writers made.
        found: the stored sum.
        refused: how many requests were refused because of a changed revision, a throttle or a conflict.
        unknown: how many outcomes a writer had to find out itself.
    """

    wanted: int
    found: int
    refused: int
    unknown: int

    @property
    def exact(self) -> bool:
        """Whether every increment was made once."""
        return self.wanted == self.found


@dataclass
class Writer:
    """A writer that increases the counter."""

    api: ApiClient
    number: int
    writers: int
    level: str
    random: Random
    refused: int = 0
    unknown: int = 0
    _left: int = field(default=_MOST)

    def count(self, increments: int) -> None:
        """Increase the counter `increments` times."""
        for done in range(increments):
            self._increase(done)

    def _increase(self, done: int) -> None:
        """Increase the counter once. `done` is the number of this writer's increments so far."""
        doubtful: set[str] = set()
        while True:
            numbers, revision = self.read()
            if doubtful and numbers[self.number] > done:
                return
            # A request that names another revision can no longer be applied, because revisions do not return.
            doubtful &= {revision}
            numbers[self.number] += 1
            headers = {"If-Match": f'"{revision}"', "Content-Type": "application/json", **LEVELS[self.level]}
            reply = self._asked("PUT", json.dumps({"name": written(numbers)}).encode(), headers)
            if reply.status == _OK:
                return
            if reply.status == _MISMATCH or reply.document.get("code") in REFUSALS:
                self.refused += 1
            else:
                self.unknown += 1
                doubtful.add(revision)
            sleep(self.random.random() * 0.02)

    def read(self) -> tuple[list[int], str]:
        """Read the numbers of all writers, and the revision."""
        while True:
            reply = self._asked("GET", b"", {})
            if reply.status == _OK:
                document = reply.document
                return [int(number) for number in document["name"].split()], document["revision"]

    def _asked(self, method: str, body: bytes, headers: dict[str, str]) -> Reply:
        self._left -= 1
        if self._left < 0:
            raise RuntimeError(f"writer {self.number} is not done after {_MOST} requests")
        path = _PATH + ("?consistent=true" if method == "GET" else "")
        return self.api.send(TENANT, method, path, body, headers)


def _begin(api: ApiClient, body: bytes) -> None:
    """Store the counter. A lost answer or a throttle is followed by another request; any other refusal ends the run."""
    for _ in range(_MOST):
        reply = api.send(TENANT, "PUT", _PATH, body, {"Content-Type": "application/json"})
        if reply.status in (200, 201):
            return
        if 400 <= reply.status < 500 and reply.document.get("code") not in REFUSALS:  # noqa: PLR2004 - HTTP's own
            break
    raise RuntimeError(f"the counter is not stored: {reply.status} {reply.body[:300].decode(errors='replace')}")


def written(numbers: list[int]) -> str:
    """Return the numbers in the format of the counter."""
    return " ".join(map(str, numbers))


def count_together(
    connect: Callable[[], ApiClient], *, writers: int = 10, increments: int = 20, level: str = "plain", seed: int = 1
) -> Count:
    """Let several writers count at the same time, and read the result.

    Args:
        connect: returns a client of the API for each writer.
        writers: how many.
        increments: how often each increases the counter.
        level: one of `LEVELS`.
        seed: determines their pauses.

    Raises:
        RuntimeError: the API does not store the counter, or a writer is not done after 3,000 requests.
    """
    _begin(connect(), json.dumps({"name": written([0] * writers)}).encode())
    counting = [Writer(connect(), number, writers, level, Random(seed * 100 + number)) for number in range(writers)]
    with ThreadPoolExecutor(writers) as pool:
        for running in [pool.submit(writer.count, increments) for writer in counting]:
            running.result()
    found, _ = counting[0].read()
    refused, unknown = sum(w.refused for w in counting), sum(w.unknown for w in counting)
    return Count(writers * increments, sum(found), refused, unknown)
