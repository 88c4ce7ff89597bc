"""Batches: as many requests as it takes, sent again until DynamoDB has processed all or the time is up."""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dynashard.errors import ThrottledError, UnprocessedError
from dynashard.schema import PK, SK
from dynashard.transport.interface import Call, Transport, Wire

GET_LIMIT: Final = 100
WRITE_LIMIT: Final = 25

StoredKey = tuple[str, str]


def stored_key(item: Mapping[str, Any]) -> StoredKey:
    """The stored key of an item or key in DynamoDB JSON."""
    return item[PK]["S"], item[SK]["S"]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to go on with what DynamoDB leaves unprocessed.

    Attributes:
        seconds: how long after the first request to give up.
        first_pause, longest_pause: bounds of the exponential backoff, in seconds; pauses are drawn evenly from
            zero to the bound (full jitter).
        clock, sleep, random: injected in tests.
    """

    seconds: float = 20.0
    first_pause: float = 0.05
    longest_pause: float = 5.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    random: Callable[[], float] = random.random

    def pauses(self) -> Iterator[float]:
        """Pause before each next attempt, in seconds, ending when the time is up."""
        deadline = self.clock() + self.seconds
        bound = self.first_pause
        while True:
            pause = self.random() * bound
            if self.clock() + pause > deadline:
                return
            self.sleep(pause)
            yield pause
            bound = min(bound * 2, self.longest_pause)


def get_all(
    transport: Transport, table: str, keys: Sequence[Wire], *, consistent: bool, patience: Patience
) -> dict[StoredKey, Wire]:
    """Stored items by key, for keys that differ; those that are not stored are left out.

    Raises:
        UnprocessedError: with the stored keys that were not read in time.

    Cost: one BatchGetItem for 100 keys, and what one GetItem for each key would cost.
    """
    found: dict[StoredKey, Wire] = {}
    left = list(keys)
    pauses = patience.pauses()
    while left:
        calls = [
            Call("BatchGetItem", {"RequestItems": {table: {"Keys": list(chunk), "ConsistentRead": consistent}}})
            for chunk in _chunks(left, GET_LIMIT)
        ]
        throttled = None
        try:
            answers = transport.call_all(calls)
        except ThrottledError as error:
            throttled = error
        else:
            left = []
            for answer in answers:
                found.update((stored_key(item), item) for item in answer.get("Responses", {}).get(table, []))
                left += answer.get("UnprocessedKeys", {}).get(table, {}).get("Keys", [])
        if left and next(pauses, None) is None:
            raise _unprocessed("BatchGetItem", left) from throttled
    return found


def write_all(transport: Transport, table: str, actions: Sequence[Wire], *, patience: Patience) -> None:
    """Do all actions (`PutRequest`, `DeleteRequest`), no two of them on one key.

    Raises:
        UnprocessedError: with the stored keys that were not written in time.

    Cost: one BatchWriteItem for 25 actions, and what one write for each would cost.
    """
    left = list(actions)
    pauses = patience.pauses()
    while left:
        calls = [Call("BatchWriteItem", {"RequestItems": {table: chunk}}) for chunk in _chunks(left, WRITE_LIMIT)]
        throttled = None
        try:
            answers = transport.call_all(calls)
        except ThrottledError as error:
            # Some of the batches may have been written; writing them again changes nothing.
            throttled = error
        else:
            left = [action for answer in answers for action in answer.get("UnprocessedItems", {}).get(table, [])]
        if left and next(pauses, None) is None:
            raise _unprocessed("BatchWriteItem", [action_key(action) for action in left]) from throttled


def action_key(action: Wire) -> Wire:
    """The stored key that an action of a batch writes."""
    if "PutRequest" in action:
        item = action["PutRequest"]["Item"]
        return {PK: item[PK], SK: item[SK]}
    key: Wire = action["DeleteRequest"]["Key"]
    return key


def _chunks(members: list[Wire], size: int) -> Iterable[list[Wire]]:
    return (members[i : i + size] for i in range(0, len(members), size))


def _unprocessed(operation: str, keys: list[Wire]) -> UnprocessedError:
    return UnprocessedError(
        f"DynamoDB left {len(keys)} keys of a batch unprocessed; send these again later",
        operation=operation,
        keys=[{PK: key[PK]["S"], SK: key[SK]["S"]} for key in keys],
    )
