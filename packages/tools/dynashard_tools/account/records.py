"""Durable records of purges, which a restore of the tables does not undo.

They are in the idempotency table, the only one that is not restored: one row for each day, with an attribute for each
purge. Rows expire after the last moment to which the tables could be restored.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from secrets import token_hex
from typing import Any, Final

from msgspec import DecodeError
from msgspec.json import Decoder, encode

from dynashard.errors import UndecodableItemError
from dynashard.schema import IDEMPOTENCY_KEY, IDEMPOTENCY_TTL
from dynashard.transport.interface import Call, Transport
from dynashard_tools.account.tenant_data import is_tenant

RECOVERY: Final = timedelta(days=35)
"""How far back point-in-time recovery reaches."""
KEPT: Final = RECOVERY + timedelta(days=2)
SKEW: Final = timedelta(minutes=5)
"""How much earlier a purge may have ended by the clock of its machine: it is repeated all the same."""
_DAY: Final = "purges#{:%Y-%m-%d}"
"""Key of a day's row. Keys of idempotency records have no `#`."""
_ATTRIBUTE: Final = "purge-"


@dataclass(frozen=True, slots=True)
class PurgeRecord:
    """A purge.

    Attributes:
        id: its own.
        tenant: whose data it removes.
        table: the table that it works on.
        began: in epoch seconds.
        ended: in epoch seconds; None if it was interrupted, or still runs.
        items: how many stored items it has removed.
    """

    id: str
    tenant: str
    table: str
    began: float
    ended: float | None = None
    items: int = 0


_RECORD: Final = Decoder(PurgeRecord)


class PurgeRecords:
    """The records of one backend's purges.

    Args:
        transport: the way to DynamoDB.
        table: the idempotency table.
        clock: the time in epoch seconds.
    """

    def __init__(self, transport: Transport, table: str, clock: Callable[[], float]) -> None:
        self._transport = transport
        self._table = table
        self._clock = clock

    def begin(self, tenant: str, table: str) -> PurgeRecord:
        """Record that a purge begins, before it removes anything. Cost: 1 write unit."""
        return self._written(PurgeRecord(token_hex(8), tenant, table, self._clock()))

    def end(self, record: PurgeRecord, items: int) -> PurgeRecord:
        """Record that a purge is complete. Cost: 1 write unit."""
        return self._written(replace(record, ended=self._clock(), items=items))

    def all(self) -> list[PurgeRecord]:
        """Return all purges that are kept, oldest first. Cost: 1 read unit for each of 37 days, 1 round trip.

        Raises `UndecodableItemError` if a record is damaged: a restore would bring back what its purge removed.
        """
        today = datetime.fromtimestamp(self._clock(), UTC)
        days = [_DAY.format(today - timedelta(days=back)) for back in range(-1, KEPT.days + 1)]
        calls = [
            Call("GetItem", {"TableName": self._table, "Key": {IDEMPOTENCY_KEY: {"S": day}}, "ConsistentRead": True})
            for day in days
        ]
        rows = (answer.get("Item", {}) for answer in self._transport.call_all(calls, concurrency=8))
        return sorted(
            (record for row in rows for record in _records(row)), key=lambda record: (record.began, record.tenant)
        )

    def undone_by(self, moment: datetime) -> list[PurgeRecord]:
        """Return the purges that tables of a moment lack, at least in part. Cost: as `all`."""
        since = (moment - SKEW).timestamp()
        return [record for record in self.all() if record.ended is None or record.ended >= since]

    def _written(self, record: PurgeRecord) -> PurgeRecord:
        day = datetime.fromtimestamp(record.began, UTC)
        values = {":record": {"S": encode(record).decode()}, ":until": {"N": str(int((day + KEPT).timestamp()))}}
        self._transport.call(
            "UpdateItem",
            {
                "TableName": self._table,
                "Key": {IDEMPOTENCY_KEY: {"S": _DAY.format(day)}},
                "UpdateExpression": "SET #record = :record, #ttl = :until",
                "ExpressionAttributeNames": {"#record": f"{_ATTRIBUTE}{record.id}", "#ttl": IDEMPOTENCY_TTL},
                "ExpressionAttributeValues": values,
            },
        )
        return record


def _records(row: dict[str, Any]) -> Iterator[PurgeRecord]:
    for name, value in row.items():
        if name.startswith(_ATTRIBUTE):
            try:
                # Another version may keep more about a purge.
                yield _RECORD.decode(value["S"])
            except (DecodeError, KeyError) as error:
                cure = "find out whose purge began that day, purge that tenant again, and remove the attribute"
                where = f"{name} of {row[IDEMPOTENCY_KEY]['S']} in the idempotency table"
                raise UndecodableItemError(f"the record of a purge, {where}, is damaged: {cure}") from error


def tenants_to_repeat(records: list[PurgeRecord], table: str) -> list[str]:
    """Return the tenants whose purges a table lacks, of the purges that it was restored without.

    Those that were purged there since, and completely, are left out. So are names that no tenant has: an earlier
    release has recorded purges that it refused.
    """
    elsewhere: dict[str, float] = {}
    for record in records:
        if record.table != table and is_tenant(record.tenant):
            elsewhere[record.tenant] = max(elsewhere.get(record.tenant, 0.0), record.began)
    repeated = {
        record.tenant
        for record in records
        if record.table == table and record.ended is not None and record.began >= elsewhere.get(record.tenant, 0.0)
    }
    return sorted(set(elsewhere) - repeated)
