"""The topology table: read consistently, changed only by whoever has seen the latest."""

from collections.abc import Iterator, Sequence
from typing import Final

from dynashard.errors import (
    ConditionFailedError,
    OutcomeUnknownError,
    TopologyChangedError,
    TransactionCanceledError,
    TransactionConflictError,
)
from dynashard.schema import TOPOLOGY_COUNT, TOPOLOGY_KEY, TOPOLOGY_UPDATED
from dynashard.topology.records import Record, decode, encode
from dynashard.transport.interface import Call, Resend, Transport, Wire
from dynashard.transport.paging import pages

_BATCH: Final = 100
_TRIES: Final = 5


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
        """The records with these keys that exist, each read consistently.

        Cost: 1 round trip for 100 keys, 1 read unit a key.
        """
        wires: list[Wire] = []
        wanted = [{TOPOLOGY_KEY: {"S": key}} for key in dict.fromkeys(keys)]
        for at in range(0, len(wanted), _BATCH):
            request = {"RequestItems": {self._table: {"Keys": wanted[at : at + _BATCH], "ConsistentRead": True}}}
            answer = self._transport.call("BatchGetItem", request)
            wires += answer.get("Responses", {}).get(self._table, ())
            unread = answer.get("UnprocessedKeys", {}).get(self._table, {}).get("Keys", ())
            wires += [wire for wire in map(self._item, unread) if wire]
        records = map(decode, wires)
        return {record.key: record for record in records}

    def _item(self, key: Wire) -> Wire | None:
        """One record by itself, where DynamoDB left it out of a batch: the transport repeats it with pauses."""
        request = {"TableName": self._table, "Key": key, "ConsistentRead": True}
        wire: Wire | None = self._transport.call("GetItem", request).get("Item")
        return wire

    def find(self, key: str) -> Record | None:
        """The record with this key. Cost: 1 round trip, 1 read unit."""
        return self.read([key]).get(key)

    def create(self, record: Record) -> Record:
        """Put the first record of a key; the one that stands there if somebody else was first.

        Raises:
            TransactionConflictError: others keep changing it.

        Cost: 1 round trip, 1 write unit.
        """
        request: Wire = {
            "TableName": self._table,
            "Item": encode(record),
            "ConditionExpression": "attribute_not_exists(#key)",
            "ExpressionAttributeNames": {"#key": TOPOLOGY_KEY},
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        for left in reversed(range(_TRIES)):
            try:
                # Records are never deleted: once there is one, this request fails however late it comes.
                self._transport.call("PutItem", request, resend=Resend.ALWAYS)
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

    def save(self, *changes: tuple[Record | None, Record]) -> None:
        """Put changed records in place of those that were read (None: of none), all or nothing.

        Raises:
            TopologyChangedError: one of them was changed by somebody else meanwhile, or is just being changed.
                Nothing was written.
            OutcomeUnknownError: no answer came, and the stored records prove nothing.

        Cost: 1 round trip; 1 write unit for one record, 2 each for several.
        """
        puts = [self._put(was, new) for was, new in changes]
        # Each put is on condition of `last_updated` as it was read, which no record ever has twice. So what was lost
        # may be sent again: it fails once it is done, or once anybody has changed the record.
        try:
            if len(puts) == 1:
                self._transport.call("PutItem", puts[0], resend=Resend.ALWAYS)
            else:
                actions: Wire = {"TransactItems": [{"Put": put} for put in puts]}
                self._transport.call("TransactWriteItems", actions, resend=Resend.ALWAYS)
        except OutcomeUnknownError:
            if not self._stands(changes):
                raise
        except (ConditionFailedError, TransactionCanceledError) as error:
            if isinstance(error, TransactionCanceledError) and not error.overtaken:
                raise
            # If the answer of a write was lost and it was sent again, its own first attempt made the condition fail.
            if error.ambiguous and self._stands(changes):
                return
            keys = ", ".join(new.key for _, new in changes)
            if error.ambiguous:
                raise OutcomeUnknownError(
                    f"the topology of {keys} was changed meanwhile, by this request or by somebody else; look again",
                    operation=error.operation,
                ) from error
            raise TopologyChangedError(f"the topology of {keys} was changed meanwhile; look again") from error
        except TransactionConflictError as error:
            raise TopologyChangedError("the topology is just being changed by somebody else; look again") from error

    def _stands(self, changes: Sequence[tuple[Record | None, Record]]) -> bool:
        """Whether the stored records are those that were to be written."""
        now = self.read([new.key for _, new in changes])
        return all(now.get(new.key) == decode(encode(new)) for _, new in changes)

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
        for answer in pages(self._transport, Call("Scan", request)):
            # The controller keeps more than records here.
            yield from (decode(wire) for wire in answer["Items"] if TOPOLOGY_COUNT in wire)

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
            # As good as never: a record that was put by hand.
            put["ConditionExpression"] = (
                "attribute_exists(#key) AND (attribute_not_exists(#updated) OR #updated = :was)"
            )
            put["ExpressionAttributeNames"] = {"#key": TOPOLOGY_KEY, "#updated": TOPOLOGY_UPDATED}
            put["ExpressionAttributeValues"] = {":was": {"N": "0"}}
        return put
