"""`python -m local.resharding`: carries out changes of shard counts on the local engine, until standard input ends.

It does what a deployed backend does with a state machine, by the same steps. It may be killed at any moment: whoever
is started next goes on where the topology table says that things stand.
"""

import os
import time
from collections.abc import Callable, Mapping
from threading import Event, Thread
from typing import Any, Final

from domain import ENTITIES
from dynashard.resharding import Resharder, Timing
from dynashard.transport import Transport, connect
from dynashard_serving.growth_policy import GrowthSettings, Report
from dynashard_serving.growth_requests import shrink_quiet
from local.beside import end_with_input, log
from local.driver import drive

SHRINK_SECONDS: Final = 3600.0
"""Between looks for counts that have been quiet for long."""


def transport_of(environ: Mapping[str, str]) -> Transport:
    """The way to the local engine, from the environment variables of the functions. Cost: no request."""
    return connect(
        endpoint_url=environ["DYNAMODB_ENDPOINT"],
        region=environ["AWS_REGION"],
        access_key=environ["AWS_ACCESS_KEY_ID"],
        secret_key=environ["AWS_SECRET_ACCESS_KEY"],
        operation_seconds=float(environ["TOPOLOGY_OPERATION_SECONDS"]),
    )


def resharder(environ: Mapping[str, str], transport: Transport | None = None) -> Resharder:
    """What changes the counts of this backend's entities, from the environment variables of its functions.

    Args:
        environ: names the tables, the engine and the times.
        transport: the wire; one of its own if None.

    Cost: no request.
    """
    return Resharder(
        transport or transport_of(environ),
        table=environ["TABLE_NAME"],
        topology_table=environ["TOPOLOGY_TABLE"],
        entities=[each.entity for each in ENTITIES],
        timing=timing(environ),
        # The local engine does one thing at a time: what many tasks send at once, requests of clients wait for.
        concurrency=2,
    )


def timing(environ: Mapping[str, str]) -> Timing:
    """The times that bound how long anybody may act on what was published before."""
    return Timing(
        lease=float(environ["TOPOLOGY_LEASE_SECONDS"]),
        operation=float(environ["TOPOLOGY_OPERATION_SECONDS"]),
        skew=float(environ["TOPOLOGY_SKEW_SECONDS"]),
        # The local engine applies a transaction at once, and all its reads are consistent.
        lag=0.0,
    )


def growth(environ: Mapping[str, str]) -> GrowthSettings:
    """How counts change by themselves. Raises `ConfigurationError` for what cannot be."""
    mode: Any = environ["GROWTH_MODE"]
    return GrowthSettings(mode, float(environ["GROWTH_COOLDOWN_SECONDS"]), float(environ["GROWTH_QUIET_SECONDS"]))


def shrink_hourly(
    look: Callable[[], object], *, stop: Callable[[], bool], sleep: Callable[[float], None], log: Callable[[str], None]
) -> None:
    """Look at once, and every hour, until told to stop. A look that fails is logged, and the next one taken.

    Args:
        look: looks for counts that have been quiet for long.
        stop: whether to stop; asked before every look.
        sleep: waits so many seconds.
        log: takes a line about what went wrong.
    """
    while not stop():
        try:
            look()
        except Exception as error:  # noqa: BLE001 - whatever it is, the next look is taken
            log(f"quiet counts could not be looked at: {error!r}")
        sleep(SHRINK_SECONDS)


def main() -> None:
    """Work until standard input ends."""
    end_with_input()
    never = Event()
    transport = transport_of(os.environ)
    worker = resharder(os.environ, transport)

    def look() -> None:
        shrink_quiet(worker, settings=growth(os.environ), report=_report_change)

    hourly = {"stop": never.is_set, "sleep": time.sleep, "log": log}
    Thread(target=shrink_hourly, args=[look], kwargs=hourly, daemon=True).start()
    drive(worker, stop=never.is_set, sleep=time.sleep, log=log)


def _report_change(report: Report) -> None:
    log(f"{report.event}: {report.reason}")


if __name__ == "__main__":
    main()
