"""Clients of the API that share a few keys and use every operation, with and without conditions."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from time import monotonic, sleep
from typing import Any, Final
from uuid import UUID

from dynashard_checks.linearizability.model import Answer, Kind
from dynashard_checks.truth.api_clients import ApiClient, Reply
from dynashard_checks.truth.records import Listed, Record, Sighting, Subject

LEVELS: Final[Mapping[str, Mapping[str, str]]] = {
    "plain": {},
    "guarded": {"Prefer": "handling=guarded"},
    "exactly-once": {"Prefer": "handling=exactly-once"},
}
PATHS: Final = ("licensors", "users")
"""The path of an entity without timestamps, and of one with a creation timestamp, which puts keep."""
_CONTENT: Final[Mapping[str, Callable[[str], dict[str, str]]]] = {
    "licensors": lambda version: {"name": version},
    "users": lambda version: {"email": "a@example.com", "display_name": version},
}
_FIELD: Final = {"licensors": "name", "users": "display_name"}
_WEIGHTS: Final[Mapping[str, int]] = {
    "get": 24, "create": 8, "create_once": 8, "put_new": 4, "put": 12, "replace": 14, "patch": 5, "patch_at": 6,
    "delete": 8, "delete_at": 8, "list": 3,
}  # fmt: skip
_DELETING: Final = frozenset({"delete", "delete_at"})
_STEADY: Final = 4
"""One in this many keys is never deleted, so every listing must return it."""
_RESENDS: Final = 3
_REVISION: Final = re.compile(r"is at revision ([^\s;]+)")


@dataclass(frozen=True, slots=True)
class Traffic:
    """The operations of clients.

    Attributes:
        operations: how many each client does.
        level: one of `LEVELS`.
        slots: how many keys of each path are in use at a time.
        epochs: how often all keys are replaced by new ones of a new tenant. A delete or put of unknown outcome may take
            effect at any later time, so a key with many of them proves less and less.
    """

    operations: int
    level: str = "plain"
    slots: int = 8
    epochs: int = 1


@dataclass
class Client:
    """A client that does one operation after the other, and records their times and answers."""

    api: ApiClient
    number: int
    random: Random
    traffic: Traffic
    records: list[Record] = field(default_factory=list)
    listings: list[Listed] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)
    _known: dict[Subject, str] = field(default_factory=dict)
    _written: int = 0

    def run(self) -> None:
        """Do all operations."""
        kinds, weights = list(_WEIGHTS), list(_WEIGHTS.values())
        for done in range(self.traffic.operations):
            epoch = done * self.traffic.epochs // self.traffic.operations
            path = self.random.choice(PATHS)
            slot = self.random.randrange(self.traffic.slots)
            [kind] = self.random.choices(kinds, weights)
            if slot % _STEADY == 0 and kind in _DELETING:
                kind = "replace"
            getattr(self, f"_do_{kind}")((path, tenant_of(epoch), f"k{slot}-{epoch}"))

    def read_all(self) -> None:
        """Read every key, and list the items of every tenant."""
        for epoch in range(self.traffic.epochs):
            for path in PATHS:
                for slot in range(self.traffic.slots):
                    self._do_get((path, tenant_of(epoch), f"k{slot}-{epoch}"))
                self._do_list((path, tenant_of(epoch), ""))

    # Operations.

    def _do_get(self, subject: Subject) -> None:
        self._operate(Kind.GET, subject, "GET", _address(subject) + "?consistent=true")

    def _do_create(self, subject: Subject) -> None:
        version = self._version()
        self._operate(
            Kind.CREATE, subject, "POST", f"/v1/{subject[0]}", _content(subject, version, whole=True), version
        )

    def _do_create_once(self, subject: Subject) -> None:
        """Create with an idempotency key, and send the request again if its outcome is unknown."""
        version = self._version()
        headers = {"Idempotency-Key": str(UUID(int=self.random.getrandbits(128)))}
        content = _content(subject, version, whole=True)
        first = self._operation(Kind.CREATE, subject, "POST", f"/v1/{subject[0]}", content, version, headers)
        found = first
        for resend in range(_RESENDS):
            if found.answer not in (Answer.UNKNOWN, None) or (found.answer is None and found is first):
                break
            sleep(self.random.random() * 0.05 * 2**resend)
            again = self._operation(Kind.CREATE, subject, "POST", f"/v1/{subject[0]}", content, version, headers)
            found = replace(again, invoked=first.invoked, requests=resend + 2)
        if found.requests > 1 and found.answer is not Answer.OK:
            # A refusal of the last request proves nothing about the first one.
            found = replace(first, returned=found.returned, requests=found.requests)
        self._keep(found)

    def _do_put_new(self, subject: Subject) -> None:
        version = self._version()
        content = _content(subject, version)
        self._operate(Kind.CREATE, subject, "PUT", _address(subject), content, version, {"If-None-Match": "*"})

    def _do_put(self, subject: Subject) -> None:
        version = self._version()
        self._operate(Kind.PUT, subject, "PUT", _address(subject), _content(subject, version), version)

    def _do_replace(self, subject: Subject) -> None:
        version = self._version()
        for headers in self._at_known(subject):
            self._operate(Kind.PUT, subject, "PUT", _address(subject), _content(subject, version), version, headers)

    def _do_patch(self, subject: Subject) -> None:
        version = self._version()
        patch = {_FIELD[subject[0]]: version}
        self._operate(Kind.UPDATE, subject, "PATCH", _address(subject), patch, version)

    def _do_patch_at(self, subject: Subject) -> None:
        version = self._version()
        for headers in self._at_known(subject):
            patch = {_FIELD[subject[0]]: version}
            self._operate(Kind.UPDATE, subject, "PATCH", _address(subject), patch, version, headers)

    def _do_delete(self, subject: Subject) -> None:
        self._operate(Kind.DELETE, subject, "DELETE", _address(subject))

    def _do_delete_at(self, subject: Subject) -> None:
        for headers in self._at_known(subject):
            self._operate(Kind.DELETE, subject, "DELETE", _address(subject), headers=headers)

    def _do_list(self, subject: Subject) -> None:
        path, tenant, _ = subject
        began, cursor, items = monotonic(), "", []
        order = self.random.choice(("round_robin", "ordered", "shard"))
        while True:
            limit = self.random.choice((2, 5, 1000))
            query = f"?consistent=true&order={order}&limit={limit}" + (f"&cursor={cursor}" if cursor else "")
            asked = monotonic()
            reply = self.api.send(tenant, "GET", f"/v1/{path}{query}", b"", {})
            if reply.status != 200:  # noqa: PLR2004 - HTTP's own number
                self._notice("list", reply)
                return
            page, answered = reply.document, monotonic()
            items += [(item["id"], _sighting(path, item), asked, answered) for item in page["items"]]
            cursor = page["cursor"]
            if cursor is None:
                self.listings.append(Listed(path, tenant, began, answered, tuple(items)))
                return

    # Shared by all operations.

    def _at_known(self, subject: Subject) -> Iterator[dict[str, str]]:
        """Yield the header with the revision last seen, or nothing if no revision was seen."""
        if subject not in self._known or self.random.random() < 0.5:  # noqa: PLR2004 - half
            self._do_get(subject)
        if subject in self._known:
            yield {"If-Match": f'"{self._known[subject]}"'}

    def _operate(  # noqa: PLR0917 - the parts of a request
        self,
        kind: Kind,
        subject: Subject,
        method: str,
        address: str,
        content: Mapping[str, Any] | None = None,
        version: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._keep(self._operation(kind, subject, method, address, content, version, headers or {}))

    def _operation(  # noqa: PLR0917 - the parts of a request
        self,
        kind: Kind,
        subject: Subject,
        method: str,
        address: str,
        content: Mapping[str, Any] | None,
        version: str | None,
        headers: Mapping[str, str],
    ) -> Record:
        sent = dict(headers)
        if method != "GET":
            sent |= LEVELS[self.traffic.level]
        body = b""
        if content is not None:
            body = json.dumps(content).encode()
            sent["Content-Type"] = "application/merge-patch+json" if method == "PATCH" else "application/json"
        invoked = monotonic()
        reply = self.api.send(subject[1], method, address, body, sent)
        returned = monotonic()
        expected = headers.get("If-Match")
        record = Record(
            subject,
            kind,
            invoked,
            returned,
            reply.status,
            version=version,
            expected=expected and expected.strip('"'),
            once="Idempotency-Key" in headers,
        )
        return self._with_answer(record, reply)

    def _with_answer(self, record: Record, reply: Reply) -> Record:
        """Return the record with the content of the answer."""
        if reply.status in (200, 201):
            return replace(record, seen=_sighting(record.subject[0], reply.document))
        if reply.status in (0, 204) or not reply.headers.get("content-type", "").startswith("application/problem+json"):
            if reply.status not in (0, 204):
                self._notice(record.kind.value, reply)
            return record
        problem = reply.document
        code = str(problem["code"])
        named = problem.get("details", {}).get("revision")
        if record.status == 412:  # noqa: PLR2004 - HTTP's own number
            found = _REVISION.search(problem["detail"])
            named = found[1] if found else "" if "does not exist" in problem["detail"] else None
        record = replace(record, code=code, named=named)
        if record.answer is Answer.UNKNOWN and code != "outcome_unknown":
            self._notice(record.kind.value, reply)
        return record

    def _keep(self, record: Record) -> None:
        self.records.append(record)
        if record.seen is not None:
            self._known[record.subject] = record.seen.revision

    def _notice(self, what: str, reply: Reply) -> None:
        if reply.status not in (429, 503):
            self.strange.append(f"{what}: {reply.status} {reply.body[:300].decode(errors='replace')}")

    def _version(self) -> str:
        self._written += 1
        return f"w{self.number}-{self._written}"


def tenant_of(epoch: int) -> str:
    """Return the tenant of an epoch."""
    return f"truth{epoch}"


def _address(subject: Subject) -> str:
    return f"/v1/{subject[0]}/{subject[2]}"


def _content(subject: Subject, version: str, *, whole: bool = False) -> dict[str, str]:
    content = _CONTENT[subject[0]](version)
    return {"id": subject[2], **content} if whole else content


def _sighting(path: str, document: Mapping[str, Any]) -> Sighting:
    return Sighting(document[_FIELD[path]], document["revision"])
