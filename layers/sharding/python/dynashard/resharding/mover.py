"""Bringing items to their new homes: marked at the old one and put at the new one, in one transaction each."""

from collections.abc import Sequence

from dynashard.errors import DynashardError, TransactionCanceledError
from dynashard.repository.relocation import relocation, unchanged
from dynashard.resharding.context import Context
from dynashard.resharding.job import Job
from dynashard.resharding.progress import Pass
from dynashard.resharding.relocation import Homes, Work
from dynashard.schema import EXPIRES_AT, MOVED_TO, PK, SK
from dynashard.transport.interface import Call, Wire


class TakenError(Exception):
    """Two live items have one key: the new home of an item that has not moved is taken."""


class Mover(Work):
    """Moves the items of a change.

    What it writes for an item: the mark and the copy, 2 write units each for every 1 KB, and as much again for each
    index the item stands in. An item that has expired for longer than clocks differ is deleted instead.

    Args:
        context: tables, time and randomness.
        job: the job.
        homes: which items have another home.
        yields: an item whose new home is taken stays where it is; otherwise that is for somebody to decide.
    """

    def __init__(self, context: Context, job: Job, homes: Homes, *, yields: bool = False) -> None:
        self._context = context
        self._change = job.change
        self.counter = "moved" if job.kind is Pass.MOVE else "late"
        self._homes = homes
        self._yields = yields
        self.reading: Wire = {"ConsistentRead": True, "FilterExpression": f"attribute_not_exists({MOVED_TO})"}

    def concerns(self, item: Wire) -> bool:
        """Whether an item is live or newly expired, unmarked, and has another home after the change."""
        return MOVED_TO not in item and self._homes.new_home(item) is not None

    def write(self, item: Wire) -> Call:
        """The transaction that moves it, or the deletion of one long expired."""
        if self._expired(item):
            return Call("DeleteItem", _with_expiry(unchanged(self._context.table, item), item))
        new = self._homes.new_home(item) or ""
        change = self._change
        actions = relocation(
            self._context.table, item, new, origin=change.origin, target=change.target, now=self._context.clock()
        )
        return Call("TransactWriteItems", {"TransactItems": actions})

    def failed(self, error: DynashardError, items: Sequence[Wire]) -> Sequence[Wire]:
        """The items that cannot move because another one lives at their new home; raises `TakenError` for them."""
        if not isinstance(error, TransactionCanceledError) or len(error.reasons) != 2:  # noqa: PLR2004 - mark and copy
            return ()
        mark, copy = error.reasons
        if mark.refused or not copy.condition_failed:
            return ()
        taken = []
        for item in items:
            new = self._homes.new_home(item)
            if new is None or (copy.item and (copy.item[PK]["S"], copy.item[SK]) != (new, item[SK])):
                continue
            if self._taken(item, new):
                taken.append(item)
                if not self._yields:
                    raise TakenError(
                        f"{item[PK]['S']} / {item[SK]['S']} cannot move to {new}: an item stands there already, which "
                        "something other than this layer has put there. Compare both, delete one of them, and resume."
                    )
        return taken

    def _taken(self, item: Wire, new: str) -> bool:
        """Whether another item than an expired one stands at the new home, and this one is still where it was."""
        keys = [{PK: item[PK], SK: item[SK]}, {PK: {"S": new}, SK: item[SK]}]
        gets = [{"Get": {"TableName": self._context.table, "Key": key}} for key in keys]
        answer = self._context.transport.call("TransactGetItems", {"TransactItems": gets})
        old, there = (response.get("Item") for response in answer["Responses"])
        if not old or not there or MOVED_TO in old:
            return False
        return MOVED_TO in there or not self._expired(there, skew=0)

    def _expired(self, item: Wire, skew: float | None = None) -> bool:
        expires = item.get(EXPIRES_AT, {}).get("N")
        margin = self._context.timing.skew if skew is None else skew
        return expires is not None and float(expires) <= self._context.clock() - margin


def _with_expiry(request: Wire, item: Wire) -> Wire:
    values = {**request.get("ExpressionAttributeValues", {}), ":expires": item[EXPIRES_AT]}
    condition = f"{request['ConditionExpression']} AND {EXPIRES_AT} = :expires"
    return {**request, "ConditionExpression": condition, "ExpressionAttributeValues": values}
