"""The template's event bus on this machine: kept in a file, and served to functions."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dynashard_local.aws_calls import serving
from dynashard_local.bus.calls import BusCalls
from dynashard_local.bus.store import DATABASE, EventStore
from dynashard_local.errors import LocalStackError

ENDPOINT: Final = "AWS_ENDPOINT_URL_EVENTBRIDGE"


@dataclass(frozen=True, slots=True)
class Bus:
    """A bus that is served, and the environment variables by which clients find it."""

    store: EventStore
    variables: Mapping[str, str]


@contextmanager
def running_bus(data_dir: Path) -> Iterator[Bus]:
    """Serve the bus during the block; raises `LocalStackError` if its file is damaged."""
    path = data_dir / DATABASE
    try:
        store = EventStore.open(path)
    except sqlite3.DatabaseError as error:
        raise LocalStackError(
            f"{path} cannot be used ({error}): remove it with its -wal and -shm files. No event is lost to its readers "
            "by that, because they have received it or can read the items."
        ) from None
    try:
        with serving(BusCalls(store)) as url:
            yield Bus(store, {ENDPOINT: url})
    finally:
        store.close()
