"""What a stored item proves about a write whose answer did not come. Pure.

docs/promises.md says what callers receive ("When the outcome is unknown"). The schedules break each of these rules and
must notice it (docs/proof.md, "Mutants"):

    what is found                                   create    put       compare-and-set   delete    delete on a revision
    its revision is mine, or mine is in its `Prev`   done      done      done              -         -
    the awaited revision is in its `Prev`            -         -         refused           -         refused
    another revision, and the same `Born`            -         -         unknown           -         refused
    everything else                                  unknown   unknown   unknown           unknown   unknown

All of this holds after an ambiguous attempt; without one, a failed condition is a refusal. An item that is older than
the write, or no item, proves nothing, because the request may still be executed. The item of a failed condition, a
marker at an old home and a consistent read are equal evidence.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, Protocol

from dynashard.record import Revision, revision_in
from dynashard.schema import BORN, PREV, PREV_LENGTH
from dynashard.transport.interface import Wire

_NONE: Final = "-"
"""In `Prev`: an item without a revision, from before it was adopted."""


class Proof(Enum):
    """What is proved about a write."""

    DONE = "done"
    REFUSED = "refused"
    """It was not executed, and never will be."""
    UNKNOWN = "unknown"


class _Write(Protocol):
    """The revision that a write gives the item, empty for a delete; and the exact one that it demands, if any."""

    @property
    def revision(self) -> str: ...
    @property
    def if_match(self) -> str | None: ...


def judge(write: _Write, found: Mapping[str, Any] | None) -> Proof:
    """Return what the item at its key proves about a write of which an attempt may have been or may be executed.

    `found` is from a consistent read or from the failed condition; None if there is no item.
    """
    if wrote(write.revision, found):
        return Proof.DONE
    return Proof.REFUSED if _replaced(write, _recorded(found)) else Proof.UNKNOWN


def wrote(revision: str, found: Mapping[str, Any] | None) -> bool:
    """Whether a stored item or marker proves that a write with this new revision was executed."""
    recorded = _recorded(found)
    return recorded is not None and revision in (recorded, *recorded.replaced)


def gone(write: _Write, found: Mapping[str, Any] | None) -> bool:
    """Whether the item that a guarded delete has read is gone, by that delete or by another.

    Nothing is stored, or an item of another creation. A request that is still under way can no longer be executed,
    because the revision that it demands is gone.
    """
    recorded = _recorded(found)
    if recorded is None:
        # An item that this layer never wrote is another than the one that was read, unless that had no revision either.
        return not found or bool(write.if_match)
    born = _born(write.if_match)
    return born is not None and recorded.born is not None and recorded.born != born


def lineage(if_match: str | None) -> Wire:
    """Return what a compare-and-set write stores about the revision that it replaces: `Prev`, and `Born` if known."""
    if if_match is None:
        return {}
    if not isinstance(if_match, Revision) or not if_match:
        # A caller named it, so what came before it is not known; and a wrong guess of `Born` would prove refusals.
        return {PREV: {"S": if_match or _NONE}}
    before = " ".join((if_match, *if_match.replaced)[:PREV_LENGTH])
    return {PREV: {"S": before}} | ({BORN: {"S": if_match.born}} if if_match.born else {})


def _recorded(item: Mapping[str, Any] | None) -> Revision | None:
    """The revision of a stored item or marker; None if there is none, or if this layer never wrote it."""
    revision = revision_in(item or {})
    return revision if isinstance(revision, Revision) else None


def _replaced(write: _Write, recorded: Revision | None) -> bool:
    """Whether another write has replaced the revision that a write demands."""
    # If the awaited revision still stands, the request may be executed yet.
    if recorded is None or write.if_match in (None, recorded):
        return False
    if (write.if_match or _NONE) in recorded.replaced:
        return True
    born = _born(write.if_match)
    # A delete leaves nothing: the same item under another revision was written instead. A compare-and-set may have been
    # done and replaced so often since that its revision is no longer in `Prev`.
    return not write.revision and born is not None and born == recorded.born


def _born(revision: str | None) -> str | None:
    return revision.born if isinstance(revision, Revision) else None
