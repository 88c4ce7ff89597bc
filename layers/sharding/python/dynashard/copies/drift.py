"""By how much copies differ from what their sources say."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Drift:
    """How many copies are not what they should be.

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
        drift: what was found, and mended if that was asked for.
    """

    sources: int = 0
    copies: int = 0
    drift: Drift = Drift()
