"""Who reads and writes the items of an entity: those that know every item's home, or one that looks for it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from dynashard.entity import EntityDefinition, ItemKey
from dynashard.repository.batch import Reading
from dynashard.repository.reading import HomeReader
from dynashard.repository.scattered import Scattered
from dynashard.repository.store import Store
from dynashard.repository.writes import Done, Write
from dynashard.repository.writing import HomeWriter
from dynashard.routing import rule_of
from dynashard.transport.interface import Wire


class Reader(Protocol):
    """Finds live items by their keys."""

    def read(self, key: ItemKey, reading: Reading) -> Wire | None:
        """The live item with this key.

        Raises:
            TransactionConflictError: it was being moved all the time.
            UnprocessedError: more than one request was needed, and DynamoDB did not answer them in time.
        """
        ...

    def read_all(self, keys: Sequence[ItemKey], reading: Reading) -> Mapping[ItemKey, Wire]:
        """The live items with these keys, which differ; raises as `read`."""
        ...


class Writer(Protocol):
    """Brings writes to where their items live."""

    def write(self, write: Write, pauses: Iterator[float] | None = None) -> Done:
        """Do one write.

        Args:
            write: the write.
            pauses: pauses before it is tried again; those of the store's retry policy if None.

        Raises:
            ConditionFailedError: with the live item that refuses it, or with none where one is needed.
            TransactionConflictError: other writes or moves of the item were in the way all the time.
        """
        ...

    def write_all(self, writes: Sequence[Write]) -> list[Write]:
        """Do many writes, no two of them with one key; deletes take an item that is not there for done.

        Returns:
            Those of which no answer came: they may have been done, or may still be.

        Raises:
            UnprocessedError: with the keys that could not be written in time.
        """
        ...


def placed(store: Store, entity: EntityDefinition[Any]) -> tuple[Reader, Writer]:
    """The reader and the writer for an entity's placement."""
    if rule_of(entity).fixed:
        return HomeReader(store, entity), HomeWriter(store, entity)
    scattered = Scattered(store, entity)
    return scattered, scattered
