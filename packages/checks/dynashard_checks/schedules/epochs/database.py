"""The database of schedules of epochs: it executes writes of topology records at any later time, or never."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dynashard.key_clock import DEFAULT_BOUNDS
from dynashard.key_time import KSUID
from dynashard.schema import TOPOLOGY_COUNT
from dynashard.topology.records import decode
from dynashard.transport.interface import Wire
from dynashard_checks.schedules.database import Database, Faults
from dynashard_checks.schedules.epochs.keys import Beginnings
from dynashard_checks.schedules.epochs.truth import Placements
from dynashard_checks.schedules.history import Check
from dynashard_checks.schedules.late import LateDatabase, LateFaults
from dynashard_checks.schedules.requests import StoredKey
from dynashard_checks.schedules.scheduler import Actor
from dynashard_checks.schedules.wire import TOPOLOGY

_DELAYS: Final = (0.0, 1.0, 10.0, 20.0, 40.0, 70.0, 130.0, 400.0)
"""How many seconds late a request is executed."""
_JUST_IN_TIME: Final = 0.6
_LEAST_AHEAD: Final = (DEFAULT_BOUNDS.placed, DEFAULT_BOUNDS.placed + 15.0)
"""How many seconds before its epoch begins a publication is executed that is late: it could still be confirmed."""


@dataclass
class RecordFaults(Faults):
    """Draws the faults of writes of topology records: most are executed late, or never.

    If views are to be `overtaken`, only publications are late.
    """

    overtaken: bool = False

    def draw(self, operation: str) -> str:
        """See `Faults.draw`."""
        del operation
        if not self.left or self.random.random() >= self.rate:
            return ""
        self.left -= 1
        if self.overtaken:
            return self.random.choice(("late", "slow"))
        return self.random.choice(("late", "late", "late", "slow", "slow", "slow", "lost", "answer_lost", "throttled"))


@dataclass
class EpochDatabase(LateDatabase):
    """The simulated database of a schedule of epochs.

    Attributes:
        record_faults: draws the faults of writes of topology records.
        placements: gets the histories that are stored.
        beginnings: gets the epochs that anybody has tried to store.
    """

    record_faults: RecordFaults = field(kw_only=True)
    placements: Placements = field(kw_only=True)
    beginnings: Beginnings = field(kw_only=True)

    def _draw_fault(self, operation: str, request: Mapping[str, Any], check: Check | None) -> str:
        """See `Database._draw_fault`."""
        records = _records(request)
        if not records:
            return super()._draw_fault(operation, request, check)
        for record in records:
            for entry in decode(record).epochs[1:] if TOPOLOGY_COUNT in record else ():
                self.beginnings.add(entry.first)
        if self.record_faults.overtaken and not _begins(records):
            return ""
        return self.record_faults.draw(operation)

    def _inject(
        self, fault: str, actor: Actor, operation: str, request: Mapping[str, Any], check: Check | None
    ) -> Wire:
        """See `Database._inject`."""
        if _records(request) or isinstance(self.faults, LateFaults):
            return super()._inject(fault, actor, operation, request, check)
        # What happens to items is bounded in time, so the stored items determine the values of keys.
        return Database._inject(self, fault, actor, operation, request, check)

    def _pass_time(self, actor: Actor, request: Mapping[str, Any]) -> None:
        random = self.record_faults.random
        moments = _begins(_records(request))
        late = moments[0] - random.uniform(*_LEAST_AHEAD) - self.scheduler.now if moments else 0.0
        just = self.record_faults.overtaken or random.random() < _JUST_IN_TIME
        delay = late if late > 0 and just else random.choice(_DELAYS)
        if moments:
            self.beginnings.published.append(self.scheduler.now + delay)
        self.scheduler.sleep(actor, delay)

    def _record(self, key: StoredKey, item: Wire | None, check: Check | None) -> None:
        if key[0] == TOPOLOGY and item is not None and TOPOLOGY_COUNT in item:
            self.placements.stored(key[1], decode(item).epochs)
        super()._record(key, item, check)


def _begins(records: Sequence[Wire]) -> list[float]:
    """Return when pending epochs of records begin."""
    last = [decode(record).epochs[-1:] for record in records if TOPOLOGY_COUNT in record]
    return [KSUID.moment_of(entry.first) for [entry] in filter(None, last) if not entry.settled]


def _records(request: Mapping[str, Any]) -> list[Wire]:
    """Return the topology records that a request puts."""
    puts = [action["Put"] for action in request.get("TransactItems", ()) if "Put" in action] or [request]
    return [put["Item"] for put in puts if "Item" in put and put["TableName"] == TOPOLOGY]
