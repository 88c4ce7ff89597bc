"""By how much copies differ from what their sources say."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_MOST_REASONS: Final = 20


@dataclass(frozen=True, slots=True)
class Drift:
    """How many copies differ from their sources.

    Attributes:
        missing: copies that there should be.
        wrong: copies that say something else than their source.
        extra: copies that there should not be, those of deleted sources included.
    """

    missing: int = 0
    wrong: int = 0
    extra: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.missing + self.wrong + self.extra

    def __add__(self, other: "Drift") -> "Drift":
        return Drift(self.missing + other.missing, self.wrong + other.wrong, self.extra + other.extra)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a look over sources and copies has come.

    Attributes:
        sources: sources looked at.
        copies: stored copies looked at, for such as have no source.
        drift: the drift that was found, and repaired if that was requested.
        unfit: sources that no copies can be made of, and stored sources and copies that are undecodable.
        reasons: why, for the first of them.
    """

    sources: int = 0
    copies: int = 0
    drift: Drift = Drift()
    unfit: int = 0
    reasons: tuple[str, ...] = ()

    def over(self, looks: Sequence[Drift | str], *, sources: int = 0, copies: int = 0) -> "Progress":
        """The same after more looks; texts are reasons why a source or a copy is unfit."""
        unfit = [each for each in looks if isinstance(each, str)]
        return Progress(
            self.sources + sources,
            self.copies + copies,
            sum((each for each in looks if isinstance(each, Drift)), self.drift),
            self.unfit + len(unfit),
            (*self.reasons, *unfit)[:_MOST_REASONS],
        )
