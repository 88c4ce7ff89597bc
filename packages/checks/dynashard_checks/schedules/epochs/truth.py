"""What must hold of epochs at every moment, besides true answers: a key has one place, and what is settled stays."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dynashard.entity import EntityDefinition, ItemKey
from dynashard.routing import Places, Router
from dynashard.topology import Epoch, Topology, View
from dynashard_checks.schedules.history import Key
from dynashard_checks.schedules.processes import Process


@dataclass
class Placements:
    """Where every key was placed first, and what was found wrong since.

    Attributes:
        wrong: a line for each key that was placed twice, and for each settled epoch that was changed.
        by_later: how many keys were placed by an epoch after the first.
    """

    wrong: list[str] = field(default_factory=list)
    by_later: set[Key] = field(default_factory=set)
    _first: dict[Key, tuple[str, str]] = field(default_factory=dict)
    _histories: dict[str, tuple[Epoch, ...]] = field(default_factory=dict)

    def placed(self, key: Key, place: str, by: str) -> None:
        """Add that a key was placed, to be written or read."""
        first, who = self._first.setdefault(key, (place, by))
        if first != place:
            self.wrong.append(f"{key} was placed at {first} by {who}, and at {place} by {by}")

    def stored(self, record: str, history: tuple[Epoch, ...]) -> None:
        """Add the history of a record that was stored."""
        before = self._histories.get(record, ())
        kept = len(history) >= len(before) and all(
            old == new or (not old.settled and (old.first, old.count) == (new.first, new.count))
            for old, new in zip(before, history, strict=False)
        )
        if not kept:
            self.wrong.append(f"the history of {record} was {before} and became {history}")
        self._histories[record] = history

    @property
    def histories(self) -> Mapping[str, tuple[Epoch, ...]]:
        """The histories as they are stored."""
        return self._histories


class WatchedRouter(Router):
    """A router whose placements are compared with those of all other processes.

    One whose clock is off beyond the bound writes nothing, and what it reads may lie in a future without items: then
    only its answers count.
    """

    def __init__(self, topology: Topology, process: Process, placements: Placements, note: Callable[[str], str]) -> None:
        super().__init__(topology, process.key_clock)
        self._process = process
        self._placements = placements
        self._note = note

    def places(self, entity: EntityDefinition[Any], key: ItemKey, view: View | None = None) -> Places:
        """See `Router.places`."""
        found = super().places(entity, key, view)
        if not self._process.beyond:
            self._placements.placed(key.sort, found.old, self._note(f"{found.shards} shards"))
            if found.view.epochs is not None and key.sort >= found.view.epochs.entries[1].first:
                self._placements.by_later.add(key.sort)
        return found
