"""A data folder on which the release before and this one run in turn, and what was acknowledged to its clients."""

import os
import signal
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.local_process import LocalProcess
from tests.engine.raw_dynamodb import raw_dynamodb
from tests.releases.golden import under
from tests.releases.resize import TABLE, TIMES, TOPOLOGY

TENANT = "abc"
USERS = 24
BUDGET = "60"
"""Write units a second, so few that a resize is killed while items move."""
MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}
LATER = {"Prefer": "respond-async"}
SETTINGS = {**TIMES, "QUEUE_VISIBILITY_SECONDS": "1", "GROWTH_MODE": "off"}
WORKERS = ("local.queue_worker", "local.changes")
"""Parts of the command lines of both releases' workers."""
_engine = cache(raw_dynamodb)


@dataclass(frozen=True)
class Answered:
    """A create with an idempotency key, and its first answer."""

    path: str
    body: dict[str, Any]
    document: dict[str, Any]


@dataclass
class ReleaseFolder:
    """A data folder, and what clients of all stacks on it know to be acknowledged.

    Attributes:
        place: the folder.
        older: the unpacked release before.
        users: the documents of users by id.
        creates: creates with idempotency keys, by key.
        accepted: where the records of accepted writes are, by the ids of the users that they write.
        cursors: cursors of listings of users, with the ids that came before each.
        turns: how many stacks have been written to; each has one incident, one follow and one ping.
    """

    place: Path
    older: Path
    users: dict[str, Any] = field(default_factory=dict)
    creates: dict[str, Answered] = field(default_factory=dict)
    accepted: dict[str, str] = field(default_factory=dict)
    cursors: dict[str, tuple[str, set[str]]] = field(default_factory=dict)
    turns: int = 0
    stacks: list[LocalProcess] = field(default_factory=list)

    def start(self, *, older: bool) -> LocalProcess:
        """Start the release before on the folder, or this one."""
        code = {"checkout": self.older, "python": str(self._python(older=True)), "module": "local"} if older else {}
        stack = LocalProcess(self.place, SETTINGS, **code)  # type: ignore[arg-type]
        self.stacks.append(stack)
        return stack.ready()

    def use(self, stack: LocalProcess) -> None:
        """Write records of all kinds. The workers of the queues and of the stream are stopped, so that work is left."""
        self.turns += 1
        turn = self.turns
        with closing(stack.client(TENANT)) as client:
            for number in range(USERS):
                user = {"id": f"u{turn}-{number}", "email": f"{turn}.{number}@example.com", "display_name": "Ada"}
                self.users[user["id"]] = done(client.post("/v1/users", json=user)).json()
            for known in [each for each in self.users if each.endswith("-3")]:
                patch = {"department": f"d{turn}"}
                self.users[known] = done(client.patch(f"/v1/users/{known}", json=patch, headers=MERGE_PATCH)).json()
            self._create(client, f"user-{turn}", "/v1/users", {"email": f"{turn}@example.com", "display_name": "Once"})
            summary = {"number": turn, "title": "Disk", "team": "team_1"}
            self._create(client, f"incident-{turn}", "/v1/incidents", {**summary, "details": {"log": "x" * 9000}})
            done(client.post("/v1/follows", json={"node": "User.9", "other": f"Actor.{turn}"}))
            stop_workers(stack)
            body = {"email": "later@example.com", "display_name": "Later"}
            later = done(client.put(f"/v1/users/later-{turn}", json=body, headers=LATER))
            self.accepted[f"later-{turn}"] = later.headers["location"]
            at = datetime.now(UTC).isoformat(timespec="seconds")
            ping = {"id": f"p{turn}", "series": "s", "episode": "e", "at": at, "session_id": "x"}
            done(client.post("/v1/pings", json=[ping]))
            for order in ("round_robin", "ordered", "shard"):
                page = done(client.get("/v1/users", params={"order": order, "limit": "10"})).json()
                self.cursors[order] = (page["cursor"], {user["id"] for user in page["items"]})

    def _create(self, client: httpx.Client, key: str, path: str, body: dict[str, Any]) -> None:
        document = done(client.post(path, json=body, headers={"Idempotency-Key": key})).json()
        self.creates[key] = Answered(path, body, document)
        if path == "/v1/users":
            self.users[document["id"]] = document

    def check(self, stack: LocalProcess) -> None:
        """Check that everything that any stack has acknowledged is there, or comes to be."""
        with closing(stack.client(TENANT)) as client:
            for order, (cursor, before) in self.cursors.items():
                rest = {user["id"] for user in listed(client, "/v1/users", cursor, order=order)}
                assert rest | before >= self.users.keys()
                assert rest & before == set()
            self._check_accepted(stack, client)
            found = listed(client, "/v1/users", order="ordered")
            assert {user["id"]: user for user in found} == self.users
            assert len(found) == len(listed(client, "/v1/users")) == len(self.users)
            for key, first in self.creates.items():
                again = client.post(first.path, json=first.body, headers={"Idempotency-Key": key})
                assert (again.status_code, again.headers.get("idempotency-replayed")) == (201, "true"), again.text
                assert again.json() == first.document
            self._check_derived(stack, client)

    def _check_accepted(self, stack: LocalProcess, client: httpx.Client) -> None:
        for name, location in self.accepted.items():
            stack.once(lambda location=location: client.get(location).json()["state"] != "pending")  # type: ignore[misc]
            assert client.get(location).json()["state"] == "done"
            self.users[name] = client.get(f"/v1/users/{name}").json()

    def _check_derived(self, stack: LocalProcess, client: httpx.Client) -> None:
        """Check attachments, copies, edges and roll-ups."""
        for first in self.creates.values():
            if first.path == "/v1/incidents":
                whole = done(client.get(f"{first.path}/{first.document['id']}", params={"include": "details"}))
                assert whole.json()["details"] == first.body["details"]
        opened = {"participant": "team_1", "state": "OPEN"}
        stack.once(lambda: len(listed(client, "/v1/participations", **opened)) == self.turns)
        assert len(listed(client, "/v1/follows", of="User.9")) == self.turns
        stack.once(lambda: pings_counted(client) == self.turns)

    def begin_resize(self, stack: LocalProcess, to: int, *, older: bool) -> None:
        """Request another shard count of the users under the code of a release, and wait until some have moved."""
        code = under(self._python(older=older), "resize.py", stack.engine_url, TENANT, str(to), BUDGET)
        assert Path(code).is_relative_to(self.older) is older
        stack.once(lambda: record(stack)["phase"] == {"S": "move"} and markers(stack) > 0)

    def _python(self, *, older: bool) -> Path:
        return self.older / ".venv" / "bin" / "python" if older else Path(sys.executable)


