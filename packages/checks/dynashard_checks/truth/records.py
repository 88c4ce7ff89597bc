"""The operations of clients with their answers, and the histories of keys that follow from them."""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Final

from dynashard_checks.linearizability.listings import Listing
from dynashard_checks.linearizability.model import UNSEEN, Answer, Kind, Operation, Seen, State

Subject = tuple[str, str, str]
"""Path, tenant and id of an item."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """An item in an answer: the version that its content names, and its revision."""

    version: str
    revision: str


@dataclass(frozen=True, slots=True)
class Record:
    """One operation of one client.

    Attributes:
        subject: the item.
        kind: what it does.
        invoked, returned: seconds of the machine's monotonic clock.
        status: the status of the answer; 0 if none came.
        code: the code of a problem; empty otherwise.
        version: the version that it writes.
        expected: the revision of `If-Match`.
        seen: the item in the answer.
        named: the revision in a refusal or an unknown outcome; empty if a refusal says that the item does not exist.
        once: whether it has an idempotency key.
        requests: how many requests it took; above 1 if it was sent again with its idempotency key.
    """

    subject: Subject
    kind: Kind
    invoked: float
    returned: float
    status: int
    code: str = ""
    version: str | None = None
    expected: str | None = None
    seen: Sighting | None = None
    named: str | None = None
    once: bool = False
    requests: int = 1

    @property
    def answer(self) -> Answer | None:
        """The answer; None for a refusal, which promises that nothing was or will be written."""
        if self.status in (200, 201, 204):
            return Answer.OK
        if self.status == 404:  # noqa: PLR2004 - HTTP's own numbers, here and below
            return Answer.MISSING
        if self.status == 412:  # noqa: PLR2004
            return Answer.EXISTS if self.kind is Kind.CREATE else Answer.MISMATCH
        if self.code == "already_exists":
            return Answer.EXISTS
        if self.code in REFUSALS:
            return None
        return Answer.UNKNOWN


REFUSALS: Final = frozenset(
    {
        "throttled", "table_throttled", "key_range_throttled", "unprocessed", "engine_unavailable",
        "transaction_conflict", "write_contended", "overloaded", "request_in_progress", "queue_unavailable",
    }
)  # fmt: skip
"""Codes that promise that nothing was written, and that nothing will be."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A listing of a path by a tenant, from its first page to its last, with each item and the times of its page."""

    path: str
    tenant: str
    invoked: float
    returned: float
    items: tuple[tuple[str, Sighting, float, float], ...]

    def listing(self) -> Listing:
        """Return the listing for the check of listings."""
        return Listing(
            self.invoked, self.returned, tuple(name for name, *_ in self.items), f"{self.path} of {self.tenant}"
        )


def histories_of(
    records: Iterable[Record], listings: Iterable[Listed], gone: Container[int] = ()
) -> tuple[dict[Subject, list[Operation]], list[str]]:
    """Return the histories of all keys, and a line for each revision that stands for two contents.

    Answers name items by revision. Every answer that has revision and content shows the write of the revision.

    Args:
        records: the operations.
        listings: the listings.
        gone: the positions of deletes whose success only means that the item is gone, perhaps by another delete.
    """
    records, listings = list(records), list(listings)
    names: dict[str, str] = {}
    sightings = [record.seen for record in records if record.seen is not None]
    sightings += [item[1] for each in listings for item in each.items]
    # An unknown outcome names the revision that the write has if it takes effect.
    sightings += [
        Sighting(r.version, r.named)
        for r in records
        if r.answer is Answer.UNKNOWN and r.named and r.version is not None
    ]
    wrong = [
        f"revision {seen.revision} stands for {names[seen.revision]} and for {seen.version}"
        for seen in sightings
        if names.setdefault(seen.revision, seen.version) != seen.version
    ]
    histories: defaultdict[Subject, list[Operation]] = defaultdict(list)
    for number, record in enumerate(records):
        if record.answer is not None:
            operation = _operation(record, names, f"{record.subject[2]}#{number}")
            histories[record.subject].append(replace(operation, kind=Kind.DROP) if number in gone else operation)
    for each in listings:
        for item, seen, asked, came in each.items:
            read = Operation(Kind.GET, asked, came, Answer.OK, seen=Seen(State(seen.version)), name="listed")
            histories[each.path, each.tenant, item].append(read)
    return dict(histories), wrong


def _operation(record: Record, names: Mapping[str, str], name: str) -> Operation:
    answer = record.answer or Answer.UNKNOWN
    seen = None
    if answer is Answer.OK and record.seen is not None:
        seen = Seen(State(record.seen.version))
    elif answer is Answer.MISMATCH and record.named is not None:
        seen = Seen(State(names.get(record.named, UNSEEN)) if record.named else None, has_total=False)
    return Operation(
        kind=record.kind,
        invoked=record.invoked,
        returned=inf if answer is Answer.UNKNOWN else record.returned,
        answer=answer,
        version=record.version,
        expected=None if record.expected is None else names[record.expected],
        seen=seen,
        # A put whose success was proved by a read answers 200 in any case, so only 201 is a claim.
        created=True if record.kind is Kind.PUT and record.status == 201 else None,  # noqa: PLR2004
        name=name,
    )
