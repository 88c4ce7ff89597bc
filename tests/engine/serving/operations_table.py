"""Requests, good and bad, with their outcome over every entry point. `test_operations_alike` sends them."""

from typing import Final

from tests.engine.serving.operations_changes import DELETES, PUTS, UPDATES
from tests.engine.serving.operations_creates import CREATES
from tests.engine.serving.operations_data import STORED
from tests.engine.serving.operations_reads import BATCHES, COUNTS, LISTS, READS, SYSTEMS
from tests.engine.serving.operations_row import Row
from tests.engine.serving.operations_unique import UNIQUE

__all__ = ["ROWS", "STORED", "Row"]

ROWS: Final = [*CREATES, *PUTS, *UPDATES, *DELETES, *READS, *LISTS, *SYSTEMS, *COUNTS, *BATCHES, *UNIQUE]
