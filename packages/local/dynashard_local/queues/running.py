"""The template's queues on this machine: kept in a file, and served to functions and the writer."""

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from dynashard_local.aws_calls import serving
from dynashard_local.errors import LocalStackError
from dynashard_local.queues.server import QueueCalls
from dynashard_local.queues.store import DATABASE, QueueSpec, QueueStore
from dynashard_local.settings import Settings
from dynashard_local.template import Templates

ENDPOINT: Final = "AWS_ENDPOINT_URL_SQS"
SPECS: Final = "LOCAL_QUEUES"
"""The worker's environment variable with the queues."""


@dataclass(frozen=True, slots=True)
class Queues:
    """Queues that are served, and the environment variables by which clients find them."""

    store: QueueStore
    variables: Mapping[str, str]


@contextmanager
def running_queues(templates: Templates, settings: Settings) -> Iterator[Queues]:
    """Serve the template's queues during the block."""
    store = open_queues(settings.data_dir, queue_specs(templates, settings))
    try:
        with serving(QueueCalls(store)) as url:
            yield Queues(store, {ENDPOINT: url})
    finally:
        store.close()


def open_queues(data_dir: Path, specs: Sequence[QueueSpec]) -> QueueStore:
    """Open the queues in a data folder; raises `LocalStackError` if their file is damaged."""
    path = data_dir / DATABASE
    try:
        return QueueStore(path, specs, time.time)
    except sqlite3.DatabaseError as error:
        raise LocalStackError(
            f"{path} cannot be used ({error}): restore it from a copy, or move it away with its -wal and -shm files "
            "to begin with empty queues."
        ) from None


def queue_specs(templates: Templates, settings: Settings) -> list[QueueSpec]:
    """Return the template's queues, with the visibility timeout of the local stack."""
    specs = []
    for resource in templates.of_type("AWS::SQS::Queue"):
        redrive: Mapping[str, Any] = resource.properties.get("RedrivePolicy") or {}
        dead = templates.at(resource.stack, redrive.get("deadLetterTargetArn"))
        specs.append(
            QueueSpec(
                name=resource.name,
                visibility_seconds=settings.queue_visibility_seconds,
                max_receives=redrive.get("maxReceiveCount"),
                dead_letters=dead.name if dead else None,
            )
        )
    return specs


def writer_variables(queues: Queues) -> dict[str, str]:
    """Return the environment variables of the worker that invokes the writer."""
    specs = [asdict(each) for each in queues.store.queues.values()]
    # The local engine executes one request at a time.
    return {SPECS: json.dumps(specs), "LANES": "4", "PYTHONUNBUFFERED": "1"}
