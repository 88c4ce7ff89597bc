"""Run a schedule of epochs to its end, and check all answers, all placements, and the stored items."""

from functools import partial
from math import inf
from random import Random
from typing import Final

from dynashard import definition
from dynashard.routing import home
from dynashard.schema import PK
from dynashard.topology.epochs import epochs_of
from dynashard.topology.records import Record
from dynashard_checks.schedules.clients import Client
from dynashard_checks.schedules.database import Database, Faults
from dynashard_checks.schedules.entities import TENANT
from dynashard_checks.schedules.epochs.clients import TimedClient
from dynashard_checks.schedules.epochs.database import EpochDatabase, RecordFaults
from dynashard_checks.schedules.epochs.growing import Growing, records_of
from dynashard_checks.schedules.epochs.keys import Beginnings
from dynashard_checks.schedules.epochs.plan import Clock, EpochPlan, planned_epochs
from dynashard_checks.schedules.epochs.truth import Placements
from dynashard_checks.schedules.late import LateFaults
from dynashard_checks.schedules.processes import Process
from dynashard_checks.schedules.schedule import Outcome, Schedule
from dynashard_checks.schedules.scheduler import Actor, AnomalyError, Scheduler
from dynashard_checks.schedules.wire import LeanWire

RIGHT: Final = Clock()
_HOPS: Final = (0.3, 1.0, 5.0)
"""By how many seconds the clock moves between two requests of an operation."""


class EpochSchedule(Schedule):
    """A planned schedule of epochs on an engine; arguments as of `Schedule`."""

    def __init__(self, wire: LeanWire, plan: EpochPlan, trace: list[str] | None = None) -> None:
        self._epochs = plan
        self._placements = Placements()
        self._beginnings = Beginnings()
        super().__init__(wire, plan, trace)
        self._growing = Growing(self._epoch_database, plan, self._kills)

    def _new_scheduler(self, chance: Random) -> Scheduler:
        # A place that was computed under a view stays right however long a request takes, so nothing bounds its time.
        return Scheduler(chance, operation=inf, ticked=self._tick, hops=_HOPS, late=_HOPS[-1])

    def _new_database(self, chance: Random) -> Database:
        plan = self._epochs
        self._epoch_database = EpochDatabase(
            self._wire,
            self._scheduler,
            self._history,
            (LateFaults if plan.late else Faults)(chance, plan.fault_rate),
            record_faults=RecordFaults(
                Random(plan.seed ^ 0xFA18),
                0.8 if plan.overtaken else plan.controller_fault_rate,
                overtaken=plan.overtaken,
            ),
            placements=self._placements,
            beginnings=self._beginnings,
        )
        return self._epoch_database

    def _new_client(self, actor: Actor, clock: Clock = RIGHT) -> Client:
        process = Process(self._scheduler, clock.off, clock.dated)
        return TimedClient(self._traffic, actor, process, self._placements, self._beginnings, offs=clock.set)

    def _start(self) -> None:
        for number, clock in enumerate(self._epochs.of_clients):
            self._scheduler.spawn(f"client{number}", partial(self._run_client, clock))
        self._growing.start()

    def _run_client(self, clock: Clock, actor: Actor) -> None:
        self._new_client(actor, clock).run(self._plan.bursts, self._growing)

    # Final checks.

    def _check_answers(self) -> None:
        super()._check_answers()
        if self._placements.wrong:
            raise AnomalyError("; ".join(self._placements.wrong[:3]))

    def _check_records(self) -> int:
        """Check that no resize is under way any more, except paused ones, and return the last count."""
        for record in self._records():
            # A request that is late may begin a resize that nobody carries out any more.
            late = self._epochs.overtaken or self._epochs.controller_fault_rate > 0
            if record.target is not None and not record.resize.get("paused") and not late:
                raise AnomalyError(f"a resize has not ended: {record}")
        return self._records()[0].count

    def _check_places(self, final: int) -> None:
        """Check that each live key is in the shard of its epoch."""
        del final
        record, entity = self._records()[0], definition(self._plan.model)
        # No key was placed by an epoch that is pending still, or it would be void.
        epochs = epochs_of(record.key, tuple(each for each in record.epochs if each.settled))
        for key in self._history.all_keys():
            for item in self._history.live(key):
                count = record.epochs[0].count if record.epochs else record.count
                if epochs is not None:
                    count = epochs.count_of(key)
                place = home(entity, entity.key_of({"tenant": TENANT, "id": key}), count)
                if item[PK]["S"] != place:
                    raise AnomalyError(f"{key} is at {item[PK]['S']}, not at {place}")

    def _records(self) -> list[Record]:
        """Return the record that places the items of the partition, and that of all partitions."""
        found = [self._database.record(key) for key in records_of(self._epochs)]
        kept = [record for record in found if record is not None]
        return [kept[0], kept[-1]]


def run_epochs(wire: LeanWire, seed: int, *, shape: str | None = None, trace: list[str] | None = None) -> Outcome:
    """Run the schedule of epochs of a seed.

    Raises:
        AnomalyError: the code under test broke a promise.
    """
    return EpochSchedule(wire, planned_epochs(seed, shape), trace).run()
