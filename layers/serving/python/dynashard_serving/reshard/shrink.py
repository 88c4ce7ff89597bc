"""Halve shard counts that have been quiet for long."""

from collections.abc import Callable

from dynashard.growth.requests import shrink_quiet
from dynashard.growth.settings import LoadSource
from dynashard.growth.terms import Report
from dynashard.resharding import Resharder
from dynashard_serving.reshard.settings import Settings


def shrink(
    settings: Settings, resharder: Resharder, *, log: Callable[[str], None], load: LoadSource | None = None
) -> list[str]:
    """Request half of the counts that were quiet, and log and return a line for each resize or refusal.

    Cost: as `dynashard.growth.requests.shrink_quiet`.
    """

    def log_report(report: Report) -> None:
        log(f"{report.event}: {report.reason}")

    reports = shrink_quiet(resharder, settings=settings.growth, load=load, report=log_report)
    return [f"{report.event}: {report.reason}" for report in reports]
