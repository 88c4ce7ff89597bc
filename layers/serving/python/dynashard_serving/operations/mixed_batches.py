"""A batch of reads and writes of an entity, each of which is done by itself, as if it had been sent alone.

Nothing holds them together: no order, no transaction. So each outcome is as true as the answer to a single request, and
a batch whose answer was lost can be repeated as its parts can: a get always, a create with its idempotency key, a put
or a delete with `if_match`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from dynashard.errors import DynashardError, FieldError, InputError, InvalidKeyError, ValidationFailedError
from dynashard.transport.worker_pool import WorkerPool
from dynashard_serving.access import Caller
from dynashard_serving.documents import REVISION, Document, written
from dynashard_serving.limits import LONGEST_SECONDS, MAX_ANSWER_BYTES, MAX_MIXED
from dynashard_serving.operations.accepting import item_of
from dynashard_serving.operations.batches import Batches, Refusals, fitting
from dynashard_serving.operations.conditions import UNCONDITIONAL, Conditions, Revisions
from dynashard_serving.operations.item_writes import ItemWrites
from dynashard_serving.operations.outcomes import Outcome, done
from dynashard_serving.operations.pages import answer_bytes
from dynashard_serving.operations.requests import BatchGet, Create, Delete, Put, Update
from dynashard_serving.operations.served import Served

REQUESTS: Final = "requests"
MEMBERS: Final[Mapping[str, Sequence[str]]] = {
    "get": ("key", "consistent"),
    "create": ("item", "idempotency_key"),
    "put": ("item", "if_match", "if_none_match"),
    "update": ("key", "patch", "if_match"),
    "delete": ("key", "if_match"),
}
"""The operations of a batch, and the members that a request for each has."""
_WORKERS: Final = 8
"""Writes of a batch that are under way at the same time."""
_KINDS: Final[Mapping[str, tuple[type | tuple[type, ...], str]]] = {
    "key": (dict, "an object"),
    "item": (dict, "an object"),
    "patch": ((dict, list), "an object, or a list of operations"),
    "consistent": (bool, "true or false"),
    "idempotency_key": (str, "a text"),
    "if_match": (str, "a revision, or *"),
    "if_none_match": (str, "*"),
}


@dataclass(frozen=True, slots=True)
class MixedBatch:
    """Requests for items of an entity, as their sender wrote them.

    Attributes:
        tenant: whose they are.
        requests: objects with an `operation`, and its `MEMBERS`.
        idempotency_key: that of the batch: creates without one of their own are recognised by it and their place.
        seconds: how long the batch can still take.
        caller: who sends it. Each request is judged as if it had been sent alone.
    """

    tenant: str
    requests: Sequence[Document]
    idempotency_key: str | None = None
    seconds: float = LONGEST_SECONDS
    caller: Caller | None = None


class MixedBatches:
    """Does batches. Safe to share between threads."""

    def __init__(self, batches: Batches, writes: ItemWrites) -> None:
        self._batches = batches
        self._writes = writes
        self._workers = WorkerPool(_WORKERS - 1)

    def run(self, served: Served, batch: MixedBatch) -> list[Outcome]:
        """Do the requests: an outcome for each, in their order.

        A get has the item as its result, a create and an update what is stored, a put `item` and `created`, and a
        delete null. If one answer cannot hold all of them, gets are refused as `answer_too_large`, and results of
        writes name only the key and the `revision`.

        Raises:
            ValidationFailedError: there are too many requests, or one has no known operation or a wrong member.

        Cost: that of each by itself; gets take 1 round trip together, writes 1 for 8 of them.
        """
        served.require("batch")
        _refuse_malformed(batch.requests)
        refusals = Refusals()
        outcomes = self._gets(served, batch, refusals)
        writes = {at: each for at, each in enumerate(batch.requests) if each["operation"] != "get"}
        writes = _without_repeated(served, batch.tenant, writes, outcomes, refusals)

        def write(at: int) -> Outcome:
            try:
                return done(self._written(served, batch, at))
            except DynashardError as error:
                return refusals.of(error)

        outcomes |= zip(writes, self._workers.run(write, list(writes), _WORKERS), strict=True)
        return _fitting(served, batch, [outcomes[at] for at in range(len(batch.requests))])

    def _gets(self, served: Served, batch: MixedBatch, refusals: Refusals) -> dict[int, Outcome]:
        found: dict[int, Outcome] = {}
        gets: dict[bool, list[int]] = {False: [], True: []}
        for at, each in enumerate(batch.requests):
            if each["operation"] != "get":
                continue
            try:
                # Keys at fault are named by their request, not by their place among all keys that are read.
                served.definition.key_of(served.key(each["key"], batch.tenant))
                gets[bool(each.get("consistent"))].append(at)
            except InputError as error:
                found[at] = refusals.of(error)
        for consistent, places in gets.items():
            if not places:
                continue
            keys = [batch.requests[at]["key"] for at in places]
            try:
                answers = self._batches.get(served, BatchGet(batch.tenant, keys, consistent, batch.caller))
            except DynashardError as error:
                answers = [refusals.of(error) for _ in places]
            found |= zip(places, answers, strict=True)
        return found

    def _written(self, served: Served, batch: MixedBatch, at: int) -> Any:
        given, tenant, caller = batch.requests[at], batch.tenant, batch.caller
        match given["operation"]:
            case "create":
                key = given.get("idempotency_key")
                key = _key_of(batch, at) if key is None else key
                create = Create(tenant, given["item"], None, key, batch.seconds, caller)
                return self._writes.create(served, create).document
            case "put":
                stored = self._writes.put(
                    served, Put(tenant, given["item"], conditions=_conditions(given), caller=caller)
                )
                return {"item": stored.document, "created": stored.created}
            case "update":
                update = Update(served.key(given["key"], tenant), given["patch"], _conditions(given), caller=caller)
                return self._writes.update(served, update)
            case _:
                self._writes.delete(served, Delete(served.key(given["key"], tenant), _conditions(given), caller=caller))
                return None


def _key_of(batch: MixedBatch, at: int) -> str | None:
    if batch.idempotency_key is None:
        return None
    return f"batch:{sha256(batch.idempotency_key.encode()).hexdigest()[:40]}:{at}"


def _conditions(given: Document) -> Conditions:
    match, none_match = given.get("if_match"), given.get("if_none_match")
    if match is None and none_match is None:
        return UNCONDITIONAL
    return Conditions(
        None if match is None else Revisions.named([match]),
        None if none_match is None else Revisions.named([none_match]),
    )


def requests_in(given: Mapping[str, Any]) -> list[Any]:
    """Return the member `requests` of a batch, or refuse what is not a list (422)."""
    requests = given.get(REQUESTS)
    if not isinstance(requests, list):
        raise ValidationFailedError(FieldError(REQUESTS, "Use a list of requests.", "list_type"))
    return requests


def _refuse_malformed(requests: Sequence[Any]) -> None:
    """Refuse a batch with a request that could not have been sent alone: nothing is done then."""
    if not 1 <= len(requests) <= MAX_MIXED:
        message = f"There are {len(requests)} requests; send 1 to {MAX_MIXED}."
        raise ValidationFailedError(FieldError(REQUESTS, message, "out_of_range"))
    errors = [error for at, each in enumerate(requests) for error in _errors_in(each, f"{REQUESTS}.{at}")]
    if errors:
        raise ValidationFailedError(*errors)


def _errors_in(given: Any, place: str) -> list[FieldError]:
    if not isinstance(given, dict):
        return [FieldError(place, "Use an object.", "object_type")]
    operation = given.get("operation")
    if not isinstance(operation, str) or operation not in MEMBERS:
        return [FieldError(f"{place}.operation", f"Use one of {', '.join(MEMBERS)}.", "enum")]
    members = MEMBERS[operation]
    errors = [
        FieldError(f"{place}.{name}", f"{operation} takes {', '.join(members)} besides.", "unknown_parameter")
        for name in given
        if name not in (*members, "operation")
    ]
    needed = members[: 2 if operation == "update" else 1]
    errors += [
        FieldError(f"{place}.{name}", f"{operation} needs this.", "missing")
        for name in needed
        if given.get(name) is None
    ]
    for name in members:
        kind, what = _KINDS[name]
        if given.get(name) is not None and not isinstance(given[name], kind):
            errors.append(FieldError(f"{place}.{name}", f"Use {what}.", "wrong_type"))
    return errors


def _without_repeated(
    served: Served, tenant: str, writes: dict[int, Document], outcomes: dict[int, Outcome], refusals: Refusals
) -> dict[int, Document]:
    """The writes whose key no other one has; the others are refused, because no order would decide between them."""
    by_key: dict[Any, list[int]] = {}
    for at, given in writes.items():
        try:
            by_key.setdefault(_key_written(served, tenant, given), []).append(at)
        except InputError:
            # Its own write has the error.
            by_key[at] = [at]
    for places in by_key.values():
        if len(places) > 1:
            repeated = InvalidKeyError("This key is written twice in this batch; send it once.")
            outcomes |= {at: refusals.of(repeated) for at in places}
    return {at: given for at, given in writes.items() if at not in outcomes}


def _key_written(served: Served, tenant: str, given: Document) -> Any:
    if given["operation"] in ("update", "delete"):
        return served.definition.key_of(served.key(given["key"], tenant))
    if any(given["item"].get(name) is None for name in served.key_fields):
        # The server gives it a new key, or refuses it.
        raise InputError("the item has no key yet")
    put = Put(tenant, given["item"])
    return served.definition.key_of(item_of(served, put))


def _fitting(served: Served, batch: MixedBatch, outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes, of which those of writes come first where one answer cannot hold all: they must not be lost."""
    wrote = [at for at, each in enumerate(batch.requests) if each["operation"] != "get"]
    room, kept = MAX_ANSWER_BYTES, dict(enumerate(outcomes))
    if answer_bytes(written(list(outcomes))) <= room:
        return list(outcomes)
    for at in wrote:
        kept[at] = _short(served, batch.requests[at]["operation"], outcomes[at])
        room -= answer_bytes(written(kept[at]))
    gets = [at for at in kept if at not in set(wrote)]
    kept |= zip(gets, fitting([kept[at] for at in gets], room), strict=True)
    return [kept[at] for at in range(len(outcomes))]


def _short(served: Served, operation: str, outcome: Outcome) -> Outcome:
    """The outcome of a write with the key and the revision of what it stored, instead of all of it."""
    result = outcome.get("result")
    if result is None:
        return outcome
    # An item may itself have fields that are called like the members of a put's result.
    document = result["item"] if operation == "put" else result
    named = {name: document[name] for name in (*served.key_fields, REVISION)}
    return done({"item": named, "created": result["created"]} if operation == "put" else named)
