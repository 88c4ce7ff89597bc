"""The workers of a firehose: their backlog, and a killer that ends them while they work on it."""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dynashard_local.queues.store import DATABASE, QueueSpec, QueueStore
from dynashard_local.stack import Stack
from dynashard_local.workers.queue_worker import BATCH
from dynashard_local.workers.stream import Positions, Stream, stream_of, streams_client
from dynashard_local.workers.stream_consumer import POSITIONS

WRITER: Final = "dynashard_local.workers.queue_worker"
CONSUMER: Final = "dynashard_local.workers.stream_consumer"


@dataclass
class Backlog:
    """Messages that were accepted and are not written yet, and stream records that are not processed yet.

    Args:
        queues: of the stack.
        stream: of its table.
        places: the file with the position of the stream consumer.
    """

    queues: QueueStore
    stream: Stream
    places: Path

    def messages(self) -> int:
        """Return how many messages are not done, including those in hand."""
        depths = [self.queues.depth(name) for name in self.queues.queues]
        return sum(depth.visible + depth.in_flight for depth in depths)

    def in_hand(self) -> int:
        """Return how many messages the writer is working on."""
        return sum(self.queues.depth(name).in_flight for name in self.queues.queues)

    def dead(self) -> int:
        """Return how many messages of writes and of changes are dead letters."""
        return sum(self.queues.everything().values()) - self.messages()

    def changes(self) -> bool:
        """Return whether the stream has unprocessed records. Costs one read of the stream."""
        places = Positions(self.places, self.stream.arn)
        return any(self.stream.after(shard, places[shard], 1) for shard in self.stream.shards())


@contextmanager
def backlog_of(stack: Stack) -> Iterator[Backlog]:
    """Yield the backlog of a running stack."""
    folder, table = Path(stack.environment["DATA_DIR"]), stack.variables["TABLE_NAME"]
    endpoint = stack.variables["DYNAMODB_ENDPOINT"]
    names = [stack.variables["QUEUE_URL"], stack.variables["OPERATIONS_QUEUE_URL"]]
    queues = QueueStore(folder / DATABASE, [QueueSpec(name) for name in names], time.time)
    try:
        yield Backlog(queues, Stream(streams_client(endpoint), stream_of(endpoint, table), table), folder / POSITIONS)
    finally:
        queues.close()


@dataclass
class Killer:
    """Kills workers with -9 while they work, each time another process.

    Args:
        stack: the stack whose workers are killed.
        backlog: their backlog.
        say: called with each line of progress.
    """

    stack: Stack
    backlog: Backlog
    say: Callable[[str], None]
    killed: dict[str, set[int]] = field(default_factory=lambda: {WRITER: set(), CONSUMER: set()})

    def kill(self, times: int, *, messages: int, sent: Callable[[], bool], wait_seconds: float) -> None:
        """Kill the writer at times spread over its work, and the stream consumer as often.

        Args:
            times: how often each is killed.
            messages: about how many messages the writer gets. It is killed again when a part of them is done.
            sent: returns whether all of them were sent.
            wait_seconds: after which no moment to kill is waited for any more.
        """
        writers, consumers = self.killed[WRITER], self.killed[CONSUMER]
        stopped: int | None = None
        deadline = time.monotonic() + wait_seconds
        while min(len(writers), len(consumers)) < times and time.monotonic() < deadline:
            if stopped is None and len(consumers) < min(times, len(writers) + 1):
                stopped = self._stopped(CONSUMER)
            left, in_hand = self.backlog.messages(), self.backlog.in_hand()
            part = 1 - len(writers) / (times + 1)
            # The first kill happens while messages still arrive. The last batch is the last chance to kill.
            due = len(writers) < times and (not writers or (sent() and left <= max(BATCH, messages * part)))
            if in_hand and due and self._ended(WRITER):
                self.say(f"killed the writer with {in_hand} of {left} messages in hand")
                # Its messages stay in flight until its successor has started.
                time.sleep(2)
            behind = self.backlog.changes()
            if behind and stopped is not None:
                self._kill_at_work(stopped)
                stopped = None
            if sent() and not left and not behind:
                break
            time.sleep(0.02)
        if stopped is not None:
            os.kill(stopped, signal.SIGCONT)

    def _ended(self, worker: str) -> bool:
        process = self._next(worker)
        if process is None:
            return False
        os.kill(process, signal.SIGKILL)
        self.killed[worker].add(process)
        return True

    def _stopped(self, worker: str) -> int | None:
        """Stop a worker, and return its id. It catches up in less time than it takes to see that it is behind."""
        process = self._next(worker)
        if process is not None:
            os.kill(process, signal.SIGSTOP)
        return process

    def _kill_at_work(self, consumer: int) -> None:
        os.kill(consumer, signal.SIGCONT)
        time.sleep(random.uniform(0, 0.05))
        os.kill(consumer, signal.SIGKILL)
        self.killed[CONSUMER].add(consumer)
        self.say("killed the stream consumer with records to process")

    def _next(self, worker: str) -> int | None:
        return next((each for each in workers(self.stack, worker) if each not in self.killed[worker]), None)


def workers(stack: Stack, module: str) -> list[int]:
    """Return the ids of the processes of a stack that run a module."""
    mine = f"DATA_DIR={stack.environment['DATA_DIR']}\0".encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and module in (entry / "cmdline").read_text().split("\0"):
                found += [int(entry.name)] if mine in (entry / "environ").read_bytes() + b"\0" else []
        except OSError:
            continue  # The process has ended since.
    return found
