"""Removing all that is stored of an account."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dynashard import Patience
from dynashard.errors import ThrottledError
from dynashard.repository.batch import chunks
from dynashard.schema import PK, SK, TYPE
from dynashard.transport.interface import Call, Wire
from tools.account.finding import Scanned, stored_keys
from tools.connection import Backend
from tools.failure import CommandError

MOST_PASSES: Final = 5
_BATCH: Final = 25
_WAVE: Final = 8
_OTHERS: Final = "marks and others"


@dataclass
class Purged:
    """What was found and removed.

    Attributes:
        removed: stored items by their type.
        passes: how often the table was read; the last time there was nothing.
    """

    removed: Counter[str] = field(default_factory=Counter)
    passes: int = 0

    @property
    def total(self) -> int:
        """How many stored items were removed."""
        return self.removed.total()


def found(backend: Backend, tenant: str, scanned: Scanned) -> Counter[str]:
    """What is stored of an account, by type. Cost: as one pass of `purge`."""
    kinds: Counter[str] = Counter()
    for items in stored_keys(backend, tenant, scanned):
        kinds.update(_kind(item) for item in items)
    return kinds


def purge(backend: Backend, tenant: str, *, scanned: Scanned, removed: Callable[[int], None]) -> Purged:
    """Remove all that is stored of an account, until a reading of the table finds nothing.

    What moves to another shard meanwhile, or is written by those who follow changes, is found by the next reading.
    It may be interrupted and run again at any time.

    Args:
        backend: where.
        tenant: the account.
        scanned: told how many more stored items were looked at.
        removed: told how many more were removed.

    Raises:
        CommandError: somebody goes on writing.
        ThrottledError: throttling outlasted patience.

    Cost: 1 read unit for every 4 KB of the whole table, twice, and for each item what deleting it costs.
    """
    done = Purged()
    while done.passes < MOST_PASSES:
        done.passes += 1
        before = done.total
        for items in stored_keys(backend, tenant, scanned):
            _delete(backend, items)
            done.removed.update(_kind(item) for item in items)
            removed(len(items))
        if done.total == before:
            return done
    raise CommandError(
        f"{done.total:,} stored items of {tenant} were removed, but others go on writing: revoke its tokens, try again"
    )


def _kind(item: Wire) -> str:
    return str(item.get(TYPE, {}).get("S", _OTHERS))


def _delete(backend: Backend, items: Sequence[Wire]) -> None:
    left: Sequence[Any] = [{"DeleteRequest": {"Key": {name: item[name] for name in (PK, SK)}}} for item in items]
    pauses = Patience().pauses()
    while left:
        left = [again for wave in chunks(left, _BATCH * _WAVE) for again in _sent(backend, wave)]
        if left and next(pauses, None) is None:
            raise ThrottledError(
                f"{len(left):,} stored items could not be removed in time: purge again later",
                operation="BatchWriteItem",
                aws_code="",
            )


def _sent(backend: Backend, wave: Sequence[Any]) -> list[Any]:
    """What is left of some deletes."""
    calls = [Call("BatchWriteItem", {"RequestItems": {backend.table: batch}}) for batch in chunks(wave, _BATCH)]
    try:
        answers = backend.transport.call_all(calls, concurrency=_WAVE)
    except ThrottledError:
        return list(wave)
    return [each for answer in answers for each in answer.get("UnprocessedItems", {}).get(backend.table, [])]
