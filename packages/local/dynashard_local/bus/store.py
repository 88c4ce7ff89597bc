"""The events of the local bus, in one SQLite file: the last ones, in the order in which they were published."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple, Self
from uuid import uuid4

DATABASE: Final = "events.sqlite"
_LARGEST: Final = 2**63 - 1
"""The largest number that SQLite has."""
MOST_KEPT: Final = 100_000
"""Events that are kept. EventBridge itself keeps none, so nothing may rely on them."""
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS events (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, source TEXT NOT NULL, name TEXT NOT NULL,
    detail TEXT NOT NULL, at REAL NOT NULL);
"""


class NewEvent(NamedTuple):
    """An event to publish; `at` is its time in epoch seconds, `detail` is JSON."""

    source: str
    name: str
    detail: str
    at: float


class StoredEvent(NamedTuple):
    """An event with its number, which is larger for later ones, and the id that the bus gave it."""

    number: int
    id: str
    source: str
    name: str
    detail: str
    at: float


class EventStore:
    """The events in a file. Safe to share between threads; other processes may read the file meanwhile."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._lock = Lock()

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open the file to publish; raises `sqlite3.DatabaseError` if it is damaged."""
        connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.executescript(_SCHEMA)
        return cls(connection)

    @classmethod
    def reading(cls, path: Path) -> Self:
        """Open the file to read only; raises `sqlite3.DatabaseError` if there is none, or it is damaged."""
        return cls(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False))

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def add(self, events: Sequence[NewEvent]) -> list[str]:
        """Keep events, all or none, and return their ids. They are durable when this returns."""
        ids = [str(uuid4()) for _ in events]
        with self._lock, self._connection as database:
            database.execute("BEGIN IMMEDIATE")
            rows = [(name, *event) for name, event in zip(ids, events, strict=True)]
            database.executemany("INSERT INTO events (id, source, name, detail, at) VALUES (?, ?, ?, ?, ?)", rows)
            database.execute("DELETE FROM events WHERE number <= (SELECT max(number) FROM events) - ?", (MOST_KEPT,))
        return ids

    def after(self, number: int, limit: int = 100) -> list[StoredEvent]:
        """Return the first events after one with a number; those from the beginning after 0."""
        with self._lock, closing(self._connection.cursor()) as cursor:
            cursor.execute(
                "SELECT number, id, source, name, detail, at FROM events WHERE number > ? ORDER BY number LIMIT ?",
                (min(number, _LARGEST), limit),
            )
            return [StoredEvent(*row) for row in cursor.fetchall()]

    @property
    def last(self) -> int:
        """The number of the last event; 0 if there is none."""
        with self._lock, closing(self._connection.cursor()) as cursor:
            return int(cursor.execute("SELECT coalesce(max(number), 0) FROM events").fetchone()[0])
