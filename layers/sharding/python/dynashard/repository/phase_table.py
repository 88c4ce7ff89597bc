"""Where a write goes in each phase of a changing shard count, and what a failed condition leads to. Pure.

    phase            creates                         writes over anything        alters a live item
    stable, prepare  at old                          at old                      at old
    move             marker at old, item at new      at old, if it lives there;  at old
                                                     else as a create
    settle           marker at old, item at new      at new, if it lives there;  at new
                                                     else as a create

"At old" demands that no relocation marker is stored there. In the move phase a marker at old sends the write to new;
any other marker means that the view is out of date. In the settle phase, an item that is still live at old is moved to
new first. Keys that do not move are written as if stable. Single writes and transactions both use this table.
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Any, NamedTuple

from dynashard.entity import EntityDefinition, ItemKey
from dynashard.repository.conditions import is_live, is_marker, moved_to
from dynashard.routing import Places, home, settling
from dynashard.topology import Phase

Stored = Mapping[str, Any] | None
"""A stored item or marker; None if nothing is stored, or if its condition did not fail."""


class How(Enum):
    """How a write is sent."""

    DIRECT = auto()
    """To one place, whose answer is final."""
    OVER_LIVE = auto()
    """To one place, over a live item only. If there is none, the write continues elsewhere."""
    WITH_MARKER = auto()
    """In one transaction: a marker at old, the item at new. Both places must be empty."""


class Next(Enum):
    """What follows a failed condition."""

    FOLLOW = auto()
    """The item has moved: write at its new home."""
    HELP = auto()
    """An item is live at old and none at new: move it, then start again."""
    REFRESH = auto()
    """The view is out of date: read the topology, then start again."""
    RESTART = auto()
    """The view has ended, or the item has just been moved: start again."""
    DECIDE = auto()
    """The condition failed because of the item itself, or because there is none, and not because of the phase."""


class Target(NamedTuple):
    """Where a write goes, and how; with a marker, `place` is that of the item."""

    place: str
    how: How


def plan(places: Places, *, creates: bool, followed: bool = False) -> Target:
    """Return where a write goes.

    It `creates` an item if it does nothing else or if no live item was found. It is `followed` if a marker was found
    that leads to the new home, under the same view.
    """
    if followed:
        return Target(places.new, How.DIRECT)
    if not places.moving or places.view.phase in (Phase.STABLE, Phase.PREPARE):
        return Target(places.old, How.DIRECT)
    if creates:
        return Target(places.new, How.WITH_MARKER)
    return Target(places.old if places.view.phase is Phase.MOVE else places.new, How.OVER_LIVE)


class Encountered(NamedTuple):
    """What the failed conditions of a write encountered, by the stored partition keys of the places."""

    places: Places
    at: Mapping[str, Stored]

    @property
    def rival(self) -> Stored:
        """What is stored where the item belongs in this phase."""
        if len(self.at) == 1:
            return next(iter(self.at.values()))
        return self.at[self.places.old if self.places.view.phase is Phase.MOVE else self.places.new]

    def next(self, entity: EntityDefinition[Any], key: ItemKey, *, now: int, helped: bool = False) -> Next:
        """Return what follows while the view lasts; `helped` if that was `HELP`, and nothing lived at the old home.

        Raises `UndecodableItemError` for a damaged marker.
        """
        both, old = len(self.at) > 1, self.at.get(self.places.old)
        # In this resize only the old home gets a marker, and it leads to the new one. Any other belongs to another
        # resize, so this view is out of date.
        marker = old if both else self.rival
        if marker is not None and is_marker(marker):
            target = home(entity, key, moved_to(marker))
            moves = marker is old and self.places.moving and self.places.view.phase is Phase.MOVE
            return Next.FOLLOW if moves and target == self.places.new else Next.REFRESH
        if is_live(self.rival, now):
            return Next.DECIDE
        # If only the new home was asked, nothing is known of the old one, where the mover may not have seen an item.
        if settling(self.places) and not helped and (is_live(old, now) or not both):
            return Next.HELP
        # If both were asked, neither has an item, and yet a condition failed.
        return Next.REFRESH if both else Next.DECIDE
