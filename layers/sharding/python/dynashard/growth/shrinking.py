"""When shard counts are halved by themselves: after a long quiet time, if their shards can become empty."""

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

from dynashard.entity import EntityDefinition
from dynashard.growth.requester import Requester
from dynashard.growth.settings import GrowthSettings, LoadSource
from dynashard.growth.terms import Report, RequestCount
from dynashard.placement import PARTS
from dynashard.resharding.scope import Scope
from dynashard.topology import Record, family_of


class Shrinking:
    """Halves counts that were quiet.

    Args:
        request: requests a resize.
        clock: returns the time in epoch seconds.
        settings: how long a count must be quiet.
        load: knows whether the table was throttled; None if nothing does, and the records alone decide.
        report: receives events.
    """

    def __init__(
        self,
        request: RequestCount,
        *,
        clock: Callable[[], float],
        settings: GrowthSettings,
        load: LoadSource | None = None,
        report: Callable[[Report], None] = lambda _: None,
    ) -> None:
        self._requester = Requester(request, settings.mode, report)
        self._clock = clock
        self._settings = settings
        self._load = load

    def shrink(self, records: Iterable[Record], entities: Iterable[EntityDefinition[Any]]) -> list[Report]:
        """Request half of each count that was unchanged for the quiet time, but no less than is declared.

        Of an index that has grown for new entries alone, the same count is requested first, which rewrites the older
        ones.

        Counts of whole families, counts that an operator has set, and counts of random placement whose items do not
        expire are left alone. A count that grew again after it was halved must be quiet for twice as long before the
        next time, and so on.

        Returns:
            The reports, in the order of the records.

        Cost: a conditional update for each resize, and a question about throttles for the table and each index.
        """
        if self._settings.mode == "off":
            return []
        known = list(entities)
        calm: dict[str | None, bool] = {}
        reports = []
        for record in records:
            scope = Scope.of_key(record.key, known)
            if scope.whole_family or not _may_shrink(scope, record, known) or not self._quiet(record):
                continue
            slot = scope.index.slot if scope.index else None
            if slot not in calm:
                calm[slot] = self._calm(slot)
            if calm[slot]:
                # Older entries of an index that has grown come to their places first.
                target = record.count if record.former else record.count // 2
                reports.append(self._requester.resize(scope, target, "quiet for long"))
        return reports

    def _quiet(self, record: Record) -> bool:
        """Whether a count was unchanged for the quiet time, which doubles each time that it grew again."""
        needed: float = self._settings.quiet_seconds * 2 ** _regrown(record)
        return self._clock() - float(record.updated) >= needed

    def _calm(self, slot: str | None) -> bool:
        """Whether the table or index was never throttled: the record of a partition at its ceiling is quiet too."""
        return self._load is None or self._load.calm(self._settings.quiet_seconds, index=slot) is True


def _may_shrink(scope: Scope, record: Record, entities: Iterable[EntityDefinition[Any]]) -> bool:
    """Whether a count may be halved by itself, however quiet it is.

    With random placement no item moves: the shards that writers leave must become empty. So every entity of the family
    must let its items expire; else the resize would wait for ever, and writers would have fewer shards meanwhile. The
    parts of a value only become more.
    """
    shards = scope.shards
    if shards is None or shards.rule is PARTS or not shards.rule.powers_of_two or record.count // 2 < shards.count:
        return False
    if record.busy or record.resize.get("cause") == "operator" or scope.time is not None:
        return False
    family = [each for each in entities if family_of(each) == scope.family]
    return scope.moves or all(each.expires is not None for each in family)


def _regrown(record: Record) -> int:
    """How often a record's count grew again after it was halved."""
    entries = sorted((int(epoch), int(count)) for epoch, _, count in (each.partition(":") for each in record.history))
    counts = [count for _, count in entries]
    grown = sum(1 for old, new in pairwise(counts) if new == record.count and old < new)
    return max(0, grown - 1)
