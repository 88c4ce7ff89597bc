"""Judge the records of a run: violations, unknown outcomes, and their reasons."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from dynashard_checks.linearizability.checker import check_all
from dynashard_checks.linearizability.listings import misses_and_doubles
from dynashard_checks.linearizability.model import Answer, Kind
from dynashard_checks.truth.counter import Count
from dynashard_checks.truth.proxy import Attempt
from dynashard_checks.truth.records import Listed, Record, histories_of

_DELETES: Final = frozenset({"DeleteItem", "TransactWriteItems"})
_SLACK: Final = 0.05
"""The largest difference in seconds between the clocks of two processes."""


@dataclass
class Verdict:
    """The result of a run.

    Attributes:
        operations: how many operations were judged, without listings.
        listings: how many listings were judged.
        violations: answers that no order of the operations explains, and wrong listings.
        strange: answers that a client should never get.
        unknown: operations of unknown outcome, by kind.
        ambiguous: writes with a request that may have been executed without an answer, by kind.
        baseless: unknown outcomes of operations without such a request.
        refused: operations that were refused without effect, by code.
        refusals_with_revision: refusals that name the revision they found. Only in these is the revision checked.
        longest: the duration of the longest operation in seconds.
        counter: the result of counting; None if nothing was counted.
    """

    operations: int
    listings: int
    violations: list[str] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)
    unknown: Counter[str] = field(default_factory=Counter)
    ambiguous: Counter[str] = field(default_factory=Counter)
    baseless: list[str] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    refusals_with_revision: int = 0
    longest: float = 0.0
    counter: Count | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the verdict as JSON values."""
        ambiguous = self.ambiguous.total()
        return {
            "operations": self.operations,
            "listings": self.listings,
            "violations": len(self.violations),
            "ambiguous": dict(self.ambiguous),
            "unknown": dict(self.unknown),
            "unknown_share_of_ambiguous": round(self.unknown.total() / ambiguous, 3) if ambiguous else 0.0,
            "unknown_without_ambiguous_attempt": len(self.baseless),
            "refused": dict(self.refused),
            "refusals_that_named_what_they_found": self.refusals_with_revision,
            "strange_answers": len(self.strange),
            "longest_seconds": round(self.longest, 2),
            "counter": None if self.counter is None else asdict(self.counter),
        }


def judged(
    records: Sequence[Record],
    listings: Sequence[Listed],
    attempts: Sequence[Attempt],
    strange: Sequence[str],
    *,
    guarded: bool = False,
) -> Verdict:
    """Judge a run.

    Args:
        records: the operations.
        listings: the listings.
        attempts: the ambiguous attempts of writes.
        strange: answers that a client should never get.
        guarded: whether the run was guarded. A guarded delete whose answer was lost succeeds if the item is gone
            (PROTOCOL, "Outcomes", rule 5), so two deletes of one item may both succeed.
    """
    verdict = Verdict(len(records), len(listings), strange=list(strange))
    named: defaultdict[str, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        for name in attempt.names or ("",):
            named[name].append(attempt)
    gone = {
        number
        for number, record in enumerate(records)
        if guarded and record.kind is Kind.DELETE and record.expected is None and record.answer is Answer.OK
        if _ambiguous(record, named)
    }
    histories, verdict.violations = histories_of(records, listings, gone)
    for subject, violation in check_all(histories).items():
        state = violation.operation.seen.state if violation.operation.seen else None
        writers = [str(record) for record in records if state is not None and record.version == state.version]
        verdict.violations.append(
            f"{subject}: {violation}\nit saw a version written by: {', '.join(writers) or 'nobody'}"
        )
    for each in listings:
        own = {
            name: done for (path, tenant, name), done in histories.items() if (path, tenant) == (each.path, each.tenant)
        }
        verdict.violations += misses_and_doubles(own, each.listing())
    for record in records:
        _count(verdict, record, _ambiguous(record, named))
    return verdict


def _count(verdict: Verdict, record: Record, ambiguous: list[Attempt]) -> None:
    kind = record.kind.value + (" if at" if record.expected is not None else "")
    kind += " with a key" if record.once else ""
    verdict.longest = max(verdict.longest, record.returned - record.invoked)
    verdict.refusals_with_revision += record.answer is Answer.MISMATCH and record.named is not None
    if ambiguous:
        verdict.ambiguous[kind] += 1
    if record.answer is None:
        verdict.refused[record.code] += 1
    elif record.answer is Answer.UNKNOWN and record.kind is not Kind.GET:
        verdict.unknown[kind] += 1
        if not ambiguous:
            verdict.baseless.append(f"{record}")


def _ambiguous(record: Record, named: dict[str, list[Attempt]]) -> list[Attempt]:
    """Return the ambiguous attempts of the writes of an operation."""
    if record.kind is Kind.GET:
        return []
    start, end = record.invoked - _SLACK, record.returned + _SLACK
    if record.version is not None:
        own = named.get(record.version, [])
        if own or not record.once:
            return own
        # The request that stores an idempotency key names neither item nor version.
        return [attempt for attempt in named.get("", ()) if start <= attempt.at <= end]
    return [
        attempt
        for attempt in named.get(record.subject[2], ())
        if attempt.operation in _DELETES and start <= attempt.at <= end
    ]
