"""Start an execution of the state machine for each requested resize in the stream of the topology table."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.data_classes.dynamo_db_stream_event import DynamoDBRecord, StreamRecord

from dynashard.schema import (
    TOPOLOGY_COUNT,
    TOPOLOGY_KEY,
    TOPOLOGY_RESIZE,
    TOPOLOGY_SWEPT,
    TOPOLOGY_TARGET,
    TOPOLOGY_UPDATED,
)

Start = Callable[[str, str], bool]
"""Starts the execution for a record's key and the stamp of its write; whether it did not exist yet."""
Image = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """Starts executions for the records of a stream."""

    start: Start
    log: Callable[[str], None]

    def dispatch(self, event: Mapping[str, Any]) -> PartialItemFailureResponse:
        """Start what the records of a batch ask for.

        A record that fails does not keep later ones from starting. It comes again, and those behind it with it: one
        write of a record starts one execution, however often it is asked for.

        Returns:
            What Lambda expects: the records that could not be started.
        """
        processor = BatchProcessor(EventType.DynamoDBStreams, raise_on_entire_batch_failure=False)
        return process_partial_response(dict(event), self._started, processor)

    def _started(self, record: DynamoDBRecord) -> None:
        change = record.dynamodb
        image = None if change is None else wanted(change)
        if image is None:
            return
        key, stamp = image[TOPOLOGY_KEY], str(image[TOPOLOGY_UPDATED])
        try:
            begun = self.start(key, stamp)
        except Exception as error:
            self.log(f"no execution could be started for {key}: {error}")
            raise
        self.log(f"{'started' if begun else 'already started'}: the resize of {key}")


def wanted(change: StreamRecord) -> Image | None:
    """Return the present record, if this write of it asks for work: a resize that begins, or resumes after a pause.

    Other items of the table, such as the progress of tasks, have no count.
    """
    new, old = change.new_image, change.old_image
    if TOPOLOGY_COUNT not in new or paused(new):
        return None
    # One that was aborted while it stood still has a last wait to come, though nothing is wanted of it any more.
    return new if paused(old) or (busy(new) and not busy(old)) else None


def busy(image: Image) -> bool:
    """Whether a resize is wanted, under way or not swept."""
    return TOPOLOGY_TARGET in image or image.get(TOPOLOGY_SWEPT) is False


def paused(image: Image) -> bool:
    """Whether an operator or an error has paused the resize."""
    return bool(image.get(TOPOLOGY_RESIZE, {}).get("paused"))
