"""Purges an account of a backend, and records it so that a restore can repeat it."""

from collections.abc import Callable
from functools import partial

from dynashard_tools.account.purging import Purged, purge
from dynashard_tools.account.tenant_data import Scanned, TenantData, require_tenant
from dynashard_tools.connection import Backend
from dynashard_tools.entities import models
from dynashard_tools.topology.facts import largest_count


def tenant_data(backend: Backend) -> TenantData:
    """Return the stored items of a backend's accounts. Cost: none."""
    largest = partial(largest_count, backend.topology)
    return TenantData(backend.transport, backend.table, models(), largest_count=largest)


def purged(backend: Backend, tenant: str, scanned: Scanned, removed: Callable[[int], None]) -> Purged:
    """Purge a tenant, with a record of it. Raises as `purge`; nothing is removed if the record cannot be written."""
    # A restore repeats what is recorded, so a name that would be refused is not.
    require_tenant(tenant)
    records = backend.purge_records()
    record = records.begin(tenant, backend.table)
    done = purge(tenant_data(backend), tenant, scanned=scanned, removed=removed)
    records.end(record, done.total)
    return done
