"""Carries out resizes on the local engine, until standard input ends.

It takes the same steps as the state machine of a deployment. It may be killed at any moment: the next one continues
from the topology table.
"""

import os
import time
from collections.abc import Callable, Mapping
from threading import Event, Thread
from typing import Any, Final

from dynashard_serving.start import uncollected

with uncollected():
    from dynashard.growth.requests import shrink_quiet
    from dynashard.growth.settings import GrowthSettings
    from dynashard.growth.terms import Report
    from dynashard.key_clock import ClockBounds
    from dynashard.resharding import Resharder, Share, Timing
    from dynashard.resharding.driver import drive
    from dynashard.transport import Transport, connect
    from dynashard.transport.selection import name_in
    from dynashard_local.workers.lifecycle import end_with_input, log
    from dynashard_serving.domain import declared

CONCURRENCY: Final = 2
"""Tasks that are worked on at a time. The local engine executes one request at a time, so more would delay clients."""
SHRINK_SECONDS: Final = 3600.0
"""Between checks for counts that may be halved."""


def transport_of(environ: Mapping[str, str]) -> Transport:
    """Return the transport to the local engine, from the environment variables of the functions. Cost: no request."""
    return connect(
        transport=name_in(environ),
        endpoint_url=environ["DYNAMODB_ENDPOINT"],
        region=environ["AWS_REGION"],
        access_key=environ["AWS_ACCESS_KEY_ID"],
        secret_key=environ["AWS_SECRET_ACCESS_KEY"],
        operation_seconds=float(environ["TOPOLOGY_OPERATION_SECONDS"]),
    )


def resharder(environ: Mapping[str, str], transport: Transport | None = None) -> Resharder:
    """Return what changes shard counts, from the environment variables of the functions. Cost: no request."""
    return Resharder(
        transport or transport_of(environ),
        table=environ["TABLE_NAME"],
        topology_table=environ["TOPOLOGY_TABLE"],
        entities=list(declared().models),
        timing=timing(environ),
        concurrency=CONCURRENCY,
        share=Share(growth(environ).mover_share),
        most_seconds=60 * growth(environ).most_minutes,
    )


def timing(environ: Mapping[str, str]) -> Timing:
    """Return the times that bound how long a process may use an old view."""
    return Timing(
        lease=float(environ["TOPOLOGY_LEASE_SECONDS"]),
        operation=float(environ["TOPOLOGY_OPERATION_SECONDS"]),
        skew=float(environ["TOPOLOGY_SKEW_SECONDS"]),
        # The local engine applies a transaction at once, and all its reads are consistent.
        lag=0.0,
        clocks=ClockBounds(
            off=float(environ["TOPOLOGY_CLOCK_SECONDS"]), ahead=float(environ["TOPOLOGY_AHEAD_SECONDS"])
        ),
    )


def growth(environ: Mapping[str, str]) -> GrowthSettings:
    """Return how counts change by themselves; raises `ConfigurationError`."""
    mode: Any = environ["GROWTH_MODE"]
    return GrowthSettings(
        mode,
        float(environ["GROWTH_COOLDOWN_SECONDS"]),
        float(environ["GROWTH_QUIET_SECONDS"]),
        most_minutes=float(environ["GROWTH_MOST_MINUTES"]),
        mover_share=float(environ["GROWTH_MOVER_SHARE"]),
    )


def shrink_hourly(
    check: Callable[[], object], *, stop: Callable[[], bool], sleep: Callable[[float], None], log: Callable[[str], None]
) -> None:
    """Check for counts that may be halved, at once and then every hour, until `stop` returns true.

    A failed check is logged.
    """
    while not stop():
        try:
            check()
        except Exception as error:  # noqa: BLE001 - the next check follows after any error
            log(f"counts could not be checked: {error!r}")
        sleep(SHRINK_SECONDS)


def main() -> None:
    """Work until standard input ends."""
    end_with_input()
    never = Event()
    transport = transport_of(os.environ)
    worker = resharder(os.environ, transport)

    def check() -> None:
        shrink_quiet(worker, settings=growth(os.environ), report=_report_resize)

    hourly = {"stop": never.is_set, "sleep": time.sleep, "log": log}
    Thread(target=shrink_hourly, args=[check], kwargs=hourly, daemon=True).start()
    drive(worker, stop=never.is_set, sleep=time.sleep, log=log)


def _report_resize(report: Report) -> None:
    log(f"{report.event}: {report.reason}")


if __name__ == "__main__":
    main()
