"""From a request to its answer, whatever the request is."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from dynashard.errors import AnswerTooLargeError, InputError
from dynashard.service import Dynashard
from dynashard_serving.commands.items import Entities
from dynashard_serving.commands.request import NAMES, Asked, Members, acts_for_itself, caller_in, mapping, tenant_in
from dynashard_serving.commands.served import find
from dynashard_serving.commands.systems import systems
from dynashard_serving.documents import written
from dynashard_serving.domain import Domain
from dynashard_serving.idempotency import IdempotentCreates
from dynashard_serving.limits import LONGEST_SECONDS, MAX_ANSWER_BYTES
from dynashard_serving.operations.outcomes import Outcome, done, refused
from dynashard_serving.operations.served import OperationError, Served, served_by_name
from dynashard_serving.refusals import refusal_of
from dynashard_serving.request_bounds import RequestBounds
from dynashard_serving.shedding import is_expensive
from dynashard_serving.tenants import TenantRule

_PROBLEM: Final = 300
"""Characters of the problem of a stored item that an answer has room for."""
_UNABLE: Final = "{} is not served with {}; it is with {}."


class Commands:
    """Answers requests of other services. Safe to share between threads."""

    def __init__(
        self,
        backend: Dynashard,
        idempotent: IdempotentCreates,
        domain: Domain,
        log_error: Callable[[Exception], None],
        clock: Callable[[], float],
        *,
        tenants: TenantRule,
        bounds: RequestBounds,
        caller_required: bool = False,
    ) -> None:
        self._bounds = bounds
        self._caller_required = caller_required
        self._tenants = tenants
        self._entities = served_by_name(domain.entities)
        self._systems = systems(backend, domain, clock)
        self._log_error = log_error
        self._operations = Entities(backend, idempotent, clock).operations
        # In the order of a manual: those of entities first.
        named = [*self._operations, *(name for each in self._systems.values() for name in each)]
        self._known = tuple(dict.fromkeys(named))

    @property
    def entities(self) -> Mapping[str, Served]:
        """The entities by each name that callers may use."""
        return self._entities

    def answer(self, event: Any, seconds: float = LONGEST_SECONDS) -> Outcome:
        """Do what a request asks for. Nothing that a caller sends makes it raise.

        Args:
            event: `{"operation": ..., "entity": ..., "tenant_id": ..., ...}`; docs/invoking.md has the members of each
                operation.
            seconds: how long the invocation can still take.

        Returns:
            `{"ok": true, "result": ...}` or `{"ok": false, "error": {"code", "message", "details", ...}}`. If stored
            items do not fit their entity and were left out, `undecodable` has their number, and the keys and
            problems of the first 100.

        Cost: what the operation costs.
        """
        answer, used = self._bounds.run(
            lambda: _fitting(done(self._result(mapping(event), seconds))),
            self._refused,
            left=seconds,
            expensive=is_expensive(event),
        )
        if number := used.meter.undecodable:
            # Keys and values are not for a caller who may not read the items.
            named = used.meter.undecodable_items if acts_for_itself(event) else ()
            keys = [
                {"partition_key": place, "sort_key": sort, "problem": problem[:_PROBLEM]}
                for place, sort, problem in named
            ]
            answer = {**answer, "undecodable": {"number": number, "keys": keys}}
        return answer

    def _refused(self, error: Exception) -> Outcome:
        if refusal_of(error).ours:
            self._log_error(error)
        return refused(error)

    def _result(self, event: Mapping[str, Any], seconds: float) -> Any:
        operation = event.get("operation")
        if not isinstance(operation, str) or operation not in self._known:
            known = ", ".join(self._known)
            raise InputError(f"there is no operation {str(operation)[:100]!r}; there are {known}", field="operation")
        name = event.get("entity")
        members = {member: value for member, value in event.items() if member not in NAMES}
        tenant = tenant_in(event, self._tenants)
        caller = caller_in(event, tenant, required=self._caller_required)
        if isinstance(name, str) and name in self._systems:
            return self._of_system(name, operation)(Members(tenant, caller, members))
        served = find(self._entities, name, self._systems)
        served.require(operation)
        return self._operations[operation](Asked(tenant, caller, members, served, seconds))

    def _of_system(self, name: str, operation: str) -> Callable[[Members], Any]:
        operations = self._systems[name]
        if operation not in operations:
            raise OperationError(_UNABLE.format(name, operation, ", ".join(operations)))
        return operations[operation]


def _fitting(answer: Outcome) -> Outcome:
    if len(written(answer).encode()) > MAX_ANSWER_BYTES:
        raise AnswerTooLargeError("The answer is larger than 6 MB: ask for less at a time.")
    return answer
