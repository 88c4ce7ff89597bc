"""The lines that a direct invocation leaves in the log: one for the request, and one for each item of a batch."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dynashard_serving.documents import REVISION, TENANT
from dynashard_serving.operations.outcomes import Outcome
from dynashard_serving.operations.served import Served

_WRITTEN: Final = ("put", "delete")
"""Members of a batch of writes, and of its result."""


def described(event: Any, answer: Outcome, entities: Mapping[str, Served]) -> Iterator[dict[str, Any]]:
    """Yield what the log says of an answered request, whatever it was."""
    if not isinstance(event, Mapping):
        event = {}
    name, operation = event.get("entity"), _text(event.get("operation"))
    served = entities.get(name) if isinstance(name, str) else None
    about = {"tenant": _text(event.get(TENANT)), "operation": operation, "entity": _text(name)}
    if served is not None:
        about["entity"] = served.name
        if operation == "batch_write" and answer["ok"]:
            for written in _WRITTEN:
                given = event.get(written)
                for key, outcome in zip(given or (), answer["result"].get(written, ()), strict=False):
                    yield {**about, "operation": written, **_item(served, key, outcome), "code": _code(outcome)}
        about |= _item(served, event.get("key") or event.get("item"), answer)
    yield {**about, "code": _code(answer)}


def _item(served: Served, given: Any, outcome: Outcome) -> dict[str, Any]:
    """Return the item of an outcome and its revision. The result has both, unless the item was deleted."""
    result = outcome["result"] if outcome["ok"] else None
    document = result.get("item", result) if isinstance(result, Mapping) else None
    for each in (document, given):
        if isinstance(each, Mapping) and (name := served.item_name(each)) is not None:
            return {"item": name, "revision": _text(each.get(REVISION))}
    return {}


def _code(outcome: Outcome) -> str | None:
    return None if outcome["ok"] else str(outcome["error"]["code"])


def _text(value: Any) -> str | None:
    return value[:200] if isinstance(value, str) else None
