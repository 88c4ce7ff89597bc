"""Schedules of an entity with a unique field that is placed by epochs: its values are kept while the count grows.

A place stays right however late a request is executed, so nothing is stored where no reader finds it.
"""

from typing import Final

from dynashard_checks.schedules.entities import TimedUniqueNote
from dynashard_checks.schedules.epochs.clients import TimedClient
from dynashard_checks.schedules.epochs.plan import Clock, EpochPlan, planned_epochs
from dynashard_checks.schedules.epochs.schedule import RIGHT, EpochSchedule
from dynashard_checks.schedules.processes import Process
from dynashard_checks.schedules.schedule import Outcome
from dynashard_checks.schedules.scheduler import Actor
from dynashard_checks.schedules.unique import UniqueChecks, UniqueClient
from dynashard_checks.schedules.wire import LeanWire

UNIQUE_EPOCHS: Final = "unique epochs"
"""The kind of these schedules."""


class TimedUniqueClient(UniqueClient, TimedClient):
    """A client whose items have one of few values, and keys with times."""

    def _do_batch_write(self) -> None:
        if self.process.beyond:
            # A batch has an outcome for each item. Single writes show that all are refused.
            self._do_put()
        else:
            super()._do_batch_write()


class UniqueEpochSchedule(UniqueChecks, EpochSchedule):
    """A schedule of an entity with a unique field that is placed by epochs."""

    def _new_client(self, actor: Actor, clock: Clock = RIGHT) -> TimedUniqueClient:
        process = Process(self._scheduler, clock.off, clock.dated)
        return TimedUniqueClient(self._traffic, actor, process, self._placements, self._beginnings)


def planned_unique_epochs(seed: int) -> EpochPlan:
    """Draw the plan of a seed."""
    return planned_epochs(seed, model=TimedUniqueNote)


def run_unique_epochs(wire: LeanWire, seed: int, *, trace: list[str] | None = None) -> Outcome:
    """Run the schedule of epochs of a seed, with a unique field.

    Raises:
        AnomalyError: the code under test broke a promise.
    """
    return UniqueEpochSchedule(wire, planned_unique_epochs(seed), trace).run()
