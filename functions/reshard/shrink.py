"""A look from time to time for shard counts that have been quiet for so long that half of them will do."""

from collections.abc import Callable

from dynashard.resharding import Resharder
from dynashard_serving.growth_policy import AskLoad, Report
from dynashard_serving.growth_requests import shrink_quiet
from functions.reshard.settings import Settings


def shrink(
    settings: Settings,
    resharder: Resharder,
    *,
    log: Callable[[str], None],
    load: AskLoad | None = None,
) -> list[str]:
    """Ask for the halving of counts that have stood quiet, as the settings of growth say.

    Args:
        settings: of this function.
        resharder: is asked for changes.
        log: takes a line for each change that was asked for or refused.
        load: tells whether a table was throttled; None if nobody knows.

    Returns:
        What was logged.

    Cost: as `dynashard_serving.growth_requests.shrink_quiet`.
    """
    told: list[str] = []

    def tell(report: Report) -> None:
        line = f"{report.news}: {report.told}"
        told.append(line)
        log(line)

    shrink_quiet(resharder, settings=settings.growth, load=load, report=tell)
    return told
