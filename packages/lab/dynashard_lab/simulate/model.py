"""A model of a DynamoDB table with its indexes: what it admits and what it throttles, in virtual time.

It does no I/O and reads no clock: every question carries its time in seconds, which never decreases. So it can stand
between a transport and an engine, under a virtual clock or a real one.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from dynashard.errors import ThrottleReason
from dynashard_lab.simulate.bucket import Bucket
from dynashard_lab.simulate.partitions import Partition
from dynashard_lab.simulate.resource import Resource, Throughput
from dynashard_lab.simulate.settings import Limit, Settings
from dynashard_lab.simulate.throttle import Throttle

TABLE: Final = ""
"""The name of the table itself among its indexes."""
_KEY_RANGE: Final[Limit] = "KeyRangeThroughput"


class Access(NamedTuple):
    """What a request consumes at one stored key.

    Attributes:
        hash_key: the stored partition key, of the table or of the index.
        sort_key: the stored sort key there.
        units: write units, or read units if `reading`.
        reading: whether it is a read.
        target: the name of the index, `TABLE` for the table itself.
        size: the bytes that it adds to what is stored.
    """

    hash_key: str
    sort_key: str
    units: float
    reading: bool = False
    target: str = TABLE
    size: float = 0.0


_Place = tuple[Access, Resource, Throughput, Partition, Bucket]
"""An access, and the limits that it meets. A plain tuple, because one is made for every access."""


class TableModel:
    """A table and its indexes.

    A write to the table takes the units of the table and of each index that it changes. If an index lacks them, the
    write is throttled: that is the back-pressure of an index on its table.
    """

    def __init__(self, table: Resource, indexes: Mapping[str, Resource], settings: Settings) -> None:
        self.settings = settings
        self.resources: dict[str, Resource] = {TABLE: table, **indexes}
        self._known: dict[tuple[ThrottleReason, ...], Throttle] = {}

    def admit(self, now: float, *accesses: Access) -> Throttle | None:
        """Decide about one request: consume its units and return None, or consume nothing and return the throttle."""
        return self.admit_many(now, 1, accesses)[1]

    def admit_many(self, now: float, count: int, accesses: Sequence[Access]) -> tuple[int, Throttle | None]:
        """Decide about `count` equal requests at once.

        Returns:
            how many were admitted, and the throttle of the others.
        """
        places = [self._place(now, access) for access in accesses]
        fitting = count
        if len(places) == 1:
            access, _, throughput, _, bucket = places[0]
            fitting = throughput.bucket.room(now, access.units, bucket.room(now, access.units, count))
        else:
            for bucket, units in _needs(places).items():
                fitting = bucket.room(now, units, fitting) if fitting else 0
        throttle = None if fitting == count else self._refuse(now, count, fitting, places)
        if fitting:
            self._consume(now, fitting, places)
        return fitting, throttle

    def transact(self, now: float, actions: Sequence[Sequence[Access]]) -> list[Throttle | None]:
        """Decide about a transaction, whose actions have several accesses each.

        They cost more than ordinary ones in the table. Indexes follow later, at the ordinary cost.

        Returns:
            for each action None or its throttle. If there is any throttle, nothing was consumed.
        """
        factor = self.settings.transaction_factor
        placed = [
            [
                self._place(now, access if access.target else access._replace(units=access.units * factor))
                for access in each
            ]
            for each in actions
        ]
        needs = _needs([place for each in placed for place in each])
        lacking = {bucket for bucket, units in needs.items() if not bucket.room(now, units)}
        if not lacking:
            for each in placed:
                self._consume(now, 1, each)
        throttled = [[place for place in each if {place[4], place[2].bucket} & lacking] for each in placed]
        return [self._throttle_by(now, 1, each, lacking) if each else None for each in throttled]

    def charge(self, now: float, access: Access) -> None:
        """Consume units without asking, such as those of a Query beyond what was assumed before it ran."""
        self._consume(now, 1, [self._place(now, access)])

    def _place(self, now: float, access: Access) -> _Place:
        resource = self.resources[access.target]
        if now >= resource.next_review:
            resource.review(now)
        partition = resource.partitions.find(access.hash_key, access.sort_key)
        if access.reading:
            return access, resource, resource.reads, partition, partition.reads
        return access, resource, resource.writes, partition, partition.writes

    def _consume(self, now: float, count: int, places: Sequence[_Place]) -> None:
        for access, resource, throughput, partition, bucket in places:
            units = access.units * count
            bucket.level -= units
            throughput.bucket.level -= units
            throughput.consumed += units
            if access.size:
                partition.bytes += access.size * count
                if partition.bytes >= partition.sample_bytes:
                    resource.partitions.written(partition, now, access.hash_key, access.sort_key, access.size * count)

    def _refuse(self, now: float, count: int, fitting: int, places: Sequence[_Place]) -> Throttle:
        """Return the throttle of those of `count` requests that do not fit."""
        if len(places) == 1:
            access, _, throughput, _, bucket = places[0]
            scarce: set[Bucket] = set()
            if bucket.room(now, access.units, count) <= fitting:
                scarce.add(bucket)
            if throughput.bucket.room(now, access.units, count) <= fitting:
                scarce.add(throughput.bucket)
            return self._throttle_by(now, count - fitting, places, scarce)
        needs = _needs(places)
        lacking = {bucket for bucket, units in needs.items() if bucket.room(now, units, count) <= fitting}
        return self._throttle_by(now, count - fitting, places, lacking)

    def _throttle_by(self, now: float, count: int, places: Sequence[_Place], lacking: set[Bucket]) -> Throttle:
        """Return the throttle that names each limit in `lacking`, and note the heat of partitions."""
        reasons: list[ThrottleReason] = []
        for access, resource, throughput, partition, bucket in places:
            if bucket in lacking:
                reasons.append(throughput.exceeded(_KEY_RANGE))
                resource.partitions.throttled(partition, now, access.hash_key, access.sort_key, count)
            if throughput.bucket in lacking:
                reasons.append(throughput.exceeded(throughput.capacity.limit))
        return self._known_throttle(tuple(reasons) if len(reasons) == 1 else tuple(dict.fromkeys(reasons)))

    def _known_throttle(self, reasons: tuple[ThrottleReason, ...]) -> Throttle:
        if reasons not in self._known:
            self._known[reasons] = Throttle(reasons, self.resources[TABLE].provisioned)
        return self._known[reasons]


def _needs(places: Sequence[_Place]) -> dict[Bucket, float]:
    """Return what places take from each bucket together."""
    needs: dict[Bucket, float] = {}
    for access, _, throughput, _, bucket in places:
        needs[bucket] = needs.get(bucket, 0.0) + access.units
        needs[throughput.bucket] = needs.get(throughput.bucket, 0.0) + access.units
    return needs
