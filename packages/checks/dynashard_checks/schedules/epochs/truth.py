"""What must hold of epochs at every moment, besides true answers: a key has one place, and what is settled stays."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dynashard.entity import EntityDefinition, ItemKey
from dynashard.key_clock import DEFAULT_BOUNDS
from dynashard.key_time import KSUID
from dynashard.routing import Places, Router
from dynashard.topology import Epoch, EpochState, Topology, View
from dynashard_checks.schedules.history import Key
from dynashard_checks.schedules.processes import Process


@dataclass
class Placements:
    """Where every key was placed first, and what was found wrong since.

    Attributes:
        wrong: a line for each key that was placed twice, and for each settled epoch that was changed.
        by_later: how many keys were placed by an epoch after the first.
        views: the view that each client has read last, by its name.
    """

    wrong: list[str] = field(default_factory=list)
    by_later: set[Key] = field(default_factory=set)
    views: dict[str, "LastView"] = field(default_factory=dict)
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
        if any(other.startswith(f"{record}:") for other in self._histories):
            # The partition has a record of its own, so that of all partitions no longer places its keys.
            return
        confirmed = {entry.first for entry in history[1:] if entry.state is EpochState.CONFIRMED}
        for first in confirmed - {entry.first for entry in before if entry.state is EpochState.CONFIRMED}:
            self._confirmed(first)

    def _confirmed(self, first: Key) -> None:
        """Check that no client can still place a key of an epoch that is confirmed now, without knowing of it."""
        for client, last in self.views.items():
            epochs = last.view.epochs
            if epochs is not None and any(entry.first == first for entry in epochs.entries):
                continue
            # From then on a key of the epoch can have been written by a process whose clock is ahead.
            written = KSUID.moment_of(first) - DEFAULT_BOUNDS.ahead - DEFAULT_BOUNDS.off
            if last.ends > written:
                self.wrong.append(
                    f"{first} was confirmed, and {client} does not know it until {last.ends - written} s later"
                )

    @property
    def histories(self) -> Mapping[str, tuple[Epoch, ...]]:
        """The histories as they are stored."""
        return self._histories


@dataclass(frozen=True, slots=True)
class LastView:
    """A view that a client has read, and when its lease ends, in true epoch seconds."""

    view: View
    ends: float


class WatchedRouter(Router):
    """A router whose placements are compared with those of all other processes.

    Keys that nobody can have written yet are not compared: those that are further ahead than keys may be read, under a
    view without epochs, and those that a process reads whose clock is off beyond the bound.
    """

    def __init__(self, topology: Topology, process: Process, placements: Placements, name: str) -> None:
        super().__init__(topology, process.key_clock)
        self._process = process
        self._placements = placements
        self._name = name

    def places(self, entity: EntityDefinition[Any], key: ItemKey, view: View | None = None) -> Places:
        """See `Router.places`."""
        found = super().places(entity, key, view)
        if self._process.was_set:
            # Its lease may have been granted by another time.
            self._placements.views.pop(self._name, None)
        else:
            self._placements.views[self._name] = LastView(found.view, found.view.expires - self._process.off)
        if not self._process.beyond and self._process.key_clock.readable(entity, key):
            self._placements.placed(key.sort, found.old, f"{self._name} of {found.shards} shards")
            if found.view.epochs is not None and key.sort >= found.view.epochs.entries[1].first:
                self._placements.by_later.add(key.sort)
        return found