def settled(stack: LocalProcess, count: int) -> None:
    """Wait until a resize has ended: its count is in force, and no marker is left."""
    wanted = {"number_of_shards": {"N": str(count)}, "swept": {"BOOL": True}}
    stack.once(lambda: wanted.items() <= record(stack).items())
    assert markers(stack) == 0


def record(stack: LocalProcess) -> dict[str, Any]:
    """Return the topology record of the tenant's users."""
    key = {"partition": {"S": f"user.v1.User:{TENANT}"}}
    found: dict[str, Any] = _engine(stack.engine_url).call("GetItem", TableName=TOPOLOGY, Key=key)["Item"]
    return found


def markers(stack: LocalProcess) -> int:
    """Return how many relocation markers are in the table."""
    marked = {"FilterExpression": "attribute_exists(MovedTo)", "Select": "COUNT"}
    return int(_engine(stack.engine_url).call("Scan", TableName=TABLE, **marked)["Count"])


def stop_workers(stack: LocalProcess) -> None:
    """Stop the workers of the queues and of the stream, so that their work is left when the stack is killed."""
    for pid, line in stack.processes().items():
        if any(worker in line for worker in WORKERS):
            os.kill(pid, signal.SIGSTOP)


def done(answer: httpx.Response) -> httpx.Response:
    """Return an answer; fails the test if it is a refusal."""
    assert answer.is_success, answer.text
    return answer


def listed(client: httpx.Client, path: str, cursor: str | None = None, **asked: str) -> list[Mapping[str, Any]]:
    """Return a whole listing, from a cursor or its start on."""
    items: list[Mapping[str, Any]] = []
    while True:
        page = done(client.get(path, params={**asked, "limit": "10", **({"cursor": cursor} if cursor else {})})).json()
        items += page["items"]
        cursor = page["cursor"]
        if cursor is None:
            return items


def pings_counted(client: httpx.Client) -> int:
    """Return how many pings the roll-ups of this year have counted."""
    year = datetime.now(UTC).year
    asked = {"level": "month", "series": "s", "from": f"{year}-01-01", "to": f"{year + 1}-01-01"}
    return sum(row["pings"] for row in done(client.get("/v1/roll-ups", params=asked)).json()["items"])
