"""Reading everything: a bounded pool of workers over the shards, streaming.

Source of the pool over shards: ConductorOne's 'parallel shard reads'. Here the workers share one set of positions, kept
for each virtual shard: a scan may outlast many changes of the shard count. When the layout changes, the chunks under
way are waited for, the positions are rebased, and the work goes on.
"""

from collections.abc import Callable, Iterator
from contextvars import copy_context
from dataclasses import dataclass
from queue import Empty, Full, Queue
from threading import Condition, Event, Thread
from typing import Final

from dynashard.errors import InvalidQueryError, ThrottledError
from dynashard.reads.fetch import Fetch
from dynashard.reads.layout import Layout, OvertakenError
from dynashard.reads.positions import Positions
from dynashard.reads.progress import advanced, next_read, passed, unseen
from dynashard.reads.sources import Chunk, StreamRead
from dynashard.repository import RetryPolicy
from dynashard.transport.interface import Wire

MAX_WORKERS: Final = 64
_PAGE: Final = 1000
"""Items a Query; with 1 MB a Query as DynamoDB's own bound."""
_POLL_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class Scan:
    """Everything a parallel scan needs.

    Attributes:
        fetch: a new sender of requests.
        retry_policy: how long a worker goes on against throttling.
    """

    fetch: Callable[[], Fetch]
    retry_policy: RetryPolicy

    def rows(self, workers: int) -> Iterator[list[Wire]]:
        """The items of all shards, a Query's worth at a time, in no order between shards.

        At most two answers a worker are held in memory. Closing the iterator stops the workers.

        Args:
            workers: how many shards are read at a time, 1 to 64.

        Raises:
            InvalidQueryError: a number of workers out of range.
            ThrottledError: throttling outlasted the retry policy.
        """
        if not 1 <= workers <= MAX_WORKERS:
            raise InvalidQueryError(f"workers is a number from 1 to {MAX_WORKERS}", field="workers")
        crew = _Crew(self, workers)
        try:
            yield from crew.work()
        finally:
            crew.stop()


@dataclass(frozen=True, slots=True)
class _Task:
    """A shard that a worker reads on."""

    layout: Layout
    state: Positions
    stream: int

    @property
    def want(self) -> StreamRead:
        return next_read(self.layout, self.state, self.stream, _PAGE)


class _Tasks:
    """The shards that are left to read, and how far each has been read. Safe to share between threads."""

    def __init__(self, now: Callable[[], Layout]) -> None:
        self._now = now
        self._layout = now()
        self._state = self._layout.rebase(None)
        self._taken: set[int] = set()
        self._changed = Condition()
        self._stopped = False

    @property
    def shards(self) -> int:
        return len(self._layout.streams)

    def take(self) -> _Task | None:
        """A shard that nobody else reads, as long as there are any; None once all have been read."""
        with self._changed:
            while not self._stopped:
                layout = self._now()
                if layout.signature != self._layout.signature:
                    if not self._taken:
                        self._layout, self._state = layout, layout.rebase(self._state)
                        continue
                else:
                    left = [s for s in range(self.shards) if not self._state.finished(s, self.shards)]
                    # An item that is moved home from one shard must not be missed by who reads the other meanwhile.
                    alone = layout.strays is not None and self._taken
                    free = None if alone else next((stream for stream in left if stream not in self._taken), None)
                    if free is not None:
                        self._taken.add(free)
                        return _Task(self._layout, self._state, free)
                    if not left:
                        break
                # Others are at the last shards; or all are to come in, since the layout has changed.
                self._changed.wait()
            return None

    def give_back(self, task: _Task, chunk: Chunk | None) -> list[Wire]:
        """End a task with what was read, None for nothing; gives the rows that are new."""
        with self._changed:
            rows: list[Wire] = []
            if chunk is not None:
                rows = unseen(task.layout, self._state, task.stream, chunk.rows)
                self._state = advanced(task.layout, self._state, task.stream, rows, chunk.last)
            self._taken.discard(task.stream)
            self._changed.notify_all()
            return rows

    def stop(self) -> None:
        """Give out no more."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()


class _Crew:
    """The workers of one scan."""

    def __init__(self, scan: Scan, workers: int) -> None:
        self._scan = scan
        self._tasks = _Tasks(scan.fetch().layout)
        workers = min(workers, self._tasks.shards)
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
        self._tasks.stop()
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
            while (task := self._tasks.take()) is not None:
                rows = self._read(task)
                if rows:
                    self._put(rows)
        except BaseException as error:  # noqa: BLE001 - it is raised again where the items are consumed
            self._put(error)
        else:
            self._put(None)

    def _read(self, task: _Task) -> list[Wire]:
        chunk, fetch = None, self._scan.fetch()
        try:
            chunk = self._chunk(fetch, task)
        except OvertakenError:
            pass
        finally:
            rows = self._tasks.give_back(task, chunk)
        return [fetch.item(row) for row in rows]

    def _chunk(self, fetch: Fetch, task: _Task) -> Chunk:
        """Read on, backing off while that is throttled beyond the transport's own retries."""
        pauses = self._scan.retry_policy.pauses()
        while True:
            fetch.require_room([task.layout.streams[task.stream]])
            try:
                [chunk] = fetch.wave((task.layout,), [task.want], lambda _, row: passed(task.layout, task.state, row))
            except ThrottledError:
                if next(pauses, None) is None:
                    raise
            else:
                return chunk

    def _put(self, answer: list[Wire] | BaseException | None) -> None:
        while not self._stopped.is_set():
            try:
                self._answers.put(answer, timeout=_POLL_SECONDS)
            except Full:
                continue
            return
