"""The workers behind a firehose: what lies before them, and how they are killed while they work on it."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.soak.stack import Stack
from local.changes import PLACES
from local.queue_store import DATABASE, QueueSpec, QueueStore
from local.queue_worker import BATCH
from local.stream import Places, Stream, stream_of, streams_client

WRITER: Final = "local.queue_worker"
FOLLOWER: Final = "local.changes"


@dataclass
class Backlog:
    """What was accepted or stored, and is not dealt with yet.

    Args:
        queues: of the stack.
        stream: of its table.
        places: the file that says how far the stream was followed.
    """

    queues: QueueStore
    stream: Stream
    places: Path

    def messages(self) -> int:
        """How many messages have to be done, those in hand included."""
        depths = [self.queues.depth(name) for name in self.queues.queues]
        return sum(depth.visible + depth.in_flight for depth in depths)

    def in_hand(self) -> int:
        """How many messages the writer is at."""
        return sum(self.queues.depth(name).in_flight for name in self.queues.queues)

    def dead(self) -> int:
        """How many messages were given up: of writes, and of changes."""
        return sum(self.queues.everything().values()) - self.messages()

    def changes(self) -> bool:
        """Whether the stream has changes that were not followed yet. Cost: one look at the stream."""
        places = Places(self.places, self.stream.arn)
        return any(self.stream.after(shard, places[shard], 1) for shard in self.stream.shards())


@contextmanager
def backlog_of(stack: Stack) -> Iterator[Backlog]:
    """What a running stack has not dealt with yet."""
    folder, table = Path(stack.environment["DATA_DIR"]), stack.variables["TABLE_NAME"]
    endpoint = stack.variables["DYNAMODB_ENDPOINT"]
    names = [stack.variables["QUEUE_URL"], stack.variables["OPERATIONS_QUEUE_URL"]]
    queues = QueueStore(folder / DATABASE, [QueueSpec(name) for name in names], time.time)
    try:
        yield Backlog(queues, Stream(streams_client(endpoint), stream_of(endpoint, table), table), folder / PLACES)
    finally:
        queues.close()


@dataclass
class Killer:
    """Kills workers with -9 while they work, each time another process.

    Args:
        stack: whose workers.
        backlog: what they work on.
        say: takes a line of progress.
    """

    stack: Stack
    backlog: Backlog
    say: Callable[[str], None]
    killed: dict[str, set[int]] = field(default_factory=lambda: {WRITER: set(), FOLLOWER: set()})

    def kill(self, times: int, *, messages: int, sent: Callable[[], bool], patience: float) -> None:
        """Kill the writer, spread over its work, and each time whoever follows the stream as well.

        Args:
            times: how often each.
            messages: about how many come to the writer; it is killed again when a part of them is done.
            sent: whether all of them lie on the queue.
            patience: seconds after which there is no more waiting for a moment to kill.
        """
        writers, deadline = self.killed[WRITER], time.monotonic() + patience
        while any(len(each) < times for each in self.killed.values()) and time.monotonic() < deadline:
            left, in_hand = self.backlog.messages(), self.backlog.in_hand()
            part = 1 - len(writers) / (times + 1)
            # The first one while they still come in. The last batch is the last chance, whatever was done before.
            due = len(writers) < times and (not writers or (sent() and left <= max(BATCH, messages * part)))
            if in_hand and due and self._ended(WRITER):
                self.say(f"killed the writer with {in_hand} of {left} messages in hand")
                # What it had in hand is in flight until its successor has begun.
                time.sleep(2)
            behind = len(self.killed[FOLLOWER]) < len(writers) and self.backlog.changes()
            if behind and self._ended(FOLLOWER):
                self.say("killed the follower of the stream with changes before it")
            if sent() and not left and not self.backlog.changes():
                return
            time.sleep(0.02)

    def _ended(self, worker: str) -> bool:
        process = next((each for each in workers(self.stack, worker) if each not in self.killed[worker]), None)
        if process is None:
            return False
        os.kill(process, signal.SIGKILL)
        self.killed[worker].add(process)
        return True


def workers(stack: Stack, module: str) -> list[int]:
    """The processes of a stack that run a module."""
    mine = f"DATA_DIR={stack.environment['DATA_DIR']}\0".encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and module in (entry / "cmdline").read_text().split("\0"):
                found += [int(entry.name)] if mine in (entry / "environ").read_bytes() + b"\0" else []
        except OSError:
            continue  # It has ended since.
    return found
