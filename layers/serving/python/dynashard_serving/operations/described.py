"""What the log says of the items of a request: their names, revisions and codes, the same for every function."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from dynashard_serving.documents import REVISION
from dynashard_serving.operations.outcomes import Outcome
from dynashard_serving.operations.served import Served

_LONGEST: Final = 200


def described_requests(
    served: Served, requests: Iterable[Any], outcomes: Iterable[Outcome]
) -> Iterator[dict[str, Any]]:
    """Yield what the log says of each request of a mixed batch, in their order."""
    for given, outcome in zip(requests, outcomes, strict=False):
        about = given.get("key") or given.get("item")
        yield {
            "operation": text_of(given.get("operation")),
            "entity": served.name,
            **described_item(served, about, outcome),
            "code": code_of(outcome),
        }


def described_item(served: Served, given: Any, outcome: Outcome) -> dict[str, Any]:
    """Return the name and the revision of the item that an outcome is about; nothing if it is not known.

    The result has both, unless the item was deleted or its write refused. `given` is the key or the item that the
    request names.
    """
    result = outcome["result"] if outcome["ok"] else None
    # An item may itself have a field `item`, so the result of a put, which has the item in that member, comes second.
    nested = result.get("item") if isinstance(result, Mapping) else None
    for each in (result, nested, given):
        if isinstance(each, Mapping) and (name := served.item_name(each)) is not None:
            return {"item": name, "revision": text_of(each.get(REVISION))}
    return {}


def code_of(outcome: Outcome) -> str | None:
    """Return the code of a refusal; None of a result."""
    return None if outcome["ok"] else str(outcome["error"]["code"])


def text_of(value: Any) -> str | None:
    """Return a text that a caller sent, as far as the log holds it; None for anything else."""
    return value[:_LONGEST] if isinstance(value, str) else None
