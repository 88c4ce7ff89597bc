"""Runs an ETL: reads a stream of items, and writes conditional updates."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any, Final, Generic, TypeVar

from dynashard import Collection, Entity
from dynashard.errors import NotFoundError, RevisionMismatchError
from dynashard_tools.counting import plural
from dynashard_tools.etl.mapping import Change, changed_fields, named
from dynashard_tools.failure import CommandError, on_interrupt
from dynashard_tools.left_out import LeftOut

BATCH: Final = 400
"""Items that are held at a time besides those that are being read."""
WORKERS: Final = 16
"""Changes that are written at a time."""
ATTEMPTS: Final = 10

E = TypeVar("E", bound=Entity)


@dataclass(slots=True)
class Tally:
    """How many items were read and dealt with.

    Attributes:
        gone: items that others deleted between reading and writing.
        again: how often an item was read and mapped again because others had changed it.
    """

    read: int = 0
    changed: int = 0
    unchanged: int = 0
    gone: int = 0
    again: int = 0

    def as_dict(self) -> dict[str, int]:
        """As plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Etl(Generic[E]):
    """Reads a logical partition, and changes the items that a map wants otherwise.

    An item is updated only if it is unchanged since it was read; otherwise it is read and mapped again. So no change
    of others is lost. After an early end, run it again: what it has changed is unchanged the second time.
    Items that do not fit are `left_out`.
    """

    items: Collection[E]
    change: Change
    workers: int = 4
    dry_run: bool = False
    left_out: LeftOut = field(default_factory=LeftOut)
    advance: Callable[[Tally], None] = lambda _tally: None

    def run(self, partition: Mapping[str, Any]) -> Tally:
        """Map all items of a logical partition.

        Raises:
            CommandError: the map fails, or an item changes too often; what was changed before stays.
            CommandInterruptedError: Ctrl-C; as before.
            InvalidValueError: a field does not accept what the map returns for it.

        Cost: what reading all items costs; 1 write unit for each KB of a changed item and index it stands in.
        Memory for `BATCH` items and two answers a worker.
        """
        tally, items = Tally(), self.items.scan(partition, workers=self.workers)
        with on_interrupt(lambda: self._progress(tally)), ThreadPoolExecutor(WORKERS) as pool:
            try:
                while batch := list(islice(items, BATCH)):
                    # Each call runs in this thread's context, so that its meters see what is consumed.
                    futures = [pool.submit(copy_context().run, self._one, item) for item in batch]
                    for done in [future.result() for future in futures]:
                        for name, number in done.as_dict().items():
                            setattr(tally, name, getattr(tally, name) + number)
                    self.advance(tally)
            finally:
                self.left_out.add(items.undecodable)
        return tally

    def _progress(self, tally: Tally) -> str:
        changed = "nothing was changed" if self.dry_run else f"at least {plural(tally.changed, 'item')} changed"
        return f"{changed}: run it again for the rest"

    def _one(self, item: E) -> Tally:
        tally, current = Tally(read=1), item
        for _ in range(ATTEMPTS):
            fields = changed_fields(self.change, current)
            if not fields:
                tally.unchanged = 1
                return tally
            try:
                if not self.dry_run:
                    self.items.update(current, set=fields, if_match=current.revision)
            except RevisionMismatchError:
                try:
                    current = self.items.get(current, consistent=True)
                except NotFoundError:
                    tally.gone = 1
                    return tally
                tally.again += 1
                continue
            tally.changed = 1
            return tally
        raise CommandError(f"{named(item)} changes too often to be mapped: run the command again when it is quieter")
