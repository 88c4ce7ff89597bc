"""Finds the queues of the local stack, or of a deployed environment."""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from dynashard_local.errors import LocalStackError
from dynashard_local.functions.specs import WRITER, function_named
from dynashard_local.queues.running import open_queues, queue_specs
from dynashard_local.queues.server import QueueCalls
from dynashard_local.queues.store import DATABASE, QueueStore
from dynashard_local.settings import Settings
from dynashard_local.template import Templates, committed
from dynashard_tools.environments import Environment, aws_errors, environment_named
from dynashard_tools.failure import CommandError
from dynashard_tools.latest_metrics import Metric, latest

NAMES: Final = ("intake", "operations")
"""The queue of items that are only added, and the queue of operations whose callers wait for them."""
EVENTS: Final[Mapping[str, str]] = {
    "changes": "changes of items that a stream consumer could not handle",
    "reshard": "resizes that did not start",
    "watch": "runs of the watch that were missed",
}
"""Dead-letter queues of events, which have no queue of their own, and what is on them."""
_CURES: Final[Mapping[str, str]] = {
    "changes": "`dynashard events replay` and `dynashard verify --only copies,rollups --mend` repair what they concern",
    "reshard": "the watch starts these resizes, and `dynashard reshard status` shows them",
    "watch": "the next run does what they missed",
}
"""What becomes of the events on these queues."""
_EVENTS_BY_ID: Final = {("Changes", "Dead"): "changes", ("Reshard", "Lost"): "reshard", ("Reshard", "Missed"): "watch"}
_STACKS: Final = ("Data", "Api", "Commands", "Writer", "Changes", "Reshard", "Monitoring", "Prewarm")
_VARIABLES: Final = {"intake": "QUEUE", "operations": "OPERATIONS_QUEUE"}
_HASH: Final = re.compile("[0-9A-F]{8}$")
"""What CDK puts behind the name of a resource."""

Call = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
"""Calls an operation of SQS, such as `ReceiveMessage`."""
Ages = Callable[[Iterable[str]], Mapping[str, float]]
"""Returns the ages of the oldest messages of queues in seconds, by URL, as far as they are known."""


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue and its dead letters."""

    name: str
    url: str
    dead_letters_url: str


@dataclass(frozen=True, slots=True)
class Queues:
    """The queues of a backend, and the way to call SQS.

    Attributes:
        by_name: queues of messages, with their dead letters.
        events: URLs of dead-letter queues of events, by name.
        ages: returns the ages of messages.
    """

    call: Call
    by_name: Mapping[str, Queue]
    events: Mapping[str, str]
    ages: Ages

    def named(self, name: str) -> Queue:
        """Return the queue of some dead letters. Raises `CommandError` if they have none to be put back onto."""
        if name not in self.by_name:
            about, cure = EVENTS.get(name, "events"), _CURES.get(name, "see what is on it")
            raise CommandError(
                f"the dead letters of {name} are {about}, and have no queue to be put back onto: {cure}, then take "
                "them out with --to-file FILE"
            )
        return self.by_name[name]

    def dead_letters(self, name: str) -> str:
        """Return the URL of the dead-letter queue with this name. Raises `CommandError` if there is none."""
        urls = {**{each.name: each.dead_letters_url for each in self.by_name.values()}, **self.events}
        if name not in urls:
            raise CommandError(f"there is no queue {name!r}. There are: {', '.join(urls)}")
        return urls[name]


def reach(environment: str | None) -> Queues:
    """Find the queues of the local stack, whether or not it runs, or those of a deployed environment.

    Raises:
        CommandError: they cannot be found.

    Cost: deployed, what `environment_named` costs, 1 DescribeStacks, and 1 ListStackResources for each stack.
    """
    return _local() if environment is None else _deployed(environment_named(environment))


def _local() -> Queues:
    try:
        settings, templates = Settings.from_env(os.environ), committed()
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
    resources = templates.of_type("AWS::SQS::Queue")
    found = [(each.stack.rpartition("-")[2], each.logical_id, each.name) for each in resources]
    return Queues(QueueCalls(store).answer, queues, _events(found, queues), partial(_local_ages, store))


def _local_ages(store: QueueStore, urls: Iterable[str]) -> Mapping[str, float]:
    return {url: store.depth(url.rpartition("/")[2]).oldest_seconds for url in urls}


def _writer_variables(templates: Templates) -> Mapping[str, str]:
    name = function_named(templates, WRITER)
    [writer] = [each for each in templates.of_type("AWS::Lambda::Function") if each.name == name]
    variables: Mapping[str, str] = templates.resolve(writer.stack, writer.properties["Environment"]["Variables"])
    return variables


def _deployed(environment: Environment) -> Queues:
    outputs = environment.outputs("Writer")
    queues = {}
    for name in NAMES:
        keys = (f"{name.title()}Url", f"{name.title()}DeadLettersUrl")
        missing = [key for key in keys if key not in outputs]
        if missing:
            stack = environment.stack("Writer")
            raise CommandError(f"the stack {stack} has no output {missing[0]}: deploy it again from this version")
        queues[name] = Queue(name, outputs[keys[0]], outputs[keys[1]])
    found = [
        (stack, logical_id, url)
        for stack in _STACKS
        for logical_id, url in environment.resources(stack, "AWS::SQS::Queue").items()
    ]
    return Queues(
        _calls(environment.client("sqs")),
        queues,
        _events(found, queues),
        partial(_measured_ages, environment),
    )


def _calls(sqs: Any) -> Call:
    from botocore import xform_name  # noqa: PLC0415 - the local stack needs no SDK

    def call(operation: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        with aws_errors(f"the queue {request['QueueUrl'].rpartition('/')[2]} cannot be used"):
            answer: Mapping[str, Any] = getattr(sqs, xform_name(operation))(**request)
            return answer

    return call


def _events(found: Iterable[tuple[str, str, str]], queues: Mapping[str, Queue]) -> dict[str, str]:
    """Return the queues that are not those of messages: of stacks' queues with their logical ids and URLs."""
    known = {url for each in queues.values() for url in (each.url, each.dead_letters_url)}
    events: dict[str, str] = {}
    for stack, logical_id, url in found:
        if url not in known:
            bare = _HASH.sub("", logical_id)
            events[_EVENTS_BY_ID.get((stack, bare), f"{stack}-{bare}".lower())] = url
    return events


def _measured_ages(environment: Environment, urls: Iterable[str]) -> Mapping[str, float]:
    """Return ages by CloudWatch, which has none for queues that nobody has used for hours. Cost: 1 GetMetricData."""
    metrics = {
        url: Metric("AWS/SQS", "ApproximateAgeOfOldestMessage", {"QueueName": url.rpartition("/")[2]}) for url in urls
    }
    return latest(environment, metrics)
