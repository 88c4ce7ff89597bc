"""One round of BatchGetItem or BatchWriteItem requests, and what DynamoDB leaves unprocessed."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from dynashard.entity import ItemKey
from dynashard.errors import DynashardError, InputError, ThrottledError, TransactionConflictError
from dynashard.repository.projection import Reading
from dynashard.repository.retry_policy import BatchOperation, Unfinished, read_rounds
from dynashard.repository.store import Store
from dynashard.routing import StoredKey, stored_key, wire_key
from dynashard.transport.interface import Call, Wire

if TYPE_CHECKING:
    from dynashard.repository.write import Write

AT_A_TIME: Final = 16
_GET_LIMIT: Final = 100
_WRITE_LIMIT: Final = 25
_BATCH_GET: Final = BatchOperation("BatchGetItem", _GET_LIMIT * AT_A_TIME)
BATCH_WRITE: Final = BatchOperation("BatchWriteItem", _WRITE_LIMIT * AT_A_TIME)

T = TypeVar("T")


def get_all(
    store: Store,
    members: Iterable[T],
    reading: Reading,
    pauses: Iterator[float],
    *,
    key_of: Callable[[T], ItemKey],
    places_of: Callable[[Sequence[T]], Iterable[StoredKey]],
    send: Callable[[Sequence[Call]], list[Wire]] | None = None,
) -> dict[T, Wire]:
    """Read an item for each of some distinct members, leaving out those that are not stored; raises as `read_rounds`.

    `places_of` is asked before each request. `send` sends calls at the same time; by default the transport does.

    Cost: one BatchGetItem for 100 items, 16 at a time, and what one GetItem for each would cost.
    """
    found: dict[T, Wire] = {}
    options = reading.on({"ConsistentRead": False})

    def once(left: Sequence[T]) -> Unfinished[T]:
        at = dict(zip(places_of(left), left, strict=True))
        asked = [{"Keys": [wire_key(key) for key in chunk], **options} for chunk in chunks(list(at), _GET_LIMIT)]
        calls = [Call("BatchGetItem", {"RequestItems": {store.table: each}}, None, reading.reader) for each in asked]
        try:
            answers = (send or store.transport.call_all)(calls)
        except (ThrottledError, TransactionConflictError) as error:
            return Unfinished(left, error)
        unread: list[T] = []
        for answer in answers:
            for item in answer.get("Responses", {}).get(store.table, []):
                found[at[stored_key(item)]] = item
            keys = answer.get("UnprocessedKeys", {}).get(store.table, {}).get("Keys", [])
            unread += [at[stored_key(key)] for key in keys]
        return Unfinished(unread)

    read_rounds(_BATCH_GET, members, once, pauses, key_of)
    return found


def write_once(store: Store, writes: "Mapping[StoredKey, Write]") -> Unfinished[StoredKey]:
    """Put and delete items, each at its stored key and without its conditions. Returns what is not proved to be done.

    Each request has an outcome of its own: a write that succeeded is not repeated because another was throttled, which
    would undo what others have written since. DynamoDB refuses a request as a whole, so the writes of a request that
    it finds invalid are sent again, each by itself, to find the one that is at fault.

    Cost: one BatchWriteItem for 25 writes, 16 at a time, and what one write for each would cost.
    """
    answered = _answers(store, writes, list(chunks(list(writes), _WRITE_LIMIT)))
    suspects = [[key] for part, answer in answered if isinstance(answer, InputError) and len(part) > 1 for key in part]
    if suspects:
        whole = [(part, answer) for part, answer in answered if not isinstance(answer, InputError) or len(part) == 1]
        answered = [*whole, *_answers(store, writes, suspects)]
    errors: list[tuple[StoredKey, DynashardError]] = []
    returned: list[StoredKey] = []
    for part, answer in answered:
        if isinstance(answer, DynashardError):
            errors += [(key, answer) for key in part]
            continue
        actions = answer.get("UnprocessedItems", {}).get(store.table, [])
        requests = [request for action in actions for request in action.values()]
        returned += [stored_key(request.get("Item") or request["Key"]) for request in requests]
    rest = Unfinished.by_error(errors)
    return rest._replace(members=[*returned, *rest.members])


def _answers(
    store: Store, writes: "Mapping[StoredKey, Write]", parts: Sequence[Sequence[StoredKey]]
) -> list[tuple[Sequence[StoredKey], Wire | DynashardError]]:
    """Send a request for each part; return each part with its answer or error."""
    calls = [
        Call("BatchWriteItem", {"RequestItems": {store.table: [_action(key, writes[key]) for key in part]}})
        for part in parts
    ]
    return list(zip(parts, store.transport.try_all(calls), strict=True))


def chunks(members: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the members, `size` at a time."""
    return (members[at : at + size] for at in range(0, len(members), size))


def _action(key: StoredKey, write: "Write") -> Wire:
    if write.item is None:
        return {"DeleteRequest": {"Key": wire_key(key)}}
    return {"PutRequest": {"Item": write.stored(key[0])}}
