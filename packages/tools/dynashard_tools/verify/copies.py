"""Checks that materialized copies match their sources."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from dynashard.entity import Entity, EntityDefinition, definition
from dynashard.service import Dynashard
from dynashard.transport.interface import Wire
from dynashard_patterns.copies import Difference, Drift, MaterializedCopies
from dynashard_tools.verify.findings import Change, Finding, Kind, unreadable
from dynashard_tools.verify.parts import Check, Part


@dataclass(frozen=True, slots=True)
class CopiesCheck(Check):
    """Compares all sources with their copies, and all copies with their sources.

    Attributes:
        partition: the sources' logical partition; None for all.

    Cost: as `MaterializedCopies.repair`; without `mend` twice if copies differ.
    """

    part: ClassVar[Part] = Part.COPIES
    repairs: ClassVar[str] = "write copies anew, and delete those whose source is gone"

    db: Dynashard
    declared: MaterializedCopies[Any, Any]
    partition: Mapping[str, Any] | None = None
    mend: bool = False

    def finish(self, advance: Callable[[int], None]) -> Iterator[Finding]:
        """Find copies that differ, sources that have none because they cannot be copied, and rows that do not fit."""
        if self.mend:
            yield from self._compared(advance)
            return
        differs, others = False, list[Finding]()
        for each in self._compared(advance):
            if each.kind is Kind.COPY:
                differs = True
            else:
                others.append(each)
        # A change may still be on its way to its copies, so only the second comparison is reported.
        yield from self._compared(advance) if differs else others

    def _compared(self, advance: Callable[[int], None]) -> Iterator[Finding]:
        source = definition(self.declared.of).name
        for step in (self.declared.repair if self.mend else self.declared.check)(self.db, self.partition):
            advance(step.sources + step.copies)
            for key, drift in step.differing.items():
                yield self._differing(f"{source} {key}", drift)
            for key, reason in step.uncopied.items():
                yield Finding(Kind.UNCOPIED, f"{source} {key}", reason)
            yield from map(unreadable, step.undecodable)

    def _differing(self, where: str, drift: Drift) -> Finding:
        changes = dict(_change(definition(self.declared.copy), each) for each in drift.differences)
        return Finding(Kind.COPY, where, _detail(drift), drift.total, mended=self.mend, changes=changes)


def _change(copy: EntityDefinition[Any], difference: Difference) -> tuple[str, Change]:
    """Return a copy's key, and its attributes before and after a repair: all of them, or those that differ."""
    old, new = (_attributes(copy, each) for each in difference)
    [key, *_] = (copy.key_of(each) for each in difference if each is not None)
    if old is not None and new is not None:
        same = {name for name, value in new.items() if old.get(name) == value}
        old, new = ({name: value for name, value in each.items() if name not in same} for each in (old, new))
    change = Change(*(None if each is None else {"M": each} for each in (old, new)))
    return f"{key.partition} / {key.sort}", change


def _attributes(copy: EntityDefinition[Any], item: Entity | None) -> Wire | None:
    """Return the stored attributes of a copy, without the times that the server sets."""
    if item is None:
        return None
    own = copy.attributes_of(copy.server_fields)
    return {name: value for name, value in copy.encode(item.__dict__).items() if name not in own}


def _detail(drift: Drift) -> str:
    counts = {"missing": drift.missing, "wrong": drift.wrong, "too many": drift.extra}
    return f"copies: {', '.join(f'{number:,} {what}' for what, number in counts.items() if number)}"
