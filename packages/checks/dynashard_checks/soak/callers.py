"""Clients of the API that run as threads: workers on single items of their own, and listers of everything."""

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from threading import Event
from time import monotonic
from typing import Any

import httpx

from dynashard_checks.soak.ledger import Findings, Ledger

_PAGE = 1000
_WEIGHTS = (25, 30, 20, 10, 15)
"""The weights of create, read, patch, put and delete."""


@dataclass
class Worker:
    """Creates, reads, changes and deletes items at a steady pace. No other worker uses these items.

    Attributes:
        client: calls the API as one tenant.
        ledger: gets the acknowledged writes.
        findings: gets errors and anomalies.
        stop: ends the work.
        random: decides what to do.
        pause: seconds from one request to the next.
        mine: the ids of its items.
    """

    client: httpx.Client
    ledger: Ledger
    findings: Findings
    stop: Event
    random: Random
    pause: float
    mine: list[str]
    known: dict[str, dict[str, Any]] = field(default_factory=dict)
    etags: dict[str, str] = field(default_factory=dict)

    def run(self) -> None:
        """Work until `stop` is set."""
        acts = (self.create, self.read, self.patch, self.put, self.delete)
        due = monotonic()
        while not self.stop.wait(max(0.0, due - monotonic())):
            # Time lost by a slow request is not made up: the pace limits the load, as a pool of clients does.
            due = max(due, monotonic() - self.pause) + self.pause
            [act] = self.random.choices(acts, _WEIGHTS)
            try:
                act()
            except httpx.HTTPError as error:
                self.findings.failed(f"{act.__name__}: {error!r}")

    def create(self) -> None:
        """Create an item."""
        number = self.random.getrandbits(40)
        answer = self._write(
            "POST", "/v1/users", json={"email": f"u{number}@example.com", "display_name": f"N {number}"}
        )
        if self.findings.answered(answer.status_code, (201,), "create"):
            name = answer.json()["id"]
            self.ledger.born(name)
            self.mine.append(name)
            self._learn(name, answer)

    def read(self) -> None:
        """Read an item, which must be as it was last written."""
        name = self.random.choice(self.mine)
        answer = self.client.get(f"/v1/users/{name}")
        if self.findings.answered(answer.status_code, (200,), f"read {name}"):
            expected = self.known.get(name)
            if expected is not None and (answer.json() != expected or answer.headers["etag"] != self.etags[name]):
                self.findings.anomaly(f"read of {name}: {answer.json()}, expected {expected}")
            self._learn(name, answer)

    def patch(self) -> None:
        """Change an item at the revision last seen. No other worker can have changed it."""
        name = self.random.choice(self.mine)
        headers = {"Content-Type": "application/merge-patch+json"}
        if name in self.etags:
            headers["If-Match"] = self.etags[name]
        changed = f'{{"display_name": "N {self.random.getrandbits(40)}"}}'
        answer = self._write("PATCH", f"/v1/users/{name}", content=changed, headers=headers)
        if self.findings.answered(answer.status_code, (200,), f"patch {name}"):
            self._learn(name, answer)

    def put(self) -> None:
        """Replace an item."""
        name = self.random.choice(self.mine)
        number = self.random.getrandbits(40)
        whole = {"email": f"p{number}@example.com", "display_name": f"P {number}"}
        answer = self._write("PUT", f"/v1/users/{name}", json=whole)
        if self.findings.answered(answer.status_code, (200,), f"put {name}"):
            self._learn(name, answer)

    def delete(self) -> None:
        """Delete an item, which must exist before and must not exist afterwards."""
        at = self.random.randrange(len(self.mine))
        self.mine[at], self.mine[-1] = self.mine[-1], self.mine[at]
        name = self.mine.pop()
        self.ledger.leaving(name)
        answer = self._write("DELETE", f"/v1/users/{name}")
        if self.findings.answered(answer.status_code, (204,), f"delete {name}"):
            self.ledger.gone(name)
            self.known.pop(name, None)
            self.etags.pop(name, None)
            after = self.client.get(f"/v1/users/{name}")
            self.findings.answered(after.status_code, (404,), f"read of deleted {name}")

    def _write(self, method: str, path: str, **options: Any) -> httpx.Response:
        start = monotonic()
        answer = self.client.request(method, path, **options)
        self.findings.wrote(monotonic() - start)
        return answer

    def _learn(self, name: str, answer: httpx.Response) -> None:
        self.known[name] = answer.json()
        self.etags[name] = answer.headers["etag"]


@dataclass
class Lister:
    """Lists all items page by page, again and again, and compares each listing with the ledger."""

    client: httpx.Client
    ledger: Ledger
    findings: Findings
    stop: Event
    order: str
    pause: float

    def run(self) -> None:
        """List until `stop` is set."""
        while not self.stop.is_set():
            try:
                self.walk()
            except httpx.HTTPError as error:
                self.findings.failed(f"list: {error!r}")

    def walk(self) -> None:
        """List all items once. A listing that `stop` interrupts is not checked."""
        start = monotonic()
        seen: Counter[str] = Counter()
        cursor: str | None = None
        while not self.stop.wait(self.pause):
            asked: dict[str, str | int] = {"limit": _PAGE, "order": self.order}
            if cursor is not None:
                asked["cursor"] = cursor
            answer = self.client.get("/v1/users", params=asked)
            if not self.findings.answered(answer.status_code, (200,), f"list {self.order}"):
                return
            page = answer.json()
            seen.update(item["id"] for item in page["items"])
            cursor = page["cursor"]
            if cursor is None:
                self.findings.anomaly(*(f"{self.order}: {w}" for w in self.ledger.compare(seen, start, monotonic())))
                self.findings.listed()
                return
