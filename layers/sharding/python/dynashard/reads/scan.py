"""Reading everything: a bounded pool of workers over the shards, streaming; and counting.

Source of the pool over shards: ConductorOne's 'parallel shard reads'.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from contextvars import copy_context
from dataclasses import dataclass, replace
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Final

from dynashard.errors import InvalidQueryError, ThrottledError
from dynashard.reads.bounds import Bounds
from dynashard.reads.sources import Position, Reading, Source
from dynashard.repository import Patience
from dynashard.transport.interface import Call, Transport, Wire

MAX_WORKERS: Final = 64
_PAGE: Final = 1000
"""Items a Query; with 1 MB a Query as DynamoDB's own bound."""
_POLL_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class Scan:
    """Everything a parallel scan needs.

    Attributes:
        transport: the wire.
        reading: how every source is read.
        sources: what is read.
        patience: how long a worker goes on against throttling.
    """

    transport: Transport
    reading: Reading
    sources: Sequence[Source]
    patience: Patience

    def rows(self, workers: int) -> Iterator[list[Wire]]:
        """The stored items of all sources, a Query's worth at a time, in no order between sources.

        At most two answers a worker are held in memory. Closing the iterator stops the workers.

        Args:
            workers: how many Queries are under way at a time, 1 to 64.

        Raises:
            InvalidQueryError: a number of workers out of range.
            ThrottledError: throttling outlasted `patience`.
        """
        if not 1 <= workers <= MAX_WORKERS:
            raise InvalidQueryError(f"workers is a number from 1 to {MAX_WORKERS}", field="workers")
        crew = _Crew(self, min(workers, len(self.sources)))
        try:
            yield from crew.work()
        finally:
            crew.stop()

    def read(self, call: Call) -> Wire:
        """Send a call, backing off while it is throttled beyond the transport's own retries."""
        pauses = self.patience.pauses()
        while True:
            try:
                return self.transport.call(call.operation, call.request)
            except ThrottledError:
                if next(pauses, None) is None:
                    raise

    def count(self) -> int:
        """How many items there are, counted by DynamoDB.

        Cost: what reading them costs; the answers are small.
        """
        bounds = self.reading.bounds
        total = 0 if bounds.empty else self._counted(bounds)
        if None not in (bounds.low, bounds.high) and bounds.high_open and not bounds.empty:
            # A two-sided condition includes both ends.
            total -= self._counted(Bounds(low=bounds.high, high=bounds.high))
        return total

    def _counted(self, bounds: Bounds) -> int:
        # Forward, whatever the listing's direction: then DynamoDB takes both bounds.
        reading = replace(self.reading, forward=True, fields=None)
        left: list[tuple[Source, Position | None]] = [(source, None) for source in self.sources]
        total = 0
        while left:
            calls = []
            for source, start in left:
                call = reading.call(source, limit=_PAGE, start=start, bounds=bounds)
                request = {**call.request, "Select": "COUNT"}
                del request["Limit"]
                calls.append(Call(call.operation, request))
            answers = self.transport.call_all(calls)
            total += sum(answer["Count"] for answer in answers)
            left = [
                (source, reading.position(answer["LastEvaluatedKey"]))
                for (source, _), answer in zip(left, answers, strict=True)
                if "LastEvaluatedKey" in answer
            ]
        return total


class _Crew:
    """The workers of one scan."""

    def __init__(self, scan: Scan, workers: int) -> None:
        self._scan = scan
        self._sources = deque(scan.sources)
        self._answers: Queue[list[Wire] | BaseException | None] = Queue(maxsize=workers)
        self._stopped = Event()
        self._threads = [
            Thread(target=copy_context().run, args=(self._run,), name="dynashard-scan", daemon=True)
            for _ in range(workers)
        ]

    def work(self) -> Iterator[list[Wire]]:
        for thread in self._threads:
            thread.start()
        busy = len(self._threads)
        while busy:
            answer = self._answers.get()
            if answer is None:
                busy -= 1
            elif isinstance(answer, BaseException):
                raise answer
            else:
                yield answer

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            while thread.ident is not None and thread.is_alive():
                self._drain()
                thread.join(_POLL_SECONDS)

    def _drain(self) -> None:
        try:
            while True:
                self._answers.get_nowait()
        except Empty:
            return

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                try:
                    source = self._sources.popleft()
                except IndexError:
                    break
                self._read(source)
        except BaseException as error:  # noqa: BLE001 - it is raised again where the items are consumed
            self._put(error)
        else:
            self._put(None)

    def _read(self, source: Source) -> None:
        scan, start = self._scan, None
        while not self._stopped.is_set():
            chunk = scan.reading.chunk(scan.read(scan.reading.call(source, limit=_PAGE, start=start)))
            if chunk.rows:
                self._put(chunk.rows)
            start = chunk.last
            if start is None:
                return

    def _put(self, answer: list[Wire] | BaseException | None) -> None:
        while not self._stopped.is_set():
            try:
                self._answers.put(answer, timeout=_POLL_SECONDS)
            except Full:
                continue
            return
