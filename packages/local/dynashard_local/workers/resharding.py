"""Carries out resizes on the local engine, until standard input ends.

It takes the same steps as the state machine of a deployment. It may be killed at any moment: the next one continues
from the topology table.
"""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from threading import Event, Thread
from typing import Annotated, Final

from dynashard_serving.start import uncollected

with uncollected():
    from dynashard.growth.requests import shrink_quiet
    from dynashard.growth.terms import Report
    from dynashard.resharding import Timing
    from dynashard.resharding.driver import drive
    from dynashard.transport import Transport, connect
    from dynashard.transport.selection import name_in
    from dynashard_local.workers.lifecycle import end_with_input, log
    from dynashard_serving.reshard.backend import resharder_of
    from dynashard_serving.reshard.settings import Settings
    from dynashard_serving.settings import Variable, whole_number

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


class WorkerSettings(Settings, frozen=True, kw_only=True):
    """Settings of what changes shard counts here: those of the functions that do so in a deployment.

    The local engine executes one request at a time, so more tasks than two at once would delay clients.
    """

    concurrency: Annotated[int, Variable("CONCURRENCY", whole_number)] = 2

    @property
    def timing(self) -> Timing:
        """The times that bound how long a process may act on an earlier phase."""
        # The local engine applies a transaction at once, and all its reads are consistent.
        return replace(super().timing, lag=0.0)


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
    settings = WorkerSettings.from_env(os.environ)
    worker = resharder_of(settings, transport_of(os.environ))

    def check() -> None:
        shrink_quiet(worker, settings=settings.growth, report=_report_resize)

    hourly = {"stop": never.is_set, "sleep": time.sleep, "log": log}
    Thread(target=shrink_hourly, args=[check], kwargs=hourly, daemon=True).start()
    drive(worker, stop=never.is_set, sleep=time.sleep, log=log)


def _report_resize(report: Report) -> None:
    log(f"{report.event}: {report.reason}")


if __name__ == "__main__":
    main()
