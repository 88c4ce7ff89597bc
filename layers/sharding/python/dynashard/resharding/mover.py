"""Bringing items to their new homes: marked at the old one and put at the new one, in one transaction each."""

from collections.abc import Sequence
from typing import Final

from dynashard.codec import item_size
from dynashard.errors import DynashardError, TransactionCanceledError
from dynashard.resharding.homes import Homes
from dynashard.resharding.job import Job
from dynashard.resharding.means import Means
from dynashard.resharding.revision import unchanged
from dynashard.schema import EXPIRES_AT, INDEX_SLOTS, MOVED_FROM, MOVED_TO, PK, SK, index_pk, index_sk
from dynashard.transport.interface import Call, Wire

_MOST_BYTES: Final = 400 * 1024
_KEPT: Final = (PK, SK, *(name(slot) for slot in INDEX_SLOTS for name in (index_pk, index_sk)))


class TakenError(Exception):
    """Two live items have one key: the new home of an item that has not moved is taken."""


class Mover:
    """Moves the items of a change.

    What it writes for an item: the mark and the copy, 2 write units each for every 1 KB, and as much again for each
    index the item stands in. An item that has expired for longer than clocks differ is deleted instead.
    """

    counter = "moved"

    def __init__(self, means: Means, job: Job, homes: Homes) -> None:
        self._means = means
        self._change = job.change
        self._homes = homes
        self.reading: Wire = {"ConsistentRead": True, "FilterExpression": f"attribute_not_exists({MOVED_TO})"}

    def concerns(self, item: Wire) -> bool:
        """Whether an item is live or newly expired, unmarked, and has another home after the change."""
        return MOVED_TO not in item and self._homes.new_home(item) is not None

    def write(self, item: Wire) -> Call:
        """The transaction that moves it, or the deletion of one long expired."""
        request = unchanged(self._means.table, item)
        if self._expired(item):
            return Call("DeleteItem", _with_expiry(request, item))
        new = self._homes.new_home(item) or ""
        actions = [self._mark(item, request), {"Put": self._copy(item, new)}]
        return Call("TransactWriteItems", {"TransactItems": actions})

    def failed(self, error: DynashardError, items: Sequence[Wire]) -> None:
        """Raise `TakenError` if an item cannot move because another one lives at its new home."""
        if not isinstance(error, TransactionCanceledError) or len(error.reasons) != 2:  # noqa: PLR2004 - mark and copy
            return
        mark, copy = error.reasons
        if copy.code != "ConditionalCheckFailed" or mark.code != "None":
            return
        for item in items:
            new = self._homes.new_home(item)
            if new is None or (copy.item and (copy.item[PK]["S"], copy.item[SK]) != (new, item[SK])):
                continue
            self._confirm(item, new)

    def _confirm(self, item: Wire, new: str) -> None:
        keys = [{PK: item[PK], SK: item[SK]}, {PK: {"S": new}, SK: item[SK]}]
        gets = [{"Get": {"TableName": self._means.table, "Key": key}} for key in keys]
        answer = self._means.transport.call("TransactGetItems", {"TransactItems": gets})
        old, there = (response.get("Item") for response in answer["Responses"])
        if old and there and MOVED_TO not in old and not (MOVED_TO not in there and self._expired(there, skew=0)):
            raise TakenError(
                f"{item[PK]['S']} / {item[SK]['S']} cannot move to {new}: an item stands there already, which "
                "something other than this layer has put there. Compare both, delete one of them, and resume."
            )

    def _mark(self, item: Wire, request: Wire) -> Wire:
        target = {"N": str(self._change.target)}
        kept = {name: value for name, value in item.items() if name != EXPIRES_AT}
        if item_size({**kept, MOVED_TO: target}) > _MOST_BYTES:
            # An adopted item may leave no room for a mark: its keys are enough to follow it.
            bare = {name: item[name] for name in _KEPT if name in item}
            put = {name: value for name, value in request.items() if name != "Key"}
            return {"Put": {**put, "Item": {**bare, MOVED_TO: target}}}
        values = {**request.get("ExpressionAttributeValues", {}), ":target": target}
        expression = f"SET {MOVED_TO} = :target REMOVE {EXPIRES_AT}"
        return {"Update": {**request, "UpdateExpression": expression, "ExpressionAttributeValues": values}}

    def _copy(self, item: Wire, new: str) -> Wire:
        copy = {**item, PK: {"S": new}, MOVED_FROM: {"N": str(self._change.origin)}}
        if item_size(copy) > _MOST_BYTES:
            del copy[MOVED_FROM]
        now = {"N": str(int(self._means.clock()))}
        return {
            "TableName": self._means.table,
            "Item": copy,
            "ConditionExpression": f"attribute_not_exists({PK}) OR "
            f"(attribute_not_exists({MOVED_TO}) AND {EXPIRES_AT} <= :now)",
            "ExpressionAttributeValues": {":now": now},
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }

    def _expired(self, item: Wire, skew: float | None = None) -> bool:
        expires = item.get(EXPIRES_AT, {}).get("N")
        margin = self._means.timing.skew if skew is None else skew
        return expires is not None and float(expires) <= self._means.clock() - margin


def _with_expiry(request: Wire, item: Wire) -> Wire:
    values = {**request.get("ExpressionAttributeValues", {}), ":expires": item[EXPIRES_AT]}
    condition = f"{request['ConditionExpression']} AND {EXPIRES_AT} = :expires"
    return {**request, "ConditionExpression": condition, "ExpressionAttributeValues": values}
