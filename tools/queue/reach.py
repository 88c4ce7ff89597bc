"""Finds the queues of the local stack, or of a deployed environment."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

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
"""The queue of items that are only added, and the queue of operations whose callers wait for them."""
_VARIABLES: Final = {"intake": "QUEUE", "operations": "OPERATIONS_QUEUE"}

Call = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
"""Calls an operation of SQS, such as `ReceiveMessage`."""


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue and its dead letters."""

    name: str
    url: str
    dead_letters_url: str


@dataclass(frozen=True, slots=True)
class Queues:
    """The queues of a backend, and the way to call SQS."""

    call: Call
    by_name: Mapping[str, Queue]

    def named(self, name: str) -> Queue:
        """Return a queue by its name. Raises `CommandError` if there is none."""
        if name not in self.by_name:
            raise CommandError(f"there is no queue {name!r}. There are: {', '.join(self.by_name)}")
        return self.by_name[name]


def reach(environment: str | None) -> Queues:
    """Find the queues of the local stack, whether or not it runs, or those of a deployed environment.

    Raises:
        CommandError: they cannot be found.
    """
    return _local() if environment is None else _deployed(environment)


def _local() -> Queues:
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
    return Queues(QueueCalls(store).answer, queues)


def _writer_variables(templates: Templates) -> Mapping[str, str]:
    name = function_named(templates, WRITER)
    [writer] = [each for each in templates.of_type("AWS::Lambda::Function") if each.name == name]
    variables: Mapping[str, str] = templates.resolve(writer.stack, writer.properties["Environment"]["Variables"])
    return variables


def _deployed(environment: str) -> Queues:
    # The local stack needs no client.
    import botocore.session  # noqa: PLC0415
    from botocore import xform_name  # noqa: PLC0415

    stack = f"Dynashard-{environment}-Writer"
    outputs = outputs_of(stack)
    queues = {}
    for name in NAMES:
        keys = (f"{name.title()}Url", f"{name.title()}DeadLettersUrl")
        missing = [key for key in keys if key not in outputs]
        if missing:
            raise CommandError(f"the stack {stack} has no output {missing[0]}: deploy it again from this version")
        queues[name] = Queue(name, outputs[keys[0]], outputs[keys[1]])
    sqs = botocore.session.get_session().create_client("sqs")
    return Queues(lambda operation, request: getattr(sqs, xform_name(operation))(**request), queues)
