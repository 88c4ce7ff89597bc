"""By how much copies differ from what their sources say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from dynashard.entity import Entity, Undecodable

_SHOWN: Final = 100


class Difference(NamedTuple):
    """A copy that differs: as it is stored, and as its source says; None for an absent one."""

    stored: Entity | None
    wanted: Entity | None


@dataclass(frozen=True, slots=True)
class Drift:
    """How many copies differ from their sources.

    Attributes:
        missing: copies that there should be.
        wrong: copies that say something else than their source.
        extra: copies that there should not be, those of deleted sources included.
        differences: the first hundred of all these copies.
    """

    missing: int = 0
    wrong: int = 0
    extra: int = 0
    differences: tuple[Difference, ...] = field(default=(), compare=False)

    @classmethod
    def of(cls, differences: Sequence[Difference]) -> "Drift":
        """Return the drift of copies that differ."""
        missing = sum(each.stored is None for each in differences)
        extra = sum(each.wanted is None for each in differences)
        return cls(missing, len(differences) - missing - extra, extra, tuple(differences[:_SHOWN]))

    @property
    def total(self) -> int:
        """All of them."""
        return self.missing + self.wrong + self.extra

    def __add__(self, other: "Drift") -> "Drift":
        differences = (*self.differences, *other.differences)[:_SHOWN]
        return Drift(self.missing + other.missing, self.wrong + other.wrong, self.extra + other.extra, differences)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a comparison of sources and copies has come.

    Attributes:
        sources: sources that were compared so far.
        copies: stored copies that were checked for a source so far.
        drift: the drift that was found so far, and repaired if that was requested.
        unfit: sources and copies that were left out so far: no copies can be made of a source, or a row does not fit.
        differing: sources of the last step whose copies differ, by their keys as text.
        uncopied: sources of the last step that no copies can be made of, by their keys as text: why.
        undecodable: stored sources and copies of the last step that do not fit their declarations.
    """

    sources: int = 0
    copies: int = 0
    drift: Drift = Drift()
    unfit: int = 0
    differing: Mapping[str, Drift] = field(default_factory=dict)
    uncopied: Mapping[str, str] = field(default_factory=dict)
    undecodable: Sequence[Undecodable] = ()

    def over(
        self,
        looks: Mapping[str, Drift | str],
        undecodable: Sequence[Undecodable],
        *,
        sources: int = 0,
        copies: int = 0,
    ) -> "Progress":
        """Return the progress after one more step.

        Args:
            looks: by the keys of sources as text, how their copies differ, or why there cannot be any.
            undecodable: the rows of the step that do not fit.
            sources: how many sources the step has compared.
            copies: how many copies it has checked.
        """
        differing = {key: each for key, each in looks.items() if isinstance(each, Drift) and each.total}
        uncopied = {key: each for key, each in looks.items() if isinstance(each, str)}
        return Progress(
            self.sources + sources,
            self.copies + copies,
            sum(differing.values(), self.drift),
            self.unfit + len(uncopied) + len(undecodable),
            differing,
            uncopied,
            undecodable,
        )
