"""The settings of the local worker that changes shard counts: those of the functions, but for its engine."""

from typing import Final

import pytest

from dynashard_local.workers.resharding import WorkerSettings
from dynashard_serving.reshard.settings import Settings

pytestmark = pytest.mark.unit

TIMES: Final = {"TOPOLOGY_LEASE_SECONDS": "2", "TOPOLOGY_SKEW_SECONDS": "0.5"}
ENVIRON: Final = {"TABLE_NAME": "t", "TOPOLOGY_TABLE": "u", **TIMES}


def test_the_local_worker_neither_waits_for_replicas_nor_does_many_tasks_at_once() -> None:
    local, deployed = WorkerSettings.from_env(ENVIRON), Settings.from_env(ENVIRON)

    assert (local.timing.lag, local.timing.lease, local.timing.skew) == (0.0, 2.0, 0.5)
    assert deployed.timing.lag > 0
    assert (local.concurrency, deployed.concurrency) == (2, 8)
    assert WorkerSettings.from_env({**ENVIRON, "CONCURRENCY": "1"}).concurrency == 1
