"""What a request demands of the present state of an item: `If-Match` and `If-None-Match` (RFC 9110, section 13)."""

from collections.abc import Iterable
from typing import Final, NamedTuple, Self

from dynashard.errors import DynashardError, RevisionMismatchError

ANY: Final = "*"
"""Stands for every revision."""


class PreconditionFailedError(DynashardError):
    """The item is in a state that the request excludes."""

    code = "precondition_failed"
    status = 412


class Revisions(NamedTuple):
    """Any revision, or some. A weak one only counts where a state is excluded."""

    anything: bool
    strong: frozenset[str] = frozenset()
    weak: frozenset[str] = frozenset()

    @classmethod
    def named(cls, names: Iterable[str]) -> Self:
        """Those of a list; `*` is any."""
        strong = frozenset(names)
        return cls(ANY in strong, strong - {ANY})

    def names(self, *, weak: bool) -> list[str]:
        """The list that `named` reads, without the weak ones unless they count."""
        if self.anything:
            return [ANY]
        return sorted(self.strong | self.weak if weak else self.strong)


class Conditions(NamedTuple):
    """The conditions of a request on an item; None for no condition."""

    if_match: Revisions | None = None
    if_none_match: Revisions | None = None

    @property
    def none(self) -> bool:
        """Whether the request demands nothing."""
        return self.if_match is None and self.if_none_match is None

    @property
    def only_new(self) -> bool:
        """Whether the request demands that there is no item, and nothing else."""
        return self.if_match is None and self.if_none_match is not None and self.if_none_match.anything

    @property
    def single_revision(self) -> str | None:
        """The one revision the item must have, if that is all the request demands."""
        wanted = self.if_match
        if wanted is None or self.if_none_match is not None or wanted.anything:
            return None
        return next(iter(wanted.strong)) if not wanted.weak and len(wanted.strong) == 1 else None

    def match(self, revision: str | None) -> bool:
        """Whether `if_match` holds for the present revision, None for no item. Weak ones never match."""
        if self.if_match is None:
            return True
        return revision is not None and (self.if_match.anything or revision in self.if_match.strong)

    def none_match(self, revision: str | None) -> bool:
        """Whether `if_none_match` holds for the present revision, None for no item. Weak ones count."""
        excluded = self.if_none_match
        if excluded is None or revision is None:
            return True
        return not (excluded.anything or revision in excluded.strong or revision in excluded.weak)

    def demand(self, revision: str | None) -> None:
        """Refuse a write whose demands do not hold.

        Raises:
            RevisionMismatchError: `if_match` does not hold.
            PreconditionFailedError: `if_none_match` does not hold.
        """
        if not self.match(revision):
            raise RevisionMismatchError(
                "The item is not at the revision that the request demands. Read it again.", current=revision
            )
        if not self.none_match(revision):
            raise PreconditionFailedError("The item exists in a state that the request excludes.")


UNCONDITIONAL: Final = Conditions()
