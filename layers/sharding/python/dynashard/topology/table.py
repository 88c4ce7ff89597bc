"""The topology table: read consistently, changed only by whoever has seen the latest."""

from collections.abc import Iterator, Sequence
from typing import Final

from dynashard.errors import (
    ConditionFailedError,
    EngineUnavailableError,
    TopologyChangedError,
    TransactionCanceledError,
    TransactionConflictError,
)
from dynashard.schema import TOPOLOGY_COUNT, TOPOLOGY_KEY, TOPOLOGY_UPDATED
from dynashard.topology.records import Record, decode, encode
from dynashard.transport.interface import Transport, Wire

_ROUNDS: Final = 5
_BATCH: Final = 100


class TopologyTable:
    """Records of the topology by key. Safe to share between threads.

    Args:
        transport: the wire.
        table: the table's name.
    """

    def __init__(self, transport: Transport, table: str) -> None:
        self._transport = transport
        self._table = table

    def read(self, keys: Sequence[str]) -> dict[str, Record]:
        """The records with these keys that exist, read consistently.

        Raises:
            EngineUnavailableError: DynamoDB left some unread time and again.

        Cost: 1 round trip for 100 keys, 1 read unit a key.
        """
        found: dict[str, Record] = {}
        waiting = [{TOPOLOGY_KEY: {"S": key}} for key in dict.fromkeys(keys)]
        for _ in range(_ROUNDS + len(waiting) // _BATCH):
            if not waiting:
                return found
            asked, waiting = waiting[:_BATCH], waiting[_BATCH:]
            request = {"RequestItems": {self._table: {"Keys": asked, "ConsistentRead": True}}}
            answer = self._transport.call("BatchGetItem", request)
            for wire in answer.get("Responses", {}).get(self._table, ()):
                record = decode(wire)
                found[record.key] = record
            waiting += answer.get("UnprocessedKeys", {}).get(self._table, {}).get("Keys", ())
        if waiting:
            raise EngineUnavailableError("DynamoDB leaves the topology unread. Try again.", operation="BatchGetItem")
        return found

    def find(self, key: str) -> Record | None:
        """The record with this key. Cost: 1 round trip, 1 read unit."""
        return self.read([key]).get(key)

    def found(self, record: Record) -> Record:
        """Put the first record of a key; the one that stands there if somebody else was first.

        Cost: 1 round trip, 1 write unit.
        """
        request: Wire = {
            "TableName": self._table,
            "Item": encode(record),
            "ConditionExpression": "attribute_not_exists(#key)",
            "ExpressionAttributeNames": {"#key": TOPOLOGY_KEY},
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        try:
            self._transport.call("PutItem", request)
        except ConditionFailedError as failed:
            if failed.item is None:
                raise
            return decode(failed.item)
        return record

    def save(self, *changes: tuple[Record | None, Record]) -> None:
        """Put changed records in place of those that were read (None: of none), all or nothing.

        Raises:
            TopologyChangedError: one of them was changed by somebody else meanwhile, or is just being changed.
                Nothing was written.

        Cost: 1 round trip; 1 write unit for one record, 2 each for several.
        """
        puts = [self._put(was, new) for was, new in changes]
        try:
            if len(puts) == 1:
                self._transport.call("PutItem", puts[0])
            else:
                self._transport.call("TransactWriteItems", {"TransactItems": [{"Put": put} for put in puts]})
        except (ConditionFailedError, TransactionCanceledError) as error:
            # A write whose answer was lost is sent again, and then stands in its own way.
            now = self.read([new.key for _, new in changes])
            if all(now.get(new.key) == new for _, new in changes):
                return
            keys = ", ".join(new.key for _, new in changes)
            raise TopologyChangedError(f"the topology of {keys} was changed meanwhile; look again") from error
        except TransactionConflictError as error:
            raise TopologyChangedError("the topology is just being changed by somebody else; look again") from error

    def own(self, family: str) -> Iterator[Record]:
        """The records of single logical partitions and of indexes of a family.

        Cost: a Scan of the topology table: 0.5 read units for every 4 KB of it, a round trip for every 1 MB.
        """
        request: Wire = {
            "TableName": self._table,
            "ConsistentRead": True,
            "FilterExpression": "begins_with(#key, :partition) OR begins_with(#key, :index)",
            "ExpressionAttributeNames": {"#key": TOPOLOGY_KEY},
            "ExpressionAttributeValues": {":partition": {"S": f"{family}:"}, ":index": {"S": f"{family}|"}},
        }
        while True:
            answer = self._transport.call("Scan", request)
            for wire in answer["Items"]:
                # The local engine's `begins_with` ignores case.
                if wire[TOPOLOGY_KEY]["S"].startswith((f"{family}:", f"{family}|")) and TOPOLOGY_COUNT in wire:
                    yield decode(wire)
            if "LastEvaluatedKey" not in answer:
                return
            request = {**request, "ExclusiveStartKey": answer["LastEvaluatedKey"]}

    def _put(self, was: Record | None, new: Record) -> Wire:
        put: Wire = {"TableName": self._table, "Item": encode(new)}
        if was is None:
            put["ConditionExpression"] = "attribute_not_exists(#key)"
            put["ExpressionAttributeNames"] = {"#key": TOPOLOGY_KEY}
        elif was.updated:
            put["ConditionExpression"] = "#updated = :was"
            put["ExpressionAttributeNames"] = {"#updated": TOPOLOGY_UPDATED}
            put["ExpressionAttributeValues"] = {":was": {"N": str(was.updated)}}
        else:
            put["ConditionExpression"] = "attribute_exists(#key) AND attribute_not_exists(#updated)"
            put["ExpressionAttributeNames"] = {"#key": TOPOLOGY_KEY, "#updated": TOPOLOGY_UPDATED}
        return put
