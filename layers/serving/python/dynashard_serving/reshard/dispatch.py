"""Start an execution of the state machine for each requested change in the stream of the topology table."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dynashard.schema import (
    TOPOLOGY_CHANGE,
    TOPOLOGY_COUNT,
    TOPOLOGY_KEY,
    TOPOLOGY_SWEPT,
    TOPOLOGY_TARGET,
    TOPOLOGY_UPDATED,
)

Start = Callable[[str, str], bool]
"""Starts the execution for a record's key and the stamp of its write; whether it did not exist yet."""
Image = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """Starts executions for the records of a stream."""

    start: Start
    log: Callable[[str], None]

    def dispatch(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a batch of stream records in their order.

        Returns:
            What Lambda expects: from which record on the batch has to come again, if one could not be started.
        """
        for record in event["Records"]:
            image = wanted(record["dynamodb"])
            if image is None:
                continue
            key, stamp = image[TOPOLOGY_KEY]["S"], image[TOPOLOGY_UPDATED]["N"]
            try:
                begun = self.start(key, stamp)
            except Exception as error:  # noqa: BLE001 -- whatever it is, this record has to come again
                self.log(f"no execution could be started for {key}: {error}")
                return {"batchItemFailures": [{"itemIdentifier": record["dynamodb"]["SequenceNumber"]}]}
            self.log(f"{'started' if begun else 'already started'}: the change of {key}")
        return {"batchItemFailures": []}


def wanted(change: Mapping[str, Any]) -> Image | None:
    """Return the present record, if this write of it asks for work: a change that begins, or resumes after a pause.

    Other items of the table, such as the progress of tasks, have no count.
    """
    new: Image = change.get("NewImage") or {}
    old: Image = change.get("OldImage") or {}
    if TOPOLOGY_COUNT not in new or paused(new):
        return None
    # One that was aborted while it stood still has a last wait to come, though nothing is wanted of it any more.
    return new if paused(old) or (busy(new) and not busy(old)) else None


def busy(image: Image) -> bool:
    """Whether a change is wanted, under way or not swept."""
    return TOPOLOGY_TARGET in image or image.get(TOPOLOGY_SWEPT, {}).get("BOOL") is False


def paused(image: Image) -> bool:
    """Whether an operator or an error has paused the change."""
    kept: Mapping[str, Any] = image.get(TOPOLOGY_CHANGE, {}).get("M", {})
    return bool(kept.get("paused", {}).get("BOOL"))
