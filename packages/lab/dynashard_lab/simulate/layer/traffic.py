"""Traffic through the layer: operations that arrive at a rate, whatever became of those before, and loads."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from math import inf
from random import Random
from typing import Any, Final

from dynashard.errors import DynashardError, ThrottledError, UnprocessedError
from dynashard.service import Collection
from dynashard_lab.simulate.actors import Actors
from dynashard_lab.simulate.layer.entities import Item, Items
from dynashard_lab.simulate.layer.operations import Caller, Operations
from dynashard_lab.simulate.run import OperationCounts
from dynashard_lab.simulate.scenario import DemandSpec, OperationKind

BATCH: Final = 400
"""Items that a load writes at a time, as `dynashard load` does."""
_IDLE: Final = 1.0
"""Seconds until a rate of 0 is looked at again."""


@dataclass(slots=True)
class Tally:
    """What became of operations; a batch counts as its items.

    Attributes:
        asked: operations that have begun.
        done: those that were acknowledged.
        throttled: those that were refused because of a throttle, which a REST caller sees as 429.
        failed: other refusals, by the name of the error.
        kinds: the same figures for each kind of operation.
    """

    asked: int = 0
    done: int = 0
    throttled: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    kinds: dict[OperationKind, OperationCounts] = field(default_factory=lambda: defaultdict(OperationCounts))

    def begun(self, kind: OperationKind, operations: int = 1) -> None:
        """Count operations that begin."""
        self.asked += operations
        self.kinds[kind].asked += operations

    def ended(self, kind: OperationKind, operations: int = 1) -> None:
        """Count acknowledged operations."""
        self.done += operations
        self.kinds[kind].done += operations

    def refused(self, kind: OperationKind, error: DynashardError, operations: int = 1) -> None:
        """Count refused operations."""
        if isinstance(error, ThrottledError | UnprocessedError):
            self.throttled += operations
            self.kinds[kind].throttled += operations
        else:
            self.failed[type(error).__name__] += operations


class Demand:
    """The traffic of one demand, dealt to all processes in turn; a load calls `on_end` when all is written."""

    def __init__(
        self,
        actors: Actors,
        spec: DemandSpec,
        items: Items,
        callers: Sequence[Caller],
        *,
        tally: Tally,
        random: Random,
        on_end: Callable[[], None],
    ) -> None:
        self._actors = actors
        self._spec = spec
        self._items = items
        self._callers = cycle(callers)
        self._tally = tally
        self._random = random
        self._on_end = on_end
        self.operations = Operations(spec, items, random)
        self._at = 0.0
        self._left = spec.items or 0
        self._loaders = 0
        self.ended: float | None = None
        """When a load had written all items, in seconds."""

    @property
    def loading(self) -> bool:
        """Whether it is a load with an end."""
        return self._spec.items is not None

    @property
    def items(self) -> Items:
        """Its items."""
        return self._items

    def store(self, caller: Caller) -> None:
        """Store the items that exist before the run."""
        for _ in range(self._spec.stored):
            self.operations.send("create", caller)

    def start(self, loaders: int) -> None:
        """Add its actors."""
        if self.loading:
            self._loaders = loaders
            for _ in range(loaders):
                self._actors.spawn(self._load)
        else:
            self._advance()
            self._actors.spawn(self._serve)

    # Operations that arrive.

    def _serve(self) -> None:
        """Begin each operation at its time. Once one has to wait, another actor goes on with the next."""
        while self._at < inf:
            self._actors.sleep(self._at - self._actors.seconds)
            self._advance()
            if not self._actors.with_relief(self._serve, self._operate):
                return

    def _advance(self) -> None:
        """Draw the time of the next arrival: arrivals are independent of each other."""
        while not (rate := self._spec.rate_at(self._at)):
            self._at += _IDLE
        self._at += self._random.expovariate(rate)

    def _operate(self) -> None:
        caller, kind = next(self._callers), self.operations.draw()
        self._tally.begun(kind)
        try:
            self.operations.send(kind, caller)
        except DynashardError as error:
            self._tally.refused(kind, error)
        else:
            self._tally.ended(kind)

    # Loads.

    def _load(self) -> None:
        caller = next(self._callers)
        for batch in self._batches(caller):
            left = batch
            while left:
                left = self._write(caller.collection, left)
        self._loaders -= 1
        if not self._loaders:
            self.ended = self._actors.seconds
            self._on_end()

    def _write(self, collection: Collection[Any], batch: list[Item]) -> list[Item]:
        """Write a batch, and return what could not be written in time."""
        self._tally.begun("create", len(batch))
        unprocessed: set[Any] = set()
        try:
            collection.batch_write(put=batch, whole=True)
        except UnprocessedError as error:
            unprocessed = {key["id"] for key in error.keys}
            self._tally.refused("create", error, len(unprocessed))
        left = []
        for item in batch:
            if item.id in unprocessed:
                left.append(item)
            else:
                self.operations.acknowledge(item)
        self._tally.ended("create", len(batch) - len(left))
        return left

    def _batches(self, caller: Caller) -> Iterator[list[Item]]:
        while self._left > 0:
            size = min(BATCH, self._left)
            self._left -= size
            yield [self.operations.new_item(caller) for _ in range(size)]
