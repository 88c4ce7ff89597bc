"""Whether listings bring every key that lives all the time once, and no key twice.

What a listing brings is held against the answers of single operations, not against what is stored. A key certainly
lives throughout a listing if an operation that was answered before it began shows the item, and nothing that may take
effect after that moment can end it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.linearizability.model import Answer, Kind, Operation, Version

Key = str


@dataclass(frozen=True, slots=True)
class Listing:
    """A listing from its first page to its last.

    Attributes:
        invoked: when its first page was asked for.
        returned: when its last page came.
        keys: the keys that its pages brought, in their order.
        name: tells listings apart in reports.
    """

    invoked: float
    returned: float
    keys: tuple[Key, ...]
    name: str = ""


def misses_and_doubles(histories: Mapping[Key, Sequence[Operation]], listing: Listing) -> list[str]:
    """What is wrong with a listing; empty if nothing is."""
    counts = Counter(listing.keys)
    wrong = [f"{listing.name} brings {key} {count} times" for key, count in counts.items() if count > 1]
    for key, operations in histories.items():
        if key not in counts and (proof := lives_throughout(operations, listing.invoked, listing.returned)):
            wrong.append(f"{listing.name} [{listing.invoked}, {listing.returned}] lacks {key}, which lives: {proof}")
    nobodys = sorted(counts.keys() - histories.keys())
    return [*wrong, *(f"{listing.name} brings {key}, which nobody wrote" for key in nobodys)]


def lives_throughout(operations: Sequence[Operation], start: float, end: float) -> Operation | None:
    """An operation that proves that the key lives all the time from `start` to `end`; None if nothing does."""
    deletes = [each for each in operations if _may_delete(each)]
    proofs = [each for each in operations if each.returned <= start and _shows(each) is not None]
    for proof in sorted(proofs, key=lambda each: each.returned, reverse=True):
        if not any(_can_end(delete, proof, end) for delete in deletes):
            return proof
    return None


def _may_delete(operation: Operation) -> bool:
    return operation.kind in (Kind.DELETE, Kind.DROP) and operation.answer in (Answer.OK, Answer.UNKNOWN)


def _shows(operation: Operation) -> Version:
    """The version that was live at a moment of the operation."""
    if operation.answer is not Answer.OK or operation.kind in (Kind.DELETE, Kind.DROP):
        return None
    if operation.kind is Kind.GET:
        return operation.seen.state.version if operation.seen and operation.seen.state else None
    return operation.version


def _can_end(delete: Operation, proof: Operation, end: float) -> bool:
    """Whether a delete may take effect between the proof's own moment and the end.

    A delete that names a version can do nothing once another one has been seen after it was known: versions never
    return.
    """
    if delete.invoked >= end or delete.returned <= proof.invoked:
        return False
    named = delete.expected
    return not (named is not None and named != _shows(proof) and delete.invoked < proof.invoked)
