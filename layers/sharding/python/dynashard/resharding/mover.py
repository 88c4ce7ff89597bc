"""The mover: relocates an item in one transaction, which leaves a marker at its old home and a copy at its new one."""

from dynashard.errors import DynashardError, TransactionCanceledError
from dynashard.repository.conditions import Condition, unchanged
from dynashard.repository.markers import relocation
from dynashard.repository.reservations import held, not_held
from dynashard.resharding.context import Context
from dynashard.resharding.job import Job
from dynashard.resharding.progress import Pass
from dynashard.resharding.relocation import Homes, Work, expired
from dynashard.schema import EXPIRES_AT, MOVED_TO, PK, SK
from dynashard.transport.interface import Call, Wire


class TakenError(Exception):
    """The new home of an item is taken: two live items have one key."""


class Mover(Work):
    """Moves the items of a resize.

    An item costs 2 write units for every 1 KB for the marker and 2 for the copy, and as much again for each index the
    item stands in. An item that has expired for longer than clocks differ is deleted instead.

    An item whose new home is taken stays where it is if it was stored late; otherwise `TakenError` is raised. An item
    that was stored late also stays if its unique values are no longer reserved for it.
    """

    def __init__(self, context: Context, job: Job, homes: Homes) -> None:
        self._context = context
        self._resize = job.resize
        self.counter = "moved" if job.kind is Pass.MOVE else "late"
        self._homes = homes
        self._family = job.family
        self._late = job.kind is not Pass.MOVE
        self._may_stay = job.kind in (Pass.SETTLE, Pass.SWEEP)
        self.reading: Wire = {"ConsistentRead": True, "FilterExpression": f"attribute_not_exists({MOVED_TO})"}

    def concerns(self, item: Wire) -> bool:
        """Whether an item, not a marker, has another home after the resize."""
        return MOVED_TO not in item and self._homes.new_home(item) is not None

    def write(self, item: Wire) -> Call:
        """Return the transaction that moves it, or the deletion of an item that expired long ago."""
        context, resize = self._context, self._resize
        now = context.runtime.clock()
        if expired(item, now - context.timing.skew):
            still = unchanged(item) & Condition(f"{EXPIRES_AT} = :expires", {":expires": item[EXPIRES_AT]})
            return Call("DeleteItem", still.on({"TableName": context.table, "Key": {PK: item[PK], SK: item[SK]}}))
        new = self._homes.new_home(item) or ""
        actions = relocation(context.table, item, new, origin=resize.origin, target=resize.target, now=now)
        # In MOVE every client still writes the item and its reservations together. Of one that was stored late, others
        # may have reserved the values since.
        entity = self._family.member_of(item) if self._late else None
        if entity is not None:
            actions += held(context.table, entity, item)
        return Call("TransactWriteItems", {"TransactItems": actions})

    def stays(self, item: Wire, error: DynashardError) -> bool:
        """Whether an item cannot move because another has its unique value, or lives at its new home.

        Raises `TakenError` if that other one lives at its new home and was not stored late.
        """
        if not isinstance(error, TransactionCanceledError):
            return False
        if not_held(error):
            return True
        marker, copy, *_ = error.reasons
        new = self._homes.new_home(item)
        if marker.refused or not copy.condition_failed or new is None or not self._taken(item, new):
            return False
        if not self._may_stay:
            raise TakenError(
                f"{item[PK]['S']} / {item[SK]['S']} cannot move to {new}: an item stands there already. "
                "Compare both, delete one of them, and resume."
            )
        return True

    def _taken(self, item: Wire, new: str) -> bool:
        """Whether the new home has a marker or an item that has not expired, and this item is still where it was."""
        keys = [{PK: item[PK], SK: item[SK]}, {PK: {"S": new}, SK: item[SK]}]
        gets = [{"Get": {"TableName": self._context.table, "Key": key}} for key in keys]
        answer = self._context.transport.call("TransactGetItems", {"TransactItems": gets})
        old, there = (response.get("Item") for response in answer["Responses"])
        both = old and there and MOVED_TO not in old
        return bool(both) and (MOVED_TO in there or not expired(there, self._context.runtime.clock()))
