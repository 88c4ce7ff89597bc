"""One round of a batch: as many requests at once as it takes, and what DynamoDB leaves of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from dynashard.entity import ItemKey
from dynashard.errors import DynashardError, EngineError, OutcomeUnknownError, ThrottledError, TransactionConflictError
from dynashard.repository.retry_policy import Left, run_rounds
from dynashard.repository.store import Store
from dynashard.repository.writes import Write
from dynashard.schema import EXPIRES_AT, MOVED_TO, PK, SK
from dynashard.transport.interface import Call, Wire

GET_LIMIT: Final = 100
WRITE_LIMIT: Final = 25
_AT_A_TIME: Final = 16
GET_WAVE: Final = GET_LIMIT * _AT_A_TIME
WRITE_WAVE: Final = WRITE_LIMIT * _AT_A_TIME

StoredKey = tuple[str, str]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reading:
    """How items are read.

    Attributes:
        consistent: see every write that was acknowledged before.
        fields: a projection, which includes those of `LIVENESS`; None for whole items.
    """

    consistent: bool
    fields: str | None = None

    def on(self, request: Wire) -> Wire:
        """The request with these options; without any it is as it was."""
        if self.consistent:
            request["ConsistentRead"] = True
        if self.fields is not None:
            request["ProjectionExpression"] = self.fields
        return request


LIVENESS: Final = f"{PK}, {SK}, {EXPIRES_AT}, {MOVED_TO}"
"""The projection that tells whether an item is live, and which it is."""


def wire_key(key: StoredKey) -> Wire:
    """A stored key in DynamoDB JSON."""
    return {PK: {"S": key[0]}, SK: {"S": key[1]}}


def stored_key(item: Mapping[str, Any]) -> StoredKey:
    """The stored key of an item or key in DynamoDB JSON."""
    return item[PK]["S"], item[SK]["S"]


def get_once(
    store: Store,
    keys: Sequence[StoredKey],
    reading: Reading,
    found: dict[StoredKey, Wire],
    send: Callable[[Sequence[Call]], list[Wire]] | None = None,
) -> Left[StoredKey]:
    """Read stored items into `found`, by keys that differ; those that are not stored are left out.

    `send` sends calls at the same time, in place of the store's own transport.

    Cost: one BatchGetItem for 100 keys, 16 at a time, and what one GetItem for each key would cost.
    """
    options = reading.on({"ConsistentRead": False})
    calls = [
        Call("BatchGetItem", {"RequestItems": {store.table: {"Keys": [wire_key(key) for key in chunk], **options}}})
        for chunk in chunks(keys, GET_LIMIT)
    ]
    try:
        answers = (send or store.transport.call_all)(calls)
    except (ThrottledError, TransactionConflictError) as error:
        return Left(keys, error)
    left: list[StoredKey] = []
    for answer in answers:
        found.update((stored_key(item), item) for item in answer.get("Responses", {}).get(store.table, []))
        left += [stored_key(key) for key in answer.get("UnprocessedKeys", {}).get(store.table, {}).get("Keys", [])]
    return Left(left)


def get_all(
    store: Store,
    keys: Mapping[StoredKey, ItemKey],
    reading: Reading,
    pauses: Iterator[float],
    send: Callable[[Sequence[Call]], list[Wire]] | None = None,
) -> dict[StoredKey, Wire]:
    """Read stored items, each named by its key, until all have been read; those that are not stored are left out.

    Raises:
        UnprocessedError: DynamoDB left keys unread for too long.

    Cost: as `get_once`.
    """
    found: dict[StoredKey, Wire] = {}
    run_rounds(
        keys,
        lambda left: get_once(store, left, reading, found, send),
        pauses,
        wave=GET_WAVE,
        operation="BatchGetItem",
        key_of=keys.__getitem__,
    )
    return found


def write_once(store: Store, writes: Mapping[StoredKey, Write]) -> Left[StoredKey]:
    """Put and delete items, each at its stored key and without its conditions.

    Each batch has an outcome of its own: what was written is not written again because another was throttled, which
    would undo what others have written since.

    Cost: one BatchWriteItem for 25 writes, 16 at a time, and what one write for each would cost.
    """
    parts = list(chunks(list(writes), WRITE_LIMIT))
    requests = [{"RequestItems": {store.table: [_action(key, writes[key]) for key in part]}} for part in parts]
    left: list[StoredKey] = []
    unknown: list[StoredKey] = []
    causes: list[EngineError] = []
    failed: DynashardError | None = None
    for part, answer in zip(parts, store.transport.try_all([Call("BatchWriteItem", r) for r in requests]), strict=True):
        if isinstance(answer, OutcomeUnknownError):
            unknown += part
        elif isinstance(answer, ThrottledError | TransactionConflictError):
            left += part
            causes.append(answer)
        elif isinstance(answer, DynashardError):
            failed = failed or answer
        else:
            left += [_key_of(action) for action in answer.get("UnprocessedItems", {}).get(store.table, [])]
    if failed is not None:
        raise failed
    return Left(left, next(iter(causes), None), unknown)


def chunks(members: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """The members, `size` at a time."""
    return (members[at : at + size] for at in range(0, len(members), size))


def _action(key: StoredKey, write: Write) -> Wire:
    if write.item is None:
        return {"DeleteRequest": {"Key": wire_key(key)}}
    return {"PutRequest": {"Item": {**wire_key(key), **write.item}}}


def _key_of(action: Wire) -> StoredKey:
    [(_, request)] = action.items()
    return stored_key(request.get("Item") or request["Key"])
