"""`python -m dynashard_local.workers.stream_consumer`: invokes the function `changes` with the table's stream.

It does what Lambda's event source mapping does: batches are in the order of the stream; from a failed record on, they
are tried again, smaller and after a pause; a record that never succeeds becomes a dead letter. The position is stored
after the function has answered, so that a kill at any moment repeats what was not acknowledged. It ends with its
standard input.
"""

import logging
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dynashard_serving.start import uncollected

with uncollected():
    from dynashard_patterns.changes import DeadLetter
from dynashard_local.workers.lifecycle import end_with_input, log
from dynashard_local.workers.stream import Positions, Record, Stream, stream_of, streams_client

BATCH: Final = 100
ATTEMPTS: Final = 20
POLL_SECONDS: Final = 0.2
FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 10.0
POSITIONS: Final = "changes.json"
"""The file in `DATA_DIR` with the position in the stream."""

Handle = Callable[[dict[str, Any]], Mapping[str, Any]]
"""The function: takes an event, and returns which records failed."""


@dataclass
class StreamConsumer:
    """Consumes one stream; `give_up` is called with a record that never succeeds, and the reason."""

    stream: Stream
    places: Positions
    handle: Handle
    give_up: Callable[[Record, str], None]
    sleep: Callable[[float], None]
    log: Callable[[str], None]

    def poll(self) -> int:
        """Handle new records, once for each shard of the stream. Return how many were handled or given up."""
        return sum(self._drain(shard) for shard in self.stream.shards())

    def _drain(self, shard: str) -> int:
        dealt, tries, size = 0, 0, BATCH
        while records := self.stream.after(shard, self.places[shard], size):
            failed, reason = self._failed(records)
            if failed > 0:
                self.places[shard] = _sequence(records[failed - 1])
                dealt, tries, size = dealt + failed, 0, BATCH
            if failed == len(records):
                continue
            tries, size = tries + 1, max(1, (len(records) - failed) // 2)
            if tries < ATTEMPTS:
                self.log(f"{_sequence(records[failed])} is tried again: {reason}")
                self.sleep(min(FIRST_PAUSE * 2**tries, LONGEST_PAUSE))
                continue
            self.give_up(records[failed], reason)
            self.places[shard] = _sequence(records[failed])
            dealt, tries, size = dealt + 1, 0, BATCH
        return dealt

    def _failed(self, records: Sequence[Record]) -> tuple[int, str]:
        """Return the position of the first failed record, or the number of records; and the reason."""
        try:
            failures = self.handle({"Records": list(records)})["batchItemFailures"]
        except Exception as error:  # noqa: BLE001 - Lambda retries after any error
            return 0, repr(error)
        numbers = {failure["itemIdentifier"] for failure in failures}
        first = [at for at, record in enumerate(records) if _sequence(record) in numbers]
        # If the answer names a record of another batch, all records are tried again, as on Lambda.
        return (first[0] if first else 0, "the function could not handle it") if numbers else (len(records), "")


def _sequence(record: Record) -> str:
    return str(record["dynamodb"]["SequenceNumber"])


def main() -> None:
    """Work until standard input ends."""
    end_with_input()
    logging.basicConfig(stream=sys.stdout, level=logging.WARNING, format="%(message)s")
    folder, table = Path(os.environ["DATA_DIR"]), os.environ["TABLE_NAME"]
    # The function reads its settings from the environment, as on Lambda.
    with uncollected():
        from dynashard_serving.changes.dead_letters import to_queue  # noqa: PLC0415
        from functions.changes.handler import handler  # noqa: PLC0415

    keep = to_queue(os.environ["DEAD_LETTER_QUEUE"])

    endpoint = os.environ["DYNAMODB_ENDPOINT"]
    stream = Stream(streams_client(endpoint), stream_of(endpoint, table), table)
    consumer = StreamConsumer(
        stream,
        Positions(folder / POSITIONS, stream.arn),
        lambda event: handler(event, None),
        lambda record, reason: keep(DeadLetter(None, reason, record)),
        time.sleep,
        log,
    )
    while True:
        done = consumer.poll()
        sys.stdout.flush()
        if not done:
            time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    main()
