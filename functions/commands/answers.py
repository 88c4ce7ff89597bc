"""From a request to its answer, whatever the request is."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from domain import TOGETHER, Exposed, Together
from dynashard.errors import AnswerTooLargeError, InputError
from dynashard.hosting.backend import Backend
from dynashard.hosting.documents import written
from dynashard.hosting.environment import LONGEST_SECONDS, time_to_answer
from dynashard.hosting.idempotency import IdempotentCreates
from dynashard.hosting.limits import MAX_QUERIES, READING_SHARE
from dynashard.hosting.refusals import refusal_of
from dynashard.hosting.shedding import LoadSignal, is_expensive
from dynashard.reads import allowing
from dynashard.tenants import TenantRule
from dynashard.transport.deadline import within
from dynashard.transport.interface import metered
from functions.commands.batches import Batches
from functions.commands.items import Items
from functions.commands.listing import Listings
from functions.commands.refusals import OperationError, Outcome, done, refused
from functions.commands.request import NAMES, Asked, Members, mapping, tenant_in
from functions.commands.served import Served, find, served_by_name
from functions.commands.systems import systems

MAX_RESULT_BYTES: Final = 6 * 1024 * 1024 - 64 * 1024
"""Of what Lambda answers, less what it takes to carry it."""
NEEDS: Final[Mapping[str, Sequence[str]]] = {
    "create": ["create"],
    "get": ["get"],
    "put": ["put"],
    "update": ["update"],
    "delete": ["delete"],
    "list": ["list"],
    "count": ["list"],
    "batch_get": ["get"],
    "batch_write": ["put", "delete"],
}
"""What an entity must be served with for an operation."""
_UNABLE: Final = "{} is not served with {}; it is with {}."


class Commands:
    """Answers requests of other services. Safe to share between threads.

    Args:
        backend: the entities.
        idempotent: keeps what creates with an idempotency key answered.
        exposed: the entities that can be named.
        log_error: takes an error that is ours.
        clock: wall clock, in epoch seconds.
        together: entities that can be listed as one.
        tenants: the rule for tenants.
        max_queries: the most Queries that one request may send.
        load: decides when operations on many items are refused.
    """

    def __init__(
        self,
        backend: Backend,
        idempotent: IdempotentCreates,
        exposed: Sequence[Exposed],
        log_error: Callable[[Exception], None],
        clock: Callable[[], float],
        *,
        together: Sequence[Together] = TOGETHER,
        tenants: TenantRule,
        max_queries: int = MAX_QUERIES,
        load: LoadSignal | None = None,
    ) -> None:
        self._max_queries = max_queries
        self._tenants = tenants
        self._load = load or LoadSignal(clock)
        self._clock = clock
        items, batches = Items(backend.repository, idempotent, clock), Batches(backend.repository, clock)
        listings = Listings(backend.page, backend.repository)
        self._entities = served_by_name(exposed)
        self._systems = systems(backend, together)
        self._log_error = log_error
        self._operations: Mapping[str, Callable[[Asked], Any]] = {
            "create": items.create,
            "get": items.get,
            "put": items.put,
            "update": items.update,
            "delete": items.delete,
            "list": listings.page,
            "count": listings.count,
            "batch_get": batches.get,
            "batch_write": batches.write,
        }

    def answer(self, event: Any, seconds: float = LONGEST_SECONDS) -> Outcome:
        """Do what a request asks for. Nothing that a caller sends makes it raise.

        Args:
            event: `{"operation": ..., "entity": ..., "tenant_id": ..., ...}`; docs/invoking.md has the members of each
                operation.
            seconds: how long the invocation can still take.

        Returns:
            `{"ok": true, "result": ...}` or `{"ok": false, "error": {"code", "message", "details", ...}}`.

        Cost: what the operation costs.
        """
        code, started = None, self._clock()
        expensive = is_expensive(event)
        reading = seconds * READING_SHARE
        with within(time_to_answer(seconds)), metered() as meter, allowing(self._max_queries, reading):
            try:
                if expensive:
                    self._load.refuse_expensive()
                answer = _fitting(done(self._result(mapping(event), seconds)))
            except Exception as error:  # noqa: BLE001 -- the one place where every error becomes an answer
                refusal = refusal_of(error)
                if refusal.ours:
                    self._log_error(error)
                answer, code = refused(error), refusal.code
        self._load.observe(meter, self._clock() - started, expensive=expensive, code=code)
        return answer

    def _result(self, event: Mapping[str, Any], seconds: float) -> Any:
        operation = event.get("operation")
        if not isinstance(operation, str) or operation not in self._operations:
            known = ", ".join(self._operations)
            raise InputError(f"there is no operation {str(operation)[:100]!r}; there are {known}", field="operation")
        name = event.get("entity")
        members = {member: value for member, value in event.items() if member not in NAMES}
        if isinstance(name, str) and name in self._systems:
            return self._of_system(name, operation)(Members(tenant_in(event, self._tenants), members))
        served = find(self._entities, name, self._systems)
        self._refuse_unserved(served, operation)
        return self._operations[operation](Asked(tenant_in(event, self._tenants), members, served, seconds))

    def _of_system(self, name: str, operation: str) -> Callable[[Members], Any]:
        operations = self._systems[name]
        if operation not in operations:
            raise OperationError(_UNABLE.format(name, operation, ", ".join(operations)))
        return operations[operation]

    def _refuse_unserved(self, served: Served, operation: str) -> None:
        allowed = served.exposed.operations
        if all(name in allowed for name in NEEDS[operation]):
            return
        able = ", ".join(name for name, needs in NEEDS.items() if all(need in allowed for need in needs))
        if able:
            raise OperationError(_UNABLE.format(served.name, operation, able))
        route = served.exposed.route
        if not route:
            raise OperationError(f"{served.name} is not served, only by code that uses the layer.")
        # The path of REST begins with the outside name of what does serve it.
        instead = next((name for name in self._systems if f"{route}/".startswith(f"/v1/{name}/")), None)
        told = f"ask for {instead}" if instead else f"ask {route} over REST"
        raise OperationError(f"{served.name} is not served by itself: {told}.")


def _fitting(answer: Outcome) -> Outcome:
    if len(written(answer)) > MAX_RESULT_BYTES:
        raise AnswerTooLargeError("The answer is larger than 6 MB: ask for less at a time.")
    return answer
