"""The ETL itself: a stream of items in, conditional changes out."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, Final, Generic, TypeVar

from dynashard import Collection, Entity
from dynashard.errors import NotFoundError, RevisionMismatchError
from tools.etl.mapping import Change, changed_fields, named
from tools.failure import CommandError, CommandInterruptedError

BATCH: Final = 400
"""Items that are held at a time besides those that are being read."""
LANES: Final = 16
"""Changes that are under way at a time."""
ATTEMPTS: Final = 10

E = TypeVar("E", bound=Entity)


@dataclass(slots=True)
class Tally:
    """How far an ETL has come.

    Attributes:
        read: items read.
        changed: items changed, or that would be.
        unchanged: items whose map wants nothing.
        gone: items that somebody deleted between reading and writing.
        again: times that somebody changed an item in between, so that it was read and mapped again.
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

    An item is changed only if it still is as it was read; otherwise it is read and mapped again. So nobody's change is
    lost, and an ETL that ended early is simply run again: what is done is unchanged the second time.

    Attributes:
        items: where they live.
        change: the map.
        workers: shards that are read at a time.
        dry_run: map, but write nothing.
        advance: told after every batch.
    """

    items: Collection[E]
    change: Change
    workers: int = 4
    dry_run: bool = False
    advance: Callable[[Tally], None] = lambda _tally: None

    def run(self, partition: Mapping[str, Any]) -> Tally:
        """Map all items of a logical partition.

        Raises:
            CommandError: the map fails, or an item changes too often; what was changed before stays.
            CommandInterruptedError: Ctrl-C; as before.
            InvalidValueError: a field does not take what the map gives it.

        Cost: what reading all items costs; 1 write unit for each KB of a changed item and index it stands in.
        Memory for `BATCH` items and two answers a worker.
        """
        tally = Tally()
        try:
            self._run(partition, tally)
        except KeyboardInterrupt:
            told = "nothing is changed" if self.dry_run else f"at least {tally.changed:,} items are changed"
            raise CommandInterruptedError(f"interrupted; {told}: run it again for the rest") from None
        return tally

    def _run(self, partition: Mapping[str, Any], tally: Tally) -> None:
        with ThreadPoolExecutor(LANES) as pool:
            for batch in _batches(self.items.scan(partition, workers=self.workers)):
                for done in [future.result() for future in self._begun(pool, batch)]:
                    for name, number in done.as_dict().items():
                        setattr(tally, name, getattr(tally, name) + number)
                self.advance(tally)

    def _begun(self, pool: ThreadPoolExecutor, batch: list[E]) -> "list[Future[Tally]]":
        # Each with this thread's context, so that its meters see what is consumed.
        return [pool.submit(copy_context().run, self._one, item) for item in batch]

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


def _batches(items: Iterator[E]) -> Iterator[list[E]]:
    while batch := list(islice(items, BATCH)):
        yield batch
