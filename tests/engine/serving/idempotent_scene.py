"""Creates with an idempotency key on a table with a table of records, and their faults."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dynashard.repository import Repository
from dynashard.repository.interface import SingleItems
from dynashard.testing.faults import AttemptsOn, Fault, Send
from dynashard.transport.classification import Refusal, classify, unanswered
from dynashard.transport.interface import Wire
from dynashard_serving.documents import Document, validated
from dynashard_serving.idempotency import Attempt, IdempotentCreates
from tests.engine.repository.late_world import outcome
from tests.engine.repository.moving_things import IDENTITY
from tests.engine.stored_things import Note, World

TRANSACT = "TransactWriteItems"
NOTE = {"tenant": "abc", "id": IDENTITY, "text": "mine"}
KEY = {"tenant": "abc", "id": IDENTITY}
PERSON = {"tenant": "abc", "mail": "ada@example.com"}


@dataclass
class StoredItem:
    """A fault that holds the first request back, without an answer, until `let_go`."""

    requests: list[Callable[[], Wire]] = field(default_factory=list)

    @property
    def fault(self) -> Fault:
        def strike(send: Send, request: Mapping[str, Any]) -> Wire:
            self.requests.append(lambda: send(request))
            raise unanswered(TRANSACT, "ReadTimeoutError", "The answer was lost")

        return Fault(TRANSACT, strike)

    def let_go(self) -> None:
        while self.requests:
            outcome(self.requests.pop())


class Ended(BaseException):
    """The function was killed."""


def ended_after(happens: Callable[[], Any]) -> Fault:
    """Run an action, execute the request, and kill the function."""

    def strike(send: Send, request: Mapping[str, Any]) -> Wire:
        happens()
        send(request)
        raise Ended

    return Fault(TRANSACT, strike)


def cancelled(*codes: str, item: Wire | None = None, nth: int | None = 1) -> Fault:
    """Cancel the transaction for these reasons, with the stored item of the first."""
    reasons = [{"Code": code} for code in codes]
    if item is not None:
        reasons[0]["Item"] = item  # type: ignore[assignment]
    body = {"CancellationReasons": reasons}
    refusal = Refusal(operation=TRANSACT, status=400, code="TransactionCanceledException", message="", body=body)

    def strike(_send: Send, _request: Mapping[str, Any]) -> Wire:
        raise classify(refusal)

    return Fault(TRANSACT, strike, nth)


@dataclass
class Scene:
    """A table, and a table of idempotency records."""

    world: World
    records: str

    def create(
        self, body: Document = NOTE, key: str = "k", model: type[Any] = Note, items: SingleItems[Any] | None = None
    ) -> tuple[Document, bool]:
        attempt = Attempt("abc", key, body, validated(model, body))
        creates = IdempotentCreates(self.records, self.world.transport, clock=self.world.clock)
        return creates.run(attempt, items or self.world.of(model))

    def attempts(self, *plan: Fault) -> AttemptsOn:
        """Set faults that strike single attempts."""
        self.world.transport = AttemptsOn(self.world.inner, *plan)
        return self.world.transport

    def without_faults(self) -> "Scene":
        """Return a scene with the same table and records, and without faults."""
        world = World(self.world.inner, self.world.table, self.world.dynamodb)
        world.new_revision = self.world.new_revision
        return Scene(world, self.records)

    def living(self) -> list[Wire]:
        """Return the items that readers see."""
        now = self.world.clock()
        items = [item for item in self.world.raw() if "MovedTo" not in item]
        return [item for item in items if "ExpiresAt" not in item or float(item["ExpiresAt"]["N"]) > now]

    def kept(self) -> list[Wire]:
        found: list[Wire] = self.world.dynamodb.call("Scan", TableName=self.records, ConsistentRead=True)["Items"]
        return found


class InSteps(Repository[Any]):
    """A repository that acts as if its items did not fit into a transaction."""

    @property
    def can_create_with(self) -> bool:
        return False
