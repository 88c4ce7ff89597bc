"""A look from time to time for shard counts that have been quiet for so long that half of them will do."""

from collections.abc import Callable, Sequence

from domain import ENTITIES, Exposed
from dynashard.resharding import Resharder
from dynashard.resharding.growth import AskLoad, Report
from dynashard.resharding.policy import shrink_quiet
from dynashard.transport import Transport
from functions.reshard.settings import Settings


def shrink(
    settings: Settings,
    resharder: Resharder,
    transport: Transport,
    *,
    log: Callable[[str], None],
    load: AskLoad | None = None,
    exposed: Sequence[Exposed] = ENTITIES,
) -> list[str]:
    """Ask for the halving of counts that have stood quiet, as the settings of growth say.

    Args:
        settings: of this function.
        resharder: is asked for changes.
        transport: the wire.
        log: takes a line for each change that was asked for or refused.
        load: tells whether a table was throttled; None if nobody knows.
        exposed: the entities whose counts may shrink.

    Returns:
        What was logged.

    Cost: as `dynashard.resharding.policy.shrink_quiet`.
    """
    told: list[str] = []

    def tell(report: Report) -> None:
        line = f"{report.news}: {report.told}"
        told.append(line)
        log(line)

    shrink_quiet(
        resharder,
        transport,
        settings.topology_table,
        [each.entity for each in exposed],
        settings=settings.growth,
        load=load,
        report=tell,
    )
    return told
