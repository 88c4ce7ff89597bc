"""Purges an account of a backend, and records it so that a restore can repeat it."""

from collections.abc import Callable
from functools import partial

from dynashard_tools.account.purging import Purged, purge
from dynashard_tools.account.tenant_data import Scanned, TenantData
from dynashard_tools.connection import Backend
from dynashard_tools.entities import models
from dynashard_tools.topology.facts import largest_count


def tenant_data(backend: Backend, kind: type[TenantData] = TenantData) -> TenantData:
    """Return the stored items of a backend's accounts, as far as `kind` finds them. Cost: none."""
    largest = partial(largest_count, backend.topology)
    return kind(backend.transport, backend.table, models(), largest_count=largest)


def purged(
    backend: Backend,
    tenant: str,
    scanned: Scanned,
    removed: Callable[[int], None],
    kind: type[TenantData] = TenantData,
) -> Purged:
    """Purge a tenant, with a record of it. Raises as `purge`; nothing is removed if the record cannot be written."""
    data = tenant_data(backend, kind)
    # A restore repeats what is recorded, so a purge that is refused is not: this refuses, and reads no items.
    data.stored(tenant, scanned)
    records = backend.purge_records()
    record = records.begin(tenant, backend.table)
    done = purge(data, tenant, scanned=scanned, removed=removed)
    records.end(record, done.total)
    return done
