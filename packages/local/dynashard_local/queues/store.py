"""Durable queues in one SQLite file, with the rules of SQS that workers rely on.

A received message is hidden for a while, and delivered again unless it is deleted; after too many deliveries it goes to
the dead-letter queue; messages of a group are delivered in order, one after the other. Acknowledged messages survive a
kill of every process. No maintained library has visibility timeouts, groups and dead letters on the supported Pythons.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Final
from uuid import uuid4

DATABASE: Final = "queues.sqlite"
DEDUPLICATION_SECONDS: Final = 300.0
"""How long a FIFO queue remembers a deduplication id."""

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS messages (
    number INTEGER PRIMARY KEY AUTOINCREMENT, queue TEXT NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL,
    attributes TEXT NOT NULL, grp TEXT, sent_at REAL NOT NULL, visible_at REAL NOT NULL,
    receives INTEGER NOT NULL DEFAULT 0, receipt TEXT);
CREATE INDEX IF NOT EXISTS by_visibility ON messages (queue, visible_at, number);
CREATE INDEX IF NOT EXISTS by_group ON messages (queue, grp, number);
CREATE INDEX IF NOT EXISTS by_receipt ON messages (receipt);
CREATE TABLE IF NOT EXISTS seen (queue TEXT NOT NULL, deduplication TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (queue, deduplication));
"""


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """A queue.

    Attributes:
        visibility_seconds: how long a received message is hidden.
        max_receives: deliveries after which a message is a dead letter; None for no limit.
        dead_letters: the name of the dead-letter queue.
    """

    name: str
    visibility_seconds: float = 30.0
    max_receives: int | None = None
    dead_letters: str | None = None


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to send. `attributes` are message attributes as SQS writes them."""

    body: str
    attributes: Mapping[str, Any]
    group: str | None = None
    deduplication: str | None = None


@dataclass(frozen=True, slots=True)
class Delivery:
    """One delivery of a message; `receives` counts it. Times are epoch seconds."""

    id: str
    body: str
    attributes: Mapping[str, Any]
    group: str | None
    sent_at: float
    receives: int
    receipt: str


@dataclass(frozen=True, slots=True)
class Depth:
    """The messages of a queue, and the age of the oldest one in seconds; 0 if it is empty."""

    visible: int
    in_flight: int
    oldest_seconds: float


class QueueStore:
    """Queues in a file, which is created if missing. Several processes may have it open; threads may share it."""

    def __init__(self, path: Path, queues: Sequence[QueueSpec], clock: Callable[[], float]) -> None:
        self.queues = {queue.name: queue for queue in queues}
        self._clock = clock
        self._lock = Lock()
        self._connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
        # Acknowledged messages survive a kill of the process; only a power cut could lose the last ones.
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=NORMAL")
        self._connection.executescript(_SCHEMA)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def send(self, queue: str, messages: Sequence[NewMessage]) -> list[str]:
        """Put messages on a queue, all or none, and return their ids. They are durable when this returns."""
        now = self._clock()
        ids = [str(uuid4()) for _ in messages]
        with self._transaction() as database:
            database.execute("DELETE FROM seen WHERE at < ?", (now - DEDUPLICATION_SECONDS,))
            for each, message in zip(ids, messages, strict=True):
                if not _first(database, queue, message, now):
                    continue
                database.execute(
                    "INSERT INTO messages (queue, id, body, attributes, grp, sent_at, visible_at)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (queue, each, message.body, json.dumps(dict(message.attributes)), message.group, now, now),
                )
        return ids

    def receive(self, queue: str, limit: int) -> list[Delivery]:
        """Receive and hide up to `limit` messages. After too many deliveries, they become dead letters instead."""
        spec, now = self.queues[queue], self._clock()
        with self._transaction() as database:
            if spec.max_receives is not None and spec.dead_letters is not None:
                database.execute(
                    "UPDATE messages SET queue = ?, receives = 0, receipt = NULL, visible_at = ?"
                    " WHERE queue = ? AND visible_at <= ? AND receives >= ?",
                    (spec.dead_letters, now, queue, now, spec.max_receives),
                )
            rows = database.execute(_RECEIVABLE, (queue, now, now, limit)).fetchall()
            deliveries = [_delivery(row) for row in rows]
            database.executemany(
                "UPDATE messages SET receives = ?, receipt = ?, visible_at = ? WHERE number = ?",
                [
                    (delivery.receives, delivery.receipt, now + spec.visibility_seconds, row[0])
                    for row, delivery in zip(rows, deliveries, strict=True)
                ],
            )
        return deliveries

    def delete(self, receipts: Sequence[str]) -> None:
        """Delete the messages of these deliveries; a message that was delivered again since stays."""
        with self._transaction() as database:
            database.executemany("DELETE FROM messages WHERE receipt = ?", [(receipt,) for receipt in receipts])

    def hide(self, receipts: Mapping[str, float]) -> None:
        """Hide the messages of these deliveries for so many seconds from now."""
        now = self._clock()
        with self._transaction() as database:
            database.executemany(
                "UPDATE messages SET visible_at = ? WHERE receipt = ?",
                [(now + seconds, receipt) for receipt, seconds in receipts.items()],
            )

    def release(self, queue: str) -> int:
        """Make messages in flight visible at once, because their receiver is gone. Return how many."""
        now = self._clock()
        with self._transaction() as database:
            return database.execute(
                "UPDATE messages SET visible_at = ? WHERE queue = ? AND visible_at > ? AND receipt IS NOT NULL",
                (now, queue, now),
            ).rowcount

    def depth(self, queue: str) -> Depth:
        """Return what a queue holds."""
        now = self._clock()
        with self._transaction() as database:
            (visible, hidden, oldest) = database.execute(
                "SELECT count(*) FILTER (WHERE visible_at <= ?1), count(*) FILTER (WHERE visible_at > ?1), min(sent_at)"
                " FROM messages WHERE queue = ?2",
                (now, queue),
            ).fetchone()
        return Depth(visible, hidden, 0.0 if oldest is None else max(0.0, now - oldest))

    def everything(self) -> dict[str, int]:
        """Return the number of messages of every queue in the file, also of queues that the store does not know."""
        with self._transaction() as database:
            return dict(database.execute("SELECT queue, count(*) FROM messages GROUP BY queue").fetchall())

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")


# A message of a group waits for earlier ones that are in flight or hidden.
_RECEIVABLE: Final = """
SELECT number, id, body, attributes, grp, sent_at, receives FROM messages AS mine
WHERE queue = ? AND visible_at <= ? AND (grp IS NULL OR NOT EXISTS (
    SELECT 1 FROM messages AS before
    WHERE before.queue = mine.queue AND before.grp = mine.grp AND before.number < mine.number
      AND before.visible_at > ?))
ORDER BY number LIMIT ?
"""


def _delivery(row: tuple[Any, ...]) -> Delivery:
    _, name, body, attributes, group, sent_at, receives = row
    return Delivery(name, body, json.loads(attributes), group, sent_at, receives + 1, str(uuid4()))


def _first(database: sqlite3.Connection, queue: str, message: NewMessage, now: float) -> bool:
    if message.deduplication is None:
        return True
    # Ids are unique per group, as on the deployed queues (DeduplicationScope: messageGroup).
    known = f"{message.group or ''}\n{message.deduplication}"
    written = database.execute("INSERT OR IGNORE INTO seen VALUES (?, ?, ?)", (queue, known, now))
    return written.rowcount == 1
