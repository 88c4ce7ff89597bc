"""What a check has found, and how it is printed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

_HEADINGS: Final = ("limit", "needed", "found", "")
UNKNOWN: Final = "not known"


@dataclass(frozen=True, slots=True)
class Finding:
    """A limit with what an environment needs of it.

    Attributes:
        limit: its name.
        needed: what the environment needs.
        found: what the account or the issuer has.
        remedy: what to do if it does not fit; empty if it fits.
    """

    limit: str
    needed: str
    found: str
    remedy: str = ""

    @property
    def fits(self) -> bool:
        """Whether the environment can be deployed as far as this limit goes."""
        return not self.remedy


def lines(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield a table of the findings, and the remedies of those that do not fit."""
    rows = [_HEADINGS, *((each.limit, each.needed, each.found, "ok" if each.fits else "NO") for each in findings)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    for row in rows:
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
    for each in findings:
        if not each.fits:
            yield f"{each.limit}: {each.remedy.removesuffix('.')}."
