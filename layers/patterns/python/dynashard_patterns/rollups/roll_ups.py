"""Roll-ups as a domain declares them: a value that counts, and that can be read."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar

from dynashard.entity import Entity, definition
from dynashard.errors import InvalidQueryError
from dynashard.service import Dynashard
from dynashard_patterns.changes import Consumer
from dynashard_patterns.rollups.counting import ItemCounter
from dynashard_patterns.rollups.declaration import LEVEL, OWN_FIELDS, Summing
from dynashard_patterns.rollups.levels import check_range
from dynashard_patterns.rollups.reading import Rows, level_of, parts_among, sort_text, summed, without_slot

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
        """Return what counts the items that the table's stream reports. Cost: as `ItemCounter.handle`."""
        return Consumer(self.name, (self.of,), ItemCounter(db, self).handle)

    def read(
        self,
        db: Dynashard,
        by: Mapping[str, Any],
        *,
        level: str,
        start: datetime,
        end: datetime,
        consistent: bool = False,
        strict: bool = True,
    ) -> Rows:
        """The sums of one group, span by span.

        Args:
            db: the entities.
            by: the group: all fields of the rows' partition, and those of the sort key before the time. Rows that
                differ in other fields are listed one by one.
            level: how long the spans are.
            start: spans that begin from this time on.
            end: spans that begin before this time.
            consistent: see everything that was counted before.
            strict: refuse, if a stored part of these rows does not fit its entity. Otherwise its row is left out,
                because the sum of the others is not the row's, and `undecodable` of the answer names the part.

        Returns:
            One row for every span in which something was counted, in the order of their keys, of the entity that the
            level is summed up into; `slot` is 0, and there is no revision.

        Raises:
            InvalidQueryError: an unknown level, an empty or too long range, or a field that is not of the group.
            InvalidKeyError: a field of the group is missing or cannot be.
            UndecodableItemError: it is `strict`, and a stored part does not fit its entity.

        Cost: 1 Query for each shard of the group's partition and every 1 MB; 0.5 read units for 4 KB, about 25 parts, 1
        if consistent.
        """
        span = level_of(self, level)
        rows = self.rows_of(span)
        entity = definition(rows)
        check_range(span, start, end)
        given = {**by, LEVEL: span}
        for name in by:
            if name not in entity.key_fields or name in OWN_FIELDS:
                raise InvalidQueryError(f"{name} is not a field by which {entity.name} is summed up", field=name)
        partition = {name: given[name] for name in entity.partition_fields if name in given}
        first, after = sort_text(entity, given, start), sort_text(entity, given, end)
        found = db.collection(rows).scan(partition, start=first, end=after, consistent=consistent)
        wanted = {name: value for name, value in given.items() if name not in partition}
        every = summed(each for each in found if all(getattr(each, name) == value for name, value in wanted.items()))
        undecodable = parts_among(found.undecodable, entity, wanted)
        if strict and undecodable:
            raise undecodable[0].error
        whole = (row for row in every if not parts_among(undecodable, entity, without_slot(row)))
        return Rows(whole, undecodable)
