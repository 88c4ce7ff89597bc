"""A counter that many writers increase while answers are lost: is the sum exact?

Each writer follows the rules of docs/promises.md. It reads the counter, writes the next number with `If-Match`, and
believes every answer: after a 412 or 429 it begins again, because nothing was written. Only after `outcome_unknown` it
looks whether its number has arrived; for that the counter keeps a number for each writer.
"""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random
from time import sleep
from typing import Final

from bench.truth.clients import LEVELS
from bench.truth.records import REFUSALS
from bench.truth.ways import Reply, Way

TENANT: Final = "counting"
_PATH: Final = "/v1/licensors/counter"
_OK: Final = 200
_MISMATCH: Final = 412
_MOST: Final = 3000
"""Requests of one writer, before it gives up."""


@dataclass(frozen=True, slots=True)
class Count:
    """What counting came to.

    Attributes:
        wanted: increments that writers believe to have made.
        found: the sum of what is stored.
        refused: answers that nothing was written: the revision had changed, or a throttle or conflict.
        unknown: outcomes that a writer had to look for itself.
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
    """One who counts."""

    way: Way
    number: int
    writers: int
    level: str
    random: Random
    refused: int = 0
    unknown: int = 0
    _left: int = field(default=_MOST)

    def count(self, increments: int) -> None:
        """Increase the counter so many times."""
        for done in range(increments):
            self._increase(done)

    def _increase(self, done: int) -> None:
        """Increase it once; `done` is the number that this writer believes to have reached."""
        doubtful: set[str] = set()
        while True:
            numbers, revision = self.read()
            if doubtful and numbers[self.number] > done:
                return
            # A request that names another revision can never be applied any more: revisions do not return.
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
        """The numbers of all writers, and the revision."""
        while True:
            reply = self._asked("GET", b"", {})
            if reply.status == _OK:
                document = reply.document
                return [int(number) for number in document["name"].split()], document["revision"]

    def _asked(self, method: str, body: bytes, headers: dict[str, str]) -> Reply:
        self._left -= 1
        if self._left < 0:
            raise RuntimeError(f"writer {self.number} has sent {_MOST} requests and is not done")
        path = _PATH + ("?consistent=true" if method == "GET" else "")
        return self.way.send(TENANT, method, path, body, headers)


def written(numbers: list[int]) -> str:
    """The numbers as the counter keeps them."""
    return " ".join(map(str, numbers))


def count_together(
    way: Callable[[], Way], *, writers: int = 10, increments: int = 20, level: str = "plain", seed: int = 1
) -> Count:
    """Let writers count at once, and read what they have come to.

    Args:
        way: gives each writer a way to the API.
        writers: how many.
        increments: of each.
        level: one of `LEVELS`.
        seed: draws their pauses.
    """
    body = json.dumps({"name": written([0] * writers)}).encode()
    while way().send(TENANT, "PUT", _PATH, body, {"Content-Type": "application/json"}).status not in (200, 201):
        pass
    counting = [Writer(way(), number, writers, level, Random(seed * 100 + number)) for number in range(writers)]
    with ThreadPoolExecutor(writers) as pool:
        for running in [pool.submit(writer.count, increments) for writer in counting]:
            running.result()
    found, _ = counting[0].read()
    refused, unknown = sum(w.refused for w in counting), sum(w.unknown for w in counting)
    return Count(writers * increments, sum(found), refused, unknown)
