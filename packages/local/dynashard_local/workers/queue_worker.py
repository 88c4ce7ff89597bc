"""`python -m dynashard_local.workers.queue_worker`: executes what is on the local queues, until standard input ends.

It replaces Lambda's poller: it invokes the writer's handler with batches in Lambda's format, and deletes the messages
that the handler did not report as failed. After a kill at any moment, messages in flight are delivered again.
"""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from dynashard_serving.start import uncollected

with uncollected():
    from dynashard_local.account import ACCOUNT_ID, REGION
    from dynashard_local.functions.environment import LambdaContext
    from dynashard_local.queues.running import SPECS, open_queues
    from dynashard_local.queues.server import system_attributes
    from dynashard_local.queues.store import Delivery, QueueSpec, QueueStore
    from dynashard_local.workers.lifecycle import end_with_input, log

QUEUES: Final = ("QUEUE_URL", "OPERATIONS_QUEUE_URL")
"""Environment variables with the queues' names."""
BATCH: Final = 10
IDLE_SECONDS: Final = 0.1
TIMEOUT_SECONDS: Final = 29.0

Handle = Callable[[Mapping[str, Any], Any], Mapping[str, Any]]


def event_of(queue: str, deliveries: Sequence[Delivery]) -> dict[str, Any]:
    """Return Lambda's event for a batch of a queue."""
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
    """Invoke the handler with one batch, and delete what it has done. Return the number of messages received.

    If the handler raises, nothing is deleted.
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
    """Poll the queues in turn until `stop` returns true.

    Messages in flight are made visible at once, because the worker that received them is gone.
    """
    for queue in queues:
        store.release(queue)
    while not stop():
        taken = 0
        for queue in queues:
            try:
                taken += poll(store, queue, handle)
            except Exception as error:  # noqa: BLE001 - as on Lambda: the batch is delivered again
                log(f"the writer failed: {error!r}")
        if not taken:
            sleep(IDLE_SECONDS)


def write(event: Mapping[str, Any], context: Any) -> Mapping[str, Any]:
    """Let the writer do a batch. It is imported for the first one, because most stacks never queue anything."""
    return _writer()(event, context)


@cache
def _writer() -> Handle:
    with uncollected():
        from functions.writer.handler import handler  # noqa: PLC0415
    return handler


def main() -> None:
    """Work until standard input ends."""
    end_with_input()
    specs = [QueueSpec(**each) for each in json.loads(os.environ[SPECS])]
    store = open_queues(Path(os.environ["DATA_DIR"]), specs)
    queues = [os.environ[variable] for variable in QUEUES]
    work(store, queues, write, stop=lambda: False, sleep=time.sleep, log=log)


if __name__ == "__main__":
    main()
