"""Does a batch of messages, and says which of them have to come again."""

import random as random_numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from dynashard.collection import Collection
from dynashard.transport.deadline import within
from dynashard_serving.domain import declared
from dynashard_serving.limits import time_to_answer
from dynashard_serving.operations.served import Served, served_by_name
from dynashard_serving.queue_messages import Message, PoisonError
from dynashard_serving.tenants import DEFAULT_TENANTS, TenantRule
from dynashard_serving.writer.creates import CollectionOf, create
from dynashard_serving.writer.outcomes import End, Outcome, Tally
from dynashard_serving.writer.queues import Queues, Received, pause, until

MOST_UNEXPECTED: Final = 5
"""Deliveries after which a message that fails for no known reason goes to the dead-letter queue."""
LAST_MILLISECONDS: Final = 8_000
"""With less time than this left, nothing is begun any more: no write may outlive its invocation."""
UNREADABLE: Final = "unreadable"

Work = Callable[[], Outcome]


@dataclass(frozen=True, slots=True)
class Step:
    """A piece of work of a message, which is None if it cannot be read, and the document or key that it is about."""

    received: Received
    work: Work
    message: Message | None = None
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Writer:
    """Does what messages ask for. Safe to share between threads. `record` is called with each piece of work."""

    collection_of: CollectionOf
    operate: Callable[[Message, int], Outcome]
    queues: Queues
    log: Callable[[str, Mapping[str, Any]], None]
    clock: Callable[[], float]
    entities: Mapping[str, Served] = field(default_factory=lambda: served_by_name(declared().entities))
    record: Callable[[Mapping[str, Any]], None] = lambda _about: None
    workers: int = 16
    random: Callable[[], float] = random_numbers.random
    tenants: TenantRule = DEFAULT_TENANTS

    def work(
        self, records: Iterable[SQSRecord], remaining: Callable[[], int] = lambda: LAST_MILLISECONDS
    ) -> tuple[list[str], Tally]:
        """Do a batch.

        Messages of one group are done one after the other, everything else up to `workers` at a time. The failure
        of a message affects only those behind it in its group, which have to wait.

        Args:
            records: of the SQS event.
            remaining: milliseconds until the invocation ends.

        Returns:
            The ids of the messages that have to come again, and what was done.

        Cost: 1 write unit an item and index entry, 1 round trip an item.
        """
        batch = [Received.of(record) for record in records]
        messages = {received.id: self._parsed(received) for received in batch}
        chains = list(self._chains(batch, messages))
        outcomes: dict[str, list[Outcome]] = {received.id: [] for received in batch}
        with ThreadPoolExecutor(max(1, min(self.workers, len(chains)))) as pool:
            for done in pool.map(lambda chain: self._chain(chain, remaining), chains):
                for received, outcome in done:
                    outcomes[received.id].append(outcome)
        tally = Tally()
        left = [received for received in batch if self._is_left(received, messages, outcomes[received.id], tally)]
        self._put_off([(received, max(outcome.wait for outcome in outcomes[received.id])) for received in left])
        return [received.id for received in left], tally

    def _parsed(self, received: Received) -> Message | PoisonError:
        try:
            return Message.parse(received.body, self.entities, self.tenants)
        except PoisonError as error:
            return error

    def _chains(self, batch: Sequence[Received], messages: Mapping[str, Message | PoisonError]) -> Iterable[list[Step]]:
        """The batch as chains of work; each chain is done in order, and up to its first failure."""
        groups: dict[str, list[Step]] = {}
        for received in batch:
            steps = self._steps(received, messages[received.id])
            if received.group is None:
                yield from ([step] for step in steps)
            else:
                groups.setdefault(received.group, []).extend(steps)
        yield from groups.values()

    def _steps(self, received: Received, message: Message | PoisonError) -> list[Step]:
        if isinstance(message, PoisonError):
            poison = Outcome(End.POISON, message.reason, str(message), UNREADABLE)
            return [Step(received, lambda: poison)]
        if message.operation_id is not None:
            about = message.items[0] if message.items else message.key
            return [Step(received, lambda: self.operate(message, received.receives), message, about)]
        if message.operation != "create":
            reason = f"a {message.operation} needs a record of its operation, or it could be done twice"
            return [Step(received, lambda: Outcome(End.POISON, "malformed_message", reason, UNREADABLE), message)]
        collection = self.collection_of(message.served.entity)
        return [
            Step(received, _creating(collection, message, document), message, document) for document in message.items
        ]

    def _chain(self, chain: Sequence[Step], remaining: Callable[[], int]) -> list[tuple[Received, Outcome]]:
        done: list[tuple[Received, Outcome]] = []
        stopped = False
        for step in chain:
            left = remaining()
            if stopped or left < LAST_MILLISECONDS:
                outcome = Outcome(End.LEFT, "no_time")
            else:
                with within(time_to_answer(left / 1000)):
                    outcome = self._guarded(step.received, step.work)
            stopped = stopped or outcome.end is End.LEFT
            done.append((step.received, outcome))
            self.record(_described(step, outcome))
        return done

    def _guarded(self, received: Received, work: Work) -> Outcome:
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - the message has to come again, whatever it was
            self.log("unexpected error", {"message_id": received.id, "error": repr(error), "exception": error})
            return Outcome(End.LEFT, "unexpected_error", repr(error), unexpected=True)

    def _is_left(
        self,
        received: Received,
        messages: Mapping[str, Message | PoisonError],
        outcomes: Sequence[Outcome],
        tally: Tally,
    ) -> bool:
        message = messages[received.id]
        if received.receives >= MOST_UNEXPECTED:
            outcomes = [_given_up(outcome) for outcome in outcomes]
        left = any(outcome.end is End.LEFT for outcome in outcomes)
        poison = [outcome for outcome in outcomes if outcome.end is End.POISON]
        # While anything is left the whole message comes again: its poison is buried once, by the last delivery.
        if poison and not left:
            left = not self._buried(received, message, poison)
        for outcome in outcomes:
            tally.count(Outcome(End.LEFT) if left and outcome.end is End.POISON else outcome)
        if not left and isinstance(message, Message) and message.accepted_at is not None:
            tally.lags.append(max(0.0, self.clock() - message.accepted_at / 1000))
        return left

    def _buried(self, received: Received, message: Message | PoisonError, poison: Sequence[Outcome]) -> bool:
        first = poison[0]
        fields = {"message_id": received.id, "reason": first.reason, "detail": first.message, "items": len(poison)}
        self.log("dead letter", fields)
        body: Mapping[str, Any] = {"unreadable": received.body}
        if isinstance(message, Message):
            whole = first.document is UNREADABLE or first.document is None
            kept = {name: value for name, value in message.document.items() if name not in ("item", "items")}
            body = message.document if whole else {**kept, "items": [outcome.document for outcome in poison]}
        try:
            self.queues.bury(received, body, reason=first.reason, message=first.message)
        except Exception as error:  # noqa: BLE001 - whatever it was, the message must not be lost
            self.log("no dead letter could be sent", {"message_id": received.id, "error": repr(error)})
            return False
        return True

    def _put_off(self, left: Sequence[tuple[Received, float]]) -> None:
        if not left:
            return
        try:
            self.queues.put_off(
                [(received, max(pause(received.receives, self.random()), until(wait))) for received, wait in left]
            )
        except Exception as error:  # noqa: BLE001 - they come back by themselves, only later
            self.log("messages come back late", {"error": repr(error)})


def _creating(collection: Collection[Any], message: Message, document: dict[str, Any]) -> Work:
    return lambda: create(collection, message.served.entity, document)


def _described(step: Step, outcome: Outcome) -> dict[str, Any]:
    """Return what the log says of a piece of work."""
    message = step.message
    found = {"message_id": step.received.id, "outcome": outcome.end.value, "code": outcome.reason or None}
    if message is None:
        return found
    return {
        "request_id": message.request_id or None,
        "tenant": message.tenant,
        "operation": message.operation,
        "entity": message.served.name,
        "item": message.served.item_name(step.about),
        "revision": outcome.revision,
        "error": outcome.message if outcome.ours else None,
        **found,
    }


def _given_up(outcome: Outcome) -> Outcome:
    if outcome.end is End.LEFT and outcome.unexpected:
        return Outcome(End.POISON, outcome.reason, outcome.message, outcome.document)
    return outcome
