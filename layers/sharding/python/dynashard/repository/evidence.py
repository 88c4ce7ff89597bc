"""What a stored item proves about a write whose answer did not come. Pure.

The rules are those of the protocol's section "Outcomes", which an exhaustive model checks (`outcome_model.py`):

    what is found                                   create    put       compare-and-set   delete    delete on a revision
    its revision is mine, or mine is in its `Prev`   done      done      done              -         -
    the awaited revision is in its `Prev`            -         -         refused           -         refused
    another revision, and the same `Born`            -         -         unknown           -         refused
    everything else                                  unknown   unknown   unknown           unknown   unknown

All of it holds after an ambiguous attempt; without one, a failed condition is a refusal. Only a revision that was
replaced never returns: an item older than the write, or none, proves nothing, because the request may still run.

What is found is history: the item of a failed condition, a marker at an old home and a consistent read serve alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Protocol

from dynashard.entity.record import Revision, revision_in
from dynashard.schema import BORN, PREV, PREV_LENGTH, REV
from dynashard.transport.interface import Wire

_NONE: Final = "-"
"""In `Prev`: an item without a revision, from before it was adopted."""


class Proof(Enum):
    """What is proved."""

    DONE = "done"
    REFUSED = "refused"
    """The write was not done, and never will be."""
    UNKNOWN = "unknown"


class Claim(Protocol):
    """What is known of the write.

    Attributes:
        revision: the one that it gives the item; empty for a delete.
        if_match: the exact revision that it replaces or deletes; None if it demands none.
    """

    @property
    def revision(self) -> str:
        """See above."""
        ...

    @property
    def if_match(self) -> str | None:
        """See above."""
        ...


@dataclass(frozen=True, slots=True)
class Past:
    """The revisions that a stored item records: its own, those before it, and that of its creation, if known."""

    revision: str
    replaced: tuple[str, ...] = ()
    born: str | None = None

    @classmethod
    def of(cls, item: Mapping[str, Any] | None) -> "Past | None":
        """Return those of a stored item or marker; None if there is none, or if this layer never wrote it."""
        if not item or REV not in item:
            return None
        revision = revision_in(item)
        assert isinstance(revision, Revision)  # noqa: S101 - it has a `Rev`
        return cls(str(revision), revision.replaced, revision.born)


def judge(claim: Claim, found: Mapping[str, Any] | None, *, ambiguous: bool) -> Proof:
    """Return what the item at its key proves about a write.

    Args:
        claim: the write.
        found: the stored item: from a consistent read, or from the failed condition; None if there is none.
        ambiguous: whether an attempt of the write may have been executed, or may still be.
    """
    if wrote(claim.revision, found):
        return Proof.DONE
    if not ambiguous or replaced(claim, Past.of(found)):
        return Proof.REFUSED
    return Proof.UNKNOWN


def wrote(revision: str, found: Mapping[str, Any] | None) -> bool:
    """Whether a stored item, a marker included, proves that a write of this revision was done."""
    past = Past.of(found)
    return past is not None and bool(revision) and revision in (past.revision, *past.replaced)


def replaced(claim: Claim, past: Past | None) -> bool:
    """Whether the revision that a write awaits was replaced by another write, for ever."""
    if past is None or claim.if_match is None:
        return False
    if (claim.if_match or _NONE) in past.replaced:
        return True
    born = claim.if_match.born if isinstance(claim.if_match, Revision) else None
    # A delete leaves nothing: the same item under another revision was changed instead. A compare-and-set may have been
    # done and replaced so often since that its revision is no longer in `Prev`.
    return not claim.revision and born is not None and born == past.born and past.revision != claim.if_match


def gone(claim: Claim, found: Mapping[str, Any] | None) -> bool:
    """Whether the item that a guarded delete has read is gone, by that delete or by another: nothing, or another birth.

    A request that is still under way is dead, because the revision that it awaits is gone.
    """
    past = Past.of(found)
    if past is None:
        return not found or bool(claim.if_match)
    born = claim.if_match.born if isinstance(claim.if_match, Revision) else None
    return born is not None and past.born is not None and past.born != born


def lineage(if_match: str | None) -> Wire:
    """The attributes that a compare-and-set write stores about what it replaces.

    Args:
        if_match: the exact revision; a `Revision` if the item was read.

    Returns:
        `Prev`, and `Born` if it is known.
    """
    if if_match is None:
        return {}
    if not isinstance(if_match, Revision):
        return {PREV: {"S": if_match or _NONE}}
    before = " ".join((if_match, *if_match.replaced)[:PREV_LENGTH])
    return {PREV: {"S": before}} | ({BORN: {"S": if_match.born}} if if_match.born else {})
