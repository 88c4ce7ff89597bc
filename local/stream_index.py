"""Indexes that the local engine's stream lacks.

The engine keeps all records of its streams for good, in one table without an index. It numbers a record by the largest
number so far, looked up among all of them for each write, and finds what a reader has not seen in the same way. That
costs 0.12 ms more a write for every thousand records; with these indexes it stays what it was at first.

The engine's file may be opened beside it: SQLite keeps two processes apart, and an index changes nothing that is
stored. It is made before anybody asks the engine anything, so that nobody waits, and done without if that fails.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

_NUMBER: Final = "CAST(sequence_number AS INTEGER)"
_LAST: Final = f"dynashard_stream_last ON _stream_records (table_name, {_NUMBER})"
_AFTER: Final = f"dynashard_stream_after ON _stream_records (table_name, shard_id, {_NUMBER}, sequence_number)"


def index_stream(database: Path) -> None:
    """Give the engine's file the indexes. An engine that keeps its stream otherwise is left alone.

    Cost: milliseconds; once, for a file of an older checkout, ten seconds for a million records.
    """
    try:
        with closing(sqlite3.connect(database, timeout=10)) as connection:
            for index in (_LAST, _AFTER):
                connection.execute(f"CREATE INDEX IF NOT EXISTS {index}")
            connection.commit()
    except sqlite3.Error:
        # Only slower without: the engine's file is its own business.
        return
