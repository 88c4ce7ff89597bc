"""Removing all that is stored of an account."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from dynashard_serving.tenant_data import Held, Holdings, Scanned
from tools.failure import CommandError

MOST_PASSES: Final = 5
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


def found(holdings: Holdings, tenant: str, scanned: Scanned) -> Counter[str]:
    """What is stored of an account, by type. Cost: as one pass of `purge`."""
    kinds: Counter[str] = Counter()
    for items in holdings.stored(tenant, scanned):
        kinds.update(_kinds(items))
    return kinds


def purge(holdings: Holdings, tenant: str, *, scanned: Scanned, removed: Callable[[int], None]) -> Purged:
    """Remove all that is stored of an account, until a reading of the table finds nothing.

    What moves to another shard meanwhile, or is written by those who follow changes, is found by the next reading.
    It may be interrupted and run again at any time.

    Args:
        holdings: of the table.
        tenant: the account.
        scanned: told how many more stored items were looked at.
        removed: told how many more were removed.

    Raises:
        CommandError: somebody goes on writing.
        InputError: the name is none of an account.
        ConfigurationError: the keys of an entity do not tell whose they are.
        ThrottledError: throttling outlasted the retry policy.

    Cost: 1 read unit for every 4 KB of the whole table, twice, and for each item what deleting it costs.
    """
    done = Purged()
    while done.passes < MOST_PASSES:
        done.passes += 1
        before = done.total
        for items in holdings.stored(tenant, scanned):
            holdings.remove(items)
            done.removed.update(_kinds(items))
            removed(len(items))
        if done.total == before:
            return done
    raise CommandError(
        f"{done.total:,} stored items of {tenant} were removed, but others go on writing: revoke its tokens, try again"
    )


def _kinds(held: Sequence[Held]) -> Iterator[str]:
    return (each.kind or _OTHERS for each in held)
