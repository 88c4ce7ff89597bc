"""The way from the command line to the queues: those of the local stack, or of a deployed environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from local.errors import LocalStackError
from local.functions import function_named
from local.queue_server import QueueCalls
from local.queue_store import DATABASE
from local.queues import WRITER, open_queues, queue_specs
from local.settings import Settings
from local.template import Templates, synthesised
from tools.connection import outputs_of
from tools.failure import CommandError

NAMES: Final = ("intake", "operations")
"""What is only added, and what somebody waits for."""
_VARIABLES: Final = {"intake": "QUEUE", "operations": "OPERATIONS_QUEUE"}


class Sqs(Protocol):
    """As much of botocore's client as is used here."""

    def receive_message(self, **request: Any) -> Mapping[str, Any]:
        """Receive messages."""

    def send_message_batch(self, **request: Any) -> Mapping[str, Any]:
        """Send messages."""

    def delete_message_batch(self, **request: Any) -> Mapping[str, Any]:
        """Delete messages."""

    def get_queue_attributes(self, **request: Any) -> Mapping[str, Any]:
        """What a queue says of itself."""


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue and its dead letters."""

    name: str
    url: str
    dead_letters_url: str


@dataclass(frozen=True, slots=True)
class Reached:
    """The queues of a backend, and a client for them."""

    sqs: Sqs
    queues: Mapping[str, Queue]

    def named(self, name: str) -> Queue:
        """A queue by its name.

        Raises:
            CommandError: there is none.
        """
        if name not in self.queues:
            raise CommandError(f"there is no queue {name!r}; there are {', '.join(self.queues)}")
        return self.queues[name]


def reach(environment: str | None) -> Reached:
    """The queues of the local stack, whether or not it runs, or those of a deployed environment.

    Raises:
        CommandError: they cannot be found.
    """
    return _local() if environment is None else _deployed(environment)


def _local() -> Reached:
    try:
        settings, templates = Settings.from_env(os.environ), synthesised()
        if not (settings.data_dir / DATABASE).exists():
            raise CommandError(
                f"no local stack has run on {settings.data_dir}: start it with `make run`; if its data are elsewhere, "
                "set DATA_DIR as for `make run`"
            )
        store = open_queues(settings.data_dir, queue_specs(templates, settings))
        variables = _writer_variables(templates)
    except (LocalStackError, OSError) as error:
        raise CommandError(str(error)) from error
    queues = {
        name: Queue(name, variables[f"{prefix}_URL"], variables[f"{prefix}_DEAD_LETTERS_URL"])
        for name, prefix in _VARIABLES.items()
    }
    return Reached(_InProcess(QueueCalls(store)), queues)


def _writer_variables(templates: Templates) -> Mapping[str, str]:
    name = function_named(templates, WRITER)
    for resource in templates.of_type("AWS::Lambda::Function"):
        if resource.name == name:
            variables: Mapping[str, str] = templates.resolve(
                resource.stack, resource.properties["Environment"]["Variables"]
            )
            return variables
    raise LocalStackError("the template has no writer")


def _deployed(environment: str) -> Reached:
    import botocore.session  # noqa: PLC0415 - the local stack needs no client

    stack = f"Dynashard-{environment}-Writer"
    outputs = outputs_of(stack)
    queues = {}
    for name in NAMES:
        keys = (f"{name.title()}Url", f"{name.title()}DeadLettersUrl")
        missing = [key for key in keys if key not in outputs]
        if missing:
            raise CommandError(f"the stack {stack} has no output {missing[0]}: deploy it again from this version")
        queues[name] = Queue(name, outputs[keys[0]], outputs[keys[1]])
    return Reached(botocore.session.get_session().create_client("sqs"), queues)


class _InProcess:
    """The local queues as a client sees them, straight from their file."""

    def __init__(self, calls: QueueCalls) -> None:
        self._calls = calls

    def receive_message(self, **request: Any) -> Mapping[str, Any]:
        return self._calls.answer("ReceiveMessage", request)

    def send_message_batch(self, **request: Any) -> Mapping[str, Any]:
        return self._calls.answer("SendMessageBatch", request)

    def delete_message_batch(self, **request: Any) -> Mapping[str, Any]:
        return self._calls.answer("DeleteMessageBatch", request)

    def get_queue_attributes(self, **request: Any) -> Mapping[str, Any]:
        return self._calls.answer("GetQueueAttributes", request)
