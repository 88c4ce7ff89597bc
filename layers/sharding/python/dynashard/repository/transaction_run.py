"""A transaction: all of its steps at one moment, or none, in whatever phase their shard counts are."""

import secrets
from collections.abc import Iterator, Sequence
from typing import Any, Final

from dynashard.codec import item_size
from dynashard.entity import Entity
from dynashard.errors import (
    CancellationReason,
    DynashardError,
    EngineError,
    InvalidKeyError,
    InvalidQueryError,
    ItemTooLargeError,
    ThrottledError,
    TransactionCanceledError,
    TransactionConflictError,
)
from dynashard.repository.late import answered_late
from dynashard.repository.standing import unproved, unsettled
from dynashard.repository.store import Store
from dynashard.repository.transaction import Step
from dynashard.repository.transaction_course import FAILED, Course, Lesson
from dynashard.repository.transaction_steps import Steps, entity_of
from dynashard.schema import MAX_ITEM_BYTES
from dynashard.transport.interface import Wire

MOST_WRITES: Final = 100
MOST_BYTES: Final = 4 * 1024 * 1024
_PASSING: Final = frozenset(
    {"None", FAILED, "TransactionConflict", "ProvisionedThroughputExceeded", "ThrottlingError", "RequestLimitExceeded"}
)
_CANCELLED: Final = "TransactionCanceledException"
_UNTOLD: Final = CancellationReason("None")
_THROTTLES: Final = 4
"""How often a throttled transaction is tried, each time with all the retries of the transport."""


class Transaction:
    """One transaction. For one thread."""

    def __init__(self, store: Store, steps: Sequence[Step]) -> None:
        self._store = store
        known: dict[type[Entity], Steps] = {}
        self._courses: list[Course] = []
        self._parts: list[list[Wire]] = []
        for number, step in enumerate(steps):
            model = entity_of(step)
            mine = known.get(model) or known.setdefault(model, Steps(store, model))
            self._courses.append(Course(number, step, mine, store))
        self._refuse_doubles()

    def run(self) -> list[Entity | None]:
        """Do it; see `Dynashard.transact`."""
        request: Wire | None = None
        pauses: Iterator[float] | None = None
        throttles = 0
        error: EngineError
        while self._courses:
            request = self._request(request)
            lesson = Lesson.LATER
            try:
                self._store.transport.call("TransactWriteItems", request)
                self._confirm()
                break
            except TransactionCanceledError as cancelled:
                if cancelled.ambiguous and not self._done(cancelled):
                    raise unproved(cancelled) from cancelled
                request, lesson, error = None, self._learn(cancelled), cancelled
            except (TransactionConflictError, ThrottledError) as hindered:
                error = hindered
                throttles += isinstance(hindered, ThrottledError)
                if hindered.aws_code == _CANCELLED:
                    request = None
            if lesson is Lesson.DONE:
                break
            if lesson is Lesson.LATER:
                pauses = self._store.patience.pauses() if pauses is None else pauses
                if throttles == _THROTTLES or next(pauses, None) is None:
                    raise self._given_up(error)
        return [course.stored() for course in self._courses]

    def _confirm(self) -> None:
        """Pass no success on that was told after a view had ended, before all of it is where readers look."""
        # All of them: each that stands elsewhere is brought home, whatever became of the others.
        stand = [course.stands() for course in self._courses]
        if not all(stand):
            raise answered_late("TransactWriteItems")

    def _refuse_doubles(self) -> None:
        seen: dict[Any, int] = {}
        for number, course in enumerate(self._courses):
            first = seen.setdefault(course.key, number)
            if first != number:
                raise InvalidKeyError(
                    f"steps {first} and {number} of the transaction concern one item, {course.name}: make them one"
                )

    def _request(self, before: Wire | None) -> Wire:
        """What to send now. The same as before is the same request to DynamoDB, which then is done once."""
        self._parts = [course.actions() for course in self._courses]
        actions = [action for part in self._parts for action in part]
        if len(actions) > MOST_WRITES:
            raise InvalidQueryError(
                f"The transaction makes {len(actions)} stored writes of {len(self._courses)} steps, and {MOST_WRITES} "
                "is the most. Send fewer steps; one that creates an item takes two while its shard count changes"
            )
        if before is not None and before["TransactItems"] == actions:
            return before
        _require_fits(actions)
        return {"TransactItems": actions, "ClientRequestToken": secrets.token_urlsafe(24)}

    def _told(self, cancelled: TransactionCanceledError) -> list[tuple[Course, list[CancellationReason]]]:
        """The steps, and why each of them was refused."""
        reasons = iter(cancelled.reasons)
        told = [[next(reasons, _UNTOLD) for _ in part] for part in self._parts]
        return list(zip(self._courses, told, strict=True))

    def _done(self, cancelled: TransactionCanceledError) -> bool:
        """Whether an earlier attempt has done it: then the work of all of its steps was done, so one is proof."""
        return any(course.did(why) for course, why in self._told(cancelled))

    def _learn(self, cancelled: TransactionCanceledError) -> Lesson:
        courses = self._told(cancelled)
        if any(course.did(why) for course, why in courses):
            return Lesson.DONE
        lesson = max(course.learn(why) for course, why in courses)
        if lesson is Lesson.NOTHING or any(reason.code not in _PASSING for reason in cancelled.reasons):
            raise _explained(cancelled)
        return lesson

    def _given_up(self, error: EngineError) -> EngineError:
        if isinstance(error, ThrottledError):
            owners = [course for course, part in zip(self._courses, self._parts, strict=True) for _ in part]
            hot = [owners[at] for at in error.actions if at < len(owners)] or self._courses
            for course in {(c.entity.name, c.key.partition): c for c in hot}.values():
                self._store.throttled(course.entity, course.key.partition, error)
            return error
        if isinstance(error, TransactionConflictError):
            return error
        return unsettled(self._courses[0].entity, "TransactWriteItems")


def _require_fits(actions: Sequence[Wire]) -> None:
    if len(actions) * MAX_ITEM_BYTES <= MOST_BYTES:
        return
    size = sum(item_size(action["Put"]["Item"]) for action in actions if "Put" in action)
    if size > MOST_BYTES:
        raise ItemTooLargeError(
            f"The items of the transaction have {size} bytes together, and {MOST_BYTES} is the most: send fewer steps",
            size=size,
            limit=MOST_BYTES,
        )


def _explained(cancelled: TransactionCanceledError) -> DynashardError:
    """An update that DynamoDB could not do; that it made its item too large is the caller's doing."""
    if any(reason.code == "ValidationError" and "Item size" in reason.message for reason in cancelled.reasons):
        return ItemTooLargeError(
            f"A step of the transaction would make its item larger than {MAX_ITEM_BYTES} bytes. Store less in it.",
            size=None,
            limit=MAX_ITEM_BYTES,
        )
    return cancelled
