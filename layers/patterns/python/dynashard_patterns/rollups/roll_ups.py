"""Roll-ups as a domain declares them: a value that counts, and that can be read."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar

from dynashard.entity import Entity
from dynashard.service import Dynashard
from dynashard_patterns.changes import Consumer
from dynashard_patterns.rollups.counting import Counter
from dynashard_patterns.rollups.declaration import Summing
from dynashard_patterns.rollups.reading import read_roll_ups

E = TypeVar("E", bound=Entity)


class RollUps(Summing[E]):
    """Sums over an entity's items by spans of time, kept exactly in step with the items' creation.

        PLAYS = RollUps(
            name="plays",
            of=Ping,
            at="at",
            into={EpisodePlays: ("minute", "hour", "day"), SeriesPlays: ("month",)},
            add=lambda ping: {"pings": 1, "seconds": ping.seconds},
        )

    The rows are entities too. Their key has the fields `level: Level`, `start: datetime` and `slot: int`, and besides
    them those fields of the items by which they are summed up; every other field is a number that begins with 0, or
    the field of expiry.

    An item counts once, when it is created. Later changes, deletion and expiry of it count nothing.

    Attributes:
        name: keeps these roll-ups apart from others of the same items; never change it.
        of: the entity whose items are summed up; they are only ever added.
        at: its field that says when.
        into: the entities of the rows, each with its levels.
        add: what one item adds, by field of the rows. It depends on the item alone.
        by_time: the index of `of` that lists the items of a tenant by time; its sort key begins with `at`. `check`
            and `repair` need it.
        keep: how long rows of a level are kept after the end of their span; for ever if left out.
        spread: over how many parts writers at one time are spread, from 1 to 50.
    """

    def consumer(self, db: Dynashard) -> Consumer:
        """What counts the items that the table's stream tells of. Cost: as `Counter.handle`."""
        return Consumer(self.name, (self.of,), Counter(db, self).handle)

    def read(
        self,
        db: Dynashard,
        by: Mapping[str, Any],
        *,
        level: str,
        start: datetime,
        end: datetime,
        consistent: bool = False,
    ) -> list[Any]:
        """The sums of one group, span by span.

        Args:
            db: the entities.
            by: the group: all fields of the rows' partition, and those of the sort key that stand before the time. Rows
                that differ in other fields are told one by one.
            level: how long the spans are.
            start: spans that begin from this time on.
            end: spans that begin before this time.
            consistent: see everything that was counted before.

        Returns:
            One row for every span in which something was counted, in the order of their keys, of the entity that the
            level is summed up into; `slot` is 0, and there is no revision.

        Raises:
            InvalidQueryError: an unknown level, a range that is none or too long, or a field that is none of the group.
            InvalidKeyError: a field of the group is missing or cannot be.

        Cost: 1 Query for each shard of the group's partition and every 1 MB; 0.5 read units for 4 KB, about 25 parts, 1
        if consistent.
        """
        return read_roll_ups(self, db, by, level=level, start=start, end=end, consistent=consistent)
