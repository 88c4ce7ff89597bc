"""Check that a listing has every key once that was live throughout, and no key twice.

A listing is compared with the answers of single operations, not with the stored items. A key was certainly live
throughout a listing if an operation that returned before the listing shows its item, and no delete can have taken
effect between that operation and the end of the listing.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dynashard_checks.linearizability.model import Answer, Kind, Operation, Version

Key = str


@dataclass(frozen=True, slots=True)
class Listing:
    """A listing from its first page to its last.

    Attributes:
        invoked: when its first page was requested.
        returned: when its last page was answered.
        keys: the keys of its pages, in their order.
        name: identifies the listing in reports.
    """

    invoked: float
    returned: float
    keys: tuple[Key, ...]
    name: str = ""


def misses_and_doubles(histories: Mapping[Key, Sequence[Operation]], listing: Listing) -> list[str]:
    """Return a line for each missing, repeated or unknown key of a listing."""
    counts = Counter(listing.keys)
    wrong = [f"{listing.name} has {key} {count} times" for key, count in counts.items() if count > 1]
    for key, operations in histories.items():
        if key not in counts and (proof := lives_throughout(operations, listing.invoked, listing.returned)):
            wrong.append(f"{listing.name} [{listing.invoked}, {listing.returned}] lacks {key}, which is live: {proof}")
    unwritten = sorted(counts.keys() - histories.keys())
    return [*wrong, *(f"{listing.name} has {key}, which no client wrote" for key in unwritten)]


def lives_throughout(operations: Sequence[Operation], start: float, end: float) -> Operation | None:
    """Return an operation that proves that the key was live from `start` to `end`; None without a proof."""
    deletes = [each for each in operations if _may_delete(each)]
    proofs = [each for each in operations if each.returned <= start and _shows(each) is not None]
    for proof in sorted(proofs, key=lambda each: each.returned, reverse=True):
        if not any(_can_end(delete, proof, end) for delete in deletes):
            return proof
    return None


def _may_delete(operation: Operation) -> bool:
    return operation.kind in (Kind.DELETE, Kind.DROP) and operation.answer in (Answer.OK, Answer.UNKNOWN)


def _shows(operation: Operation) -> Version:
    """Return the version that was live at a moment of the operation; None if it shows none."""
    if operation.answer is not Answer.OK or operation.kind in (Kind.DELETE, Kind.DROP):
        return None
    if operation.kind is Kind.GET:
        return operation.seen.state.version if operation.seen and operation.seen.state else None
    return operation.version


def _can_end(delete: Operation, proof: Operation, end: float) -> bool:
    """Return whether a delete may take effect between the proof and the end of the listing.

    A delete that names a version has no effect once a later version was seen, because versions never return.
    """
    if delete.invoked >= end or delete.returned <= proof.invoked:
        return False
    named = delete.expected
    return not (named is not None and named != _shows(proof) and delete.invoked < proof.invoked)
