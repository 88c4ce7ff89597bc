"""Write events of growth to Python's log, for programs that have no metrics."""

import logging
from typing import Final

from dynashard.growth.terms import GrowthEvent, Report

LOGGER: Final = logging.getLogger("dynashard.growth")
_ROUTINE: Final = {
    GrowthEvent.ASKED,
    GrowthEvent.KEPT,
    GrowthEvent.LOST,
    GrowthEvent.WOULD_ASK,
    GrowthEvent.WITHDRAWN,
}
"""Events for which nobody has to do anything."""


class GrowthLogger:
    """Writes events to the logger `dynashard.growth`: those that need somebody as warnings, the others as info."""

    def grew(self, report: Report, /) -> None:
        """Log an event."""
        LOGGER.log(logging.INFO if report.event in _ROUTINE else logging.WARNING, "%s: %s", report.event, report.reason)

    def growth_failed(self, error: Exception, /) -> None:
        """Log an error of the policy itself, with its traceback."""
        LOGGER.error("growth failed", exc_info=error)
