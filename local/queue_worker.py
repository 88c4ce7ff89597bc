"""`python -m local.queue_worker`: does what lies on the local queues, until standard input ends.

It stands where Lambda's own poller stands: it hands batches of the real shape to the writer's handler, and deletes what
the handler did not name. It may be killed at any moment: what it had in hand comes again.
"""

import importlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from local.beside import end_with_input, log
from local.environments import LambdaContext
from local.events import ACCOUNT_ID, REGION
from local.queue_server import system_attributes
from local.queue_store import Delivery, QueueSpec, QueueStore
from local.queues import SPECS, open_queues

HANDLER: Final = "functions.writer.handler"
QUEUES: Final = ("QUEUE_URL", "OPERATIONS_QUEUE_URL")
"""Variables that name the queues to work on."""
BATCH: Final = 10
IDLE_SECONDS: Final = 0.1
TIMEOUT_SECONDS: Final = 29.0

Handle = Callable[[Mapping[str, Any], Any], Mapping[str, Any]]


def event_of(queue: str, deliveries: Sequence[Delivery]) -> dict[str, Any]:
    """The event by which Lambda hands a batch of a queue to its function."""
    arn = f"arn:aws:sqs:{REGION}:{ACCOUNT_ID}:{queue}"
    return {
        "Records": [
            {
                "messageId": delivery.id,
                "receiptHandle": delivery.receipt,
                "body": delivery.body,
                "attributes": system_attributes(delivery),
                "messageAttributes": {
                    name: {"stringValue": value["StringValue"], "dataType": value["DataType"]}
                    for name, value in delivery.attributes.items()
                },
                "eventSource": "aws:sqs",
                "eventSourceARN": arn,
                "awsRegion": REGION,
            }
            for delivery in deliveries
        ]
    }


def poll(store: QueueStore, queue: str, handle: Handle, clock: Callable[[], float] = time.time) -> int:
    """Hand one batch to the handler, and delete what it has done.

    Args:
        store: the queues.
        queue: the one to take from.
        handle: the handler; if it raises, nothing of the batch is deleted.
        clock: epoch seconds.

    Returns:
        How many messages were taken.
    """
    deliveries = store.receive(queue, BATCH)
    if not deliveries:
        return 0
    context = LambdaContext("writer", 1769, str(uuid4()), clock() + TIMEOUT_SECONDS, clock=clock)
    answer = handle(event_of(queue, deliveries), context)
    failed = {each["itemIdentifier"] for each in answer["batchItemFailures"]}
    store.delete([delivery.receipt for delivery in deliveries if delivery.id not in failed])
    return len(deliveries)


def work(
    store: QueueStore,
    queues: Sequence[str],
    handle: Handle,
    *,
    stop: Callable[[], bool],
    sleep: Callable[[float], None],
    log: Callable[[str], None],
) -> None:
    """Work on the queues in turn until told to stop.

    Whoever worked before is gone: what was in flight is made visible at once, instead of waiting for its time.
    """
    for queue in queues:
        store.release(queue)
    while not stop():
        taken = 0
        for queue in queues:
            try:
                taken += poll(store, queue, handle)
            except Exception as error:  # noqa: BLE001 - as on Lambda: the batch comes again after its time
                log(f"the writer failed: {error!r}")
        if not taken:
            sleep(IDLE_SECONDS)


def main() -> None:
    """Work until standard input ends."""
    end_with_input()
    handle: Handle = importlib.import_module(HANDLER).handler
    specs = [QueueSpec(**each) for each in json.loads(os.environ[SPECS])]
    store = open_queues(Path(os.environ["DATA_DIR"]), specs)
    queues = [os.environ[variable] for variable in QUEUES]
    work(store, queues, handle, stop=lambda: False, sleep=time.sleep, log=log)


if __name__ == "__main__":
    main()
