"""Checks that the parts of a counter agree with each other, and that readers see all of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from dynashard.entity import EntityDefinition, definition
from dynashard.errors import UndecodableItemError
from dynashard.service import Dynashard
from dynashard.transport.interface import Wire
from dynashard_patterns.counters import Counter, CounterStore, bounds_of
from dynashard_patterns.counters.parts import PartsRead
from dynashard_patterns.counters.shares import Side
from dynashard_tools.verify.findings import Finding, Kind
from dynashard_tools.verify.parts import Check, Part

_CURES: Final[Mapping[Side, str]] = {"value": "add to", "spare": "take from"}


@dataclass
class CountersCheck(Check):
    """Compares the parts of each counter of one kind of which parts are among the items that were read.

    It reports only: which of two numbers that disagree is right, only the owner of the counter knows.

    Cost: as `CounterStore.parts` for each counter.
    """

    part: ClassVar[Part] = Part.COUNTERS
    reads_items: ClassVar[bool] = True

    db: Dynashard
    model: type[Counter]
    _numbers: dict[tuple[Any, ...], set[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._names = definition(self.model).partition_fields

    def note(self, entity: EntityDefinition[Any], item: Wire) -> None:
        """Record the counter of a stored part, and the part's number."""
        if entity.model is self.model:
            fields = entity.decode_fields(item, [*self._names, "part"])
            self._numbers.setdefault(tuple(fields[name] for name in self._names), set()).add(fields["part"])

    def finish(self, advance: Callable[[int], None]) -> Iterator[Finding]:
        """Find counters whose parts disagree, as they are at one moment."""
        counters = CounterStore.on(self.db, self.model)
        for number, (values, seen) in enumerate(self._numbers.items(), 1):
            key = dict(zip(self._names, values, strict=True))
            # A part that does not fit is a finding of its own. Without its numbers, the others prove nothing.
            with suppress(UndecodableItemError):
                for detail in self._faults(counters.parts(key), seen):
                    yield Finding(Kind.COUNTER, self._where(key), detail)
            advance(number)

    def _faults(self, found: PartsRead[Counter], seen: set[int]) -> Iterator[str]:
        if unread := sorted(seen - set(range(len(found.items)))):
            yield f"it has {len(found.items)} parts, so part {unread[0]} is never read: remove it or resize the counter"
        values, spares = found.numbers("value"), found.numbers("spare")
        if off := sum(values) + sum(spares):
            yield f"value and spare of all parts add up to {off:+}, not 0: correct the one that is wrong"
        bounds = bounds_of(self.model)
        both: dict[Side, Sequence[int]] = {"value": values, "spare": spares}
        for side, numbers in both.items():
            for part, room in enumerate(bounds.rooms(side, numbers)):
                if room < 0:
                    below = f"{-room} below its least: {_CURES[side]} the counter"
                    yield f"the {side} of part {part} is {numbers[part]}, {below}"

    def _where(self, key: Mapping[str, Any]) -> str:
        named = ", ".join(f"{name}={value}" for name, value in key.items())
        return f"{definition(self.model).name} {named}"
