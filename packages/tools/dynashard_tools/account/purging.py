"""Removes everything that is stored of an account."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from dynashard_tools.account.tenant_data import Scanned, StoredItem, TenantData
from dynashard_tools.failure import CommandError

MOST_PASSES: Final = 5
_OTHERS: Final = "markers and others"


@dataclass
class Purged:
    """The number of removed items by their type, and how often the table was read; the last reading found nothing."""

    removed: Counter[str] = field(default_factory=Counter)
    passes: int = 0

    @property
    def total(self) -> int:
        """How many stored items were removed."""
        return self.removed.total()


def found(data: TenantData, tenant: str, scanned: Scanned) -> Counter[str]:
    """Count what is stored of an account, by type. Cost: as one pass of `purge`."""
    kinds: Counter[str] = Counter()
    for items in data.stored(tenant, scanned):
        kinds.update(_kinds(items))
    return kinds


def purge(data: TenantData, tenant: str, *, scanned: Scanned, removed: Callable[[int], None]) -> Purged:
    """Remove everything that is stored of an account, until a reading of the table finds nothing.

    The next reading finds what moves to another shard meanwhile, and what stream consumers write. A purge may be
    interrupted and run again at any time. `scanned` and `removed` are called with numbers of stored items.

    Raises:
        CommandError: others continue to write.
        InputError: the name is not that of a tenant.
        ConfigurationError: the keys of an entity do not say which tenant owns an item.
        ThrottledError: throttling outlasted the retry policy.

    Cost: 1 read unit for every 4 KB of the whole table, twice, and for each item what deleting it costs.
    """
    done = Purged()
    while done.passes < MOST_PASSES:
        done.passes += 1
        before = done.total
        for items in data.stored(tenant, scanned):
            data.remove(items)
            done.removed.update(_kinds(items))
            removed(len(items))
        if done.total == before:
            return done
    raise CommandError(
        f"{done.total:,} stored items of {tenant} were removed, but new ones are being written: revoke its tokens, and "
        "run the command again"
    )


def _kinds(held: Sequence[StoredItem]) -> Iterator[str]:
    return (each.kind or _OTHERS for each in held)
