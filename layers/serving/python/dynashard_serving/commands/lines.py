"""The lines that a direct invocation leaves in the log: one for the request, and one for each item of a batch."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dynashard_serving.commands.request import CALLER
from dynashard_serving.documents import TENANT
from dynashard_serving.operations.described import code_of, described_item, described_requests, text_of
from dynashard_serving.operations.outcomes import Outcome
from dynashard_serving.operations.served import Served

_WRITTEN: Final = ("put", "delete")
"""Members of a batch of writes, and of its result."""


def described(event: Any, answer: Outcome, entities: Mapping[str, Served]) -> Iterator[dict[str, Any]]:
    """Yield what the log says of an answered request, whatever it was."""
    if not isinstance(event, Mapping):
        event = {}
    name, operation, caller = event.get("entity"), text_of(event.get("operation")), event.get(CALLER)
    served = entities.get(name) if isinstance(name, str) else None
    about = {"tenant": text_of(event.get(TENANT)), "operation": operation, "entity": text_of(name)}
    if isinstance(caller, Mapping):
        about["caller"] = text_of(caller.get("subject"))
    if served is not None:
        about["entity"] = served.name
        if answer["ok"]:
            yield from ({**about, **each} for each in _items(served, operation, event, answer["result"]))
        about |= described_item(served, event.get("key") or event.get("item"), answer)
    yield {**about, "code": code_of(answer)}


def _items(served: Served, operation: str | None, event: Mapping[str, Any], result: Any) -> Iterator[dict[str, Any]]:
    """Yield what the log says of each item of a batch that was done."""
    if operation == "batch":
        yield from described_requests(served, event["requests"], result)
    elif operation == "batch_write":
        for written in _WRITTEN:
            for given, outcome in zip(event.get(written) or (), result.get(written, ()), strict=False):
                yield {"operation": written, **described_item(served, given, outcome), "code": code_of(outcome)}
