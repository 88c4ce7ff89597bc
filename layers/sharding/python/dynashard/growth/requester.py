"""How a policy requests a count, and reports what became of that."""

from collections.abc import Callable

from dynashard.errors import DynashardError, ReshardRefusedError, TopologyChangedError
from dynashard.growth.settings import GrowthMode
from dynashard.growth.terms import GrowthEvent, Report, RequestCount
from dynashard.resharding.scope import Scope
from dynashard.topology.epochs import TOO_MANY_EPOCHS


class Requester:
    """Requests counts, or in a dry run only reports that it would.

    Args:
        request: requests a resize.
        mode: that of the policy.
        receive: receives the reports.
    """

    def __init__(self, request: RequestCount, mode: GrowthMode, receive: Callable[[Report], None]) -> None:
        self._request = request
        self._mode = mode
        self._receive = receive

    def resize(self, scope: Scope, target: int, why: str, creating: float = 0.0) -> Report:
        """Request a count, and return the report. Never raises; `creating` is as of `RequestCount`.

        Cost: that of the request; none in a dry run.
        """
        request = f"{scope.key} to {target} shards: {why}"
        if self._mode == "dry_run":
            return self.report(GrowthEvent.WOULD_ASK, scope, f"dry run: {request}", target)
        try:
            self._request(scope, target, creating)
        except TopologyChangedError:
            return self.report(GrowthEvent.LOST, scope, f"another process has changed {scope.key}", target)
        except ReshardRefusedError as error:
            event = GrowthEvent.CANNOT if error.reason == TOO_MANY_EPOCHS else GrowthEvent.REFUSED
            return self.report(event, scope, f"{request}; refused: {error}", target)
        except DynashardError as error:
            return self.report(GrowthEvent.FAILED, scope, f"{request}; failed: {error}", target)
        return self.report(GrowthEvent.ASKED, scope, request, target)

    def report(self, event: GrowthEvent, scope: Scope, reason: str, target: int | None = None) -> Report:
        """Report an event of a scope, and return the report."""
        slot = scope.index.slot if scope.index else None
        report = Report(event, scope.entity.name, scope.partition, slot, reason, target)
        self._receive(report)
        return report
