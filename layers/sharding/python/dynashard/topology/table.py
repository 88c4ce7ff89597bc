"""The topology table: read consistently, and written only on condition that the latest record was read."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from dynashard.errors import (
    ConditionFailedError,
    OutcomeUnknownError,
    TopologyChangedError,
    TransactionCanceledError,
    TransactionConflictError,
)
from dynashard.schema import TOPOLOGY_COUNT, TOPOLOGY_KEY, TOPOLOGY_UPDATED
from dynashard.topology.epochs import EpochState
from dynashard.topology.records import Record, decode, encode
from dynashard.transport.interface import Call, Resend, Transport, Wire
from dynashard.transport.paging import pages

_BATCH: Final = 100
_TRIES: Final = 5


def read_items(transport: Transport, table: str, keys: Sequence[str]) -> list[Wire]:
    """Return the items of a topology table, read consistently. Cost: 1 round trip for 100 keys, 1 read unit a key."""
    items: list[Wire] = []
    wanted = [{TOPOLOGY_KEY: {"S": key}} for key in dict.fromkeys(keys)]
    for at in range(0, len(wanted), _BATCH):
        request = {"RequestItems": {table: {"Keys": wanted[at : at + _BATCH], "ConsistentRead": True}}}
        answer = transport.call("BatchGetItem", request)
        items += answer.get("Responses", {}).get(table, ())
        # The transport retries a GetItem with backoff, but not a batch from which DynamoDB has left keys out.
        for key in answer.get("UnprocessedKeys", {}).get(table, {}).get("Keys", ()):
            found = transport.call("GetItem", {"TableName": table, "Key": key, "ConsistentRead": True})
            items += [found["Item"]] if "Item" in found else []
    return items


class TopologyTable(Struct, frozen=True):
    """Records of a topology table by key. Safe to share between threads."""

    transport: Transport
    table: str

    def read(self, keys: Sequence[str]) -> dict[str, Record]:
        """Return the records with these keys that exist. Cost: that of `read_items`."""
        records = map(decode, read_items(self.transport, self.table, keys))
        return {record.key: record for record in records}

    def find(self, key: str) -> Record | None:
        """Return the record with this key. Cost: 1 round trip, 1 read unit."""
        return self.read([key]).get(key)

    def create(self, record: Record) -> Record:
        """Put the first record of a key, or return the stored one. Cost: 1 round trip, 1 write unit.

        Raises `TransactionConflictError` if others keep changing it.
        """
        request = {**self._put(None, record), "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        for left in reversed(range(_TRIES)):
            try:
                # Records are never deleted: once there is one, this request fails however late it is executed.
                self.transport.call("PutItem", request, resend=Resend.ALWAYS)
            except ConditionFailedError as failed:
                if failed.item is None:
                    raise
                return decode(failed.item)
            except TransactionConflictError:
                if not left:
                    raise
                continue
            break
        return record

    def save(self, *updates: tuple[Record | None, Record]) -> None:
        """Put changed records in place of those that were read (None if there was none), all or nothing.

        Raises:
            TopologyChangedError: another client has changed one of them, or is just changing it. Nothing was written.
            OutcomeUnknownError: no answer came, and the stored records prove nothing.

        Cost: 1 round trip; 1 write unit for one record, 2 each for several.
        """
        puts = [self._put(was, new) for was, new in updates]
        # Each put is conditional on `last_updated` as it was read, which no record has twice. So it may be sent again:
        # it fails once it was executed, or once another client has changed the record.
        try:
            if len(puts) == 1:
                self.transport.call("PutItem", puts[0], resend=Resend.ALWAYS)
            else:
                actions: Wire = {"TransactItems": [{"Put": put} for put in puts]}
                self.transport.call("TransactWriteItems", actions, resend=Resend.ALWAYS)
        except OutcomeUnknownError:
            if not self._stands(updates):
                raise
        except (ConditionFailedError, TransactionCanceledError) as error:
            if isinstance(error, TransactionCanceledError) and not error.overtaken:
                raise
            # The condition may have failed because of an earlier attempt of this request.
            if error.ambiguous and self._stands(updates):
                return
            keys = ", ".join(new.key for _, new in updates)
            if error.ambiguous:
                raise OutcomeUnknownError(
                    f"the topology of {keys} was changed meanwhile, perhaps by this request; read it again",
                    operation=error.operation,
                ) from error
            raise TopologyChangedError(f"the topology of {keys} was changed meanwhile; read it again") from error
        except TransactionConflictError as error:
            raise TopologyChangedError("another client is changing the topology now; read it again") from error

    def settle(self, key: str, first: str, state: EpochState, *, now: float) -> Record | None:
        """Confirm or void the epoch of a record that begins at `first`, if it is pending; return the record as it is.

        The first request decides for ever. `now` is in epoch seconds.

        Raises:
            OutcomeUnknownError: no answer came; the epoch may have been settled, or may still be.
            TopologyChangedError: others keep changing the record.

        Cost: 1 round trip, 1 read unit; 1 more and 1 write unit if the epoch is pending.
        """
        for left in reversed(range(_TRIES)):
            record = self.find(key)
            changed = record and record.settling(now, first, state)
            if record is None or changed is None:
                return record
            try:
                # On condition that the record is still the one that was read, in which this epoch is pending.
                self.save((record, changed))
            except TopologyChangedError:
                if not left:
                    raise
            else:
                return changed
        raise AssertionError("the last try returns or raises")

    def _stands(self, updates: Sequence[tuple[Record | None, Record]]) -> bool:
        """Whether the stored records are those that were to be written."""
        now = self.read([new.key for _, new in updates])
        return all(now.get(new.key) == decode(encode(new)) for _, new in updates)

    def own(self, family: str) -> Iterator[Record]:
        """Yield the records of single logical partitions and of indexes of a family.

        Cost: a Scan of the topology table: 0.5 read units for every 4 KB of it, a round trip for every 1 MB.
        """
        request: Wire = {
            "TableName": self.table,
            "ConsistentRead": True,
            "FilterExpression": "begins_with(#key, :partition) OR begins_with(#key, :index)",
            "ExpressionAttributeNames": {"#key": TOPOLOGY_KEY},
            "ExpressionAttributeValues": {":partition": {"S": f"{family}:"}, ":index": {"S": f"{family}|"}},
        }
        for answer in pages(self.transport, Call("Scan", request)):
            # The table also holds the progress of movers.
            yield from (decode(wire) for wire in answer["Items"] if TOPOLOGY_COUNT in wire)

    def _put(self, was: Record | None, new: Record) -> Wire:
        condition, names = "attribute_not_exists(#key)", {"#key": TOPOLOGY_KEY}
        values: Wire = {}
        if was is not None:
            condition, values = "#updated = :was", {":was": {"N": str(was.updated)}}
            names = {"#updated": TOPOLOGY_UPDATED}
            if not was.updated:
                # A record that was put by hand.
                condition = f"attribute_exists(#key) AND (attribute_not_exists(#updated) OR {condition})"
                names["#key"] = TOPOLOGY_KEY
        put: Wire = {"TableName": self.table, "Item": encode(new), "ConditionExpression": condition}
        put["ExpressionAttributeNames"] = names
        return {**put, "ExpressionAttributeValues": values} if values else put
