"""Counters of one kind in a table: changed exactly once, within their bounds, and read exactly."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import count
from typing import Any, Final, Generic, TypeVar

from dynashard import Dynashard
from dynashard.entity import Entity
from dynashard.errors import (
    DynashardError,
    ExhaustedError,
    InvalidQueryError,
    InvalidValueError,
    ThrottledError,
    TransactionConflictError,
    TransactionRefusedError,
)
from dynashard.repository import Store
from dynashard.repository.retry_policy import unsettled
from dynashard.repository.store import read_operation, write_operation
from dynashard.transactions import Check, Delete, Step, Transaction, Update
from dynashard_patterns.counters.declaration import Counter, bounds_of
from dynashard_patterns.counters.parts import CHEAP, CURRENT, EXACT, C, PartReader, PartsRead
from dynashard_patterns.counters.shares import LIMIT, Side, borrowed

K = TypeVar("K", bound=Counter)
"""As `C`, where no class is known yet."""

_OTHER: Final[Mapping[Side, Side]] = {"value": "spare", "spare": "value"}
_PARTS_TRIED: Final = 2
"""On how many parts a change is tried whose part is throttled, or is written by others all the time."""


class CounterStore(Generic[C]):
    """Counters of one kind in a table. Safe to share between threads.

    A counter is named by the fields of its key, such as `{"tenant_id": "abc", "id": "4711"}`. An answer other than
    `OutcomeUnknownError` is true: the change took effect exactly once, or not at all.
    """

    def __init__(self, store: Store, model: type[C]) -> None:
        self._store = store
        self._model = model
        self._bounds = bounds_of(model)
        self._parts: PartReader[C] = PartReader(store, model)

    @staticmethod
    def on(db: Dynashard, model: type[K]) -> "CounterStore[K]":
        """Open the counters of one kind; raises `DeclarationError` if the class declares none. Costs nothing."""
        return CounterStore(db.store, model)

    def add(self, key: Mapping[str, Any], amount: int = 1, /, *steps: Step) -> list[Entity | None]:
        """Add to a counter, unless it would rise above its ceiling.

        Args:
            key: the fields of its key.
            amount: a whole number from 1 to 38 digits.
            steps: further steps of the same transaction: all of it is done, or nothing. With them, it takes at most
                100 stored writes; 36 steps always fit.

        Returns:
            What `Dynashard.transact` returns of the steps.

        Raises:
            ExhaustedError: the ceiling leaves too little room, with what it leaves. It was so at one moment.
            InvalidKeyError, InvalidValueError: nothing was sent.
            TransactionRefusedError: one of the steps is refused, with its number.
            TransactionConflictError, ThrottledError: nothing was added; the same call may succeed later.
            OutcomeUnknownError: no answer came, and nothing settles it; it may have been added.

        Cost: 2 write units, and those of the steps; 1 round trip. If its part has too little room, also 1 read unit for
        each part, and 2 write units for each part that gives some; 2 round trips more. If it is refused, 2 write units
        and 3 read units for each part, in 3 round trips; with one part, 2 write units in 1 round trip.
        """
        return self._change("spare", key, amount, steps)

    def take(self, key: Mapping[str, Any], amount: int = 1, /, *steps: Step) -> list[Entity | None]:
        """Take from a counter, unless it would fall below its floor.

        Arguments, answer, errors and cost are those of `add`, with the floor in place of the ceiling.
        """
        return self._change("value", key, amount, steps)

    @read_operation
    def value(self, key: Mapping[str, Any], *, approximate: bool = False) -> int:
        """Return the value of a counter at one moment; 0 if nothing was ever added or taken.

        Args:
            key: the fields of its key.
            approximate: read some copy of each part, which may be some seconds old, and not all at one moment.

        Raises:
            TransactionConflictError: others changed it until the last retry; an approximate read never does.

        Cost: 2 read units for each part, 1 if there is one part, 0.5 for each if approximate; 1 round trip, and 1 more
        for each conflict with a change.
        """
        return self.parts(key, approximate=approximate).total

    def parts(self, key: Mapping[str, Any], *, approximate: bool = False) -> PartsRead[C]:
        """Return the parts of a counter; raises and costs as `value`."""
        return self._parts.read(self._parts.partition(key), CHEAP if approximate else EXACT)

    @write_operation
    def delete(self, key: Mapping[str, Any]) -> int:
        """Remove a counter, which begins at 0 again, and return the value that it had.

        Raises as `add`, but `ExhaustedError`.

        Cost: 1 read unit and 2 write units for each part; 2 round trips, and as many for each change in between.
        """
        partition, pauses = self._parts.partition(key), self._store.retry_policy.pauses()
        while True:
            # Nobody writes to a further part before this ends: a resize waits for a lease and the longest operation.
            # The transaction finds out whether all parts are as they were read, so a cheaper read will do.
            found = self._parts.read(partition, CURRENT)
            steps: list[Step] = []
            for part, item in enumerate(found.items):
                own = {**key, "part": part}
                if item is None:
                    # Else a part that another change stores meanwhile would outlive the counter.
                    steps.append(Check(self._model, own, None))
                else:
                    steps.append(Delete(self._model, own, if_match=item.revision))
            try:
                Transaction(self._store, steps).run()
            except TransactionRefusedError as refused:
                if next(pauses, None) is None:
                    raise unsettled(self._parts.entity, "TransactWriteItems") from refused
                continue
            return found.total

    @write_operation
    def _change(self, side: Side, key: Mapping[str, Any], amount: int, steps: Sequence[Step]) -> list[Entity | None]:
        """Let one number of a counter fall by an amount, and the other one rise."""
        for each in steps:
            if not isinstance(each, Step):
                raise InvalidQueryError(f"a further step is a {type(each).__name__}; write Create(...) or Update(...)")
        if isinstance(amount, bool) or not isinstance(amount, int) or not 1 <= amount <= LIMIT:
            raise InvalidValueError(
                f"amount is {amount!r}; it must be a whole number from 1, of at most 38 digits", field="amount"
            )
        partition = self._parts.partition(key)
        for tried in range(1, _PARTS_TRIED + 1):
            try:
                return self._at_a_part(side, key, partition, amount, steps)
            except (ThrottledError, TransactionConflictError):
                # Nothing was done, and another part is another stored partition.
                if tried == _PARTS_TRIED or self._parts.view(partition).count == 1:
                    raise
        raise AssertionError

    def _at_a_part(
        self, side: Side, key: Mapping[str, Any], partition: str, amount: int, steps: Sequence[Step]
    ) -> list[Entity | None]:
        view = self._parts.view(partition)
        part = int(self._store.runtime.random() * view.count)
        pauses = self._store.retry_policy.pauses()
        own: list[Step] = [self._step(side, key, part, amount)]
        for tried in count():
            if tried > 1 and next(pauses, None) is None:
                break
            try:
                return Transaction(self._store, [*steps, *own]).run()[: len(steps)]
            except TransactionRefusedError as refused:
                # The steps of the caller come first, and their refusal is the caller's.
                if refused.step < len(steps) or not isinstance(refused.cause, ExhaustedError):
                    raise
                # One part is the whole counter, so what it lacks nobody can lend, unless there are more parts by now.
                alone = max(view.count, view.new_count) == 1 and self._store.runtime.clock() <= view.expires
                if alone and refused.cause.available < amount:
                    raise self._refusal(side, partition, amount, refused.cause.available) from refused
            own = self._borrowing(side, key, partition, part, amount)
        raise unsettled(self._parts.entity, "TransactWriteItems")

    def _borrowing(self, side: Side, key: Mapping[str, Any], partition: str, part: int, amount: int) -> list[Step]:
        """Return the steps that let parts with room give some to one with too little, and make the change there.

        Raises `ExhaustedError` if all of them together had too little at one moment.
        """
        # What a part gives is judged by the transaction, so a cheaper read will do to choose. Only parts that were read
        # at one moment prove that all of them together have too little.
        for how in (CURRENT, EXACT):
            found = self._parts.read(partition, how)
            if found.numbers(_OTHER[side])[part] + amount > LIMIT:
                raise _too_many_digits(amount)
            rooms = self._bounds.rooms(side, found.numbers(side))
            given = borrowed(rooms, part, amount)
            if given is not None:
                gets = sum(given.values())
                gives = [self._giving(side, key, other, share) for other, share in given.items()]
                return [self._step(side, key, part, amount, gets), *gives]
        raise self._refusal(side, partition, amount, sum(rooms))

    def _step(self, side: Side, key: Mapping[str, Any], part: int, amount: int, gets: int = 0) -> Update:
        other = _OTHER[side]
        return Update(
            self._model,
            {**key, "part": part},
            add={side: gets - amount, other: amount},
            at_least={side: self._bounds.least(side, part)},
            at_most={other: LIMIT},
            missing="create",
        )

    def _giving(self, side: Side, key: Mapping[str, Any], part: int, share: int) -> Update:
        return Update(
            self._model,
            {**key, "part": part},
            add={side: -share},
            at_least={side: self._bounds.least(side, part)},
            missing="create",
        )

    def _refusal(self, side: Side, partition: str, amount: int, room: int | Decimal) -> DynashardError:
        """Return the error of a change for which all parts together have too little room."""
        name, verb = ("floor", "taken") if side == "value" else ("ceiling", "added")
        bound = getattr(self._bounds, name)
        if bound is None:
            return _too_many_digits(amount)
        text = f"{amount} cannot be {verb}, because the {name} of {partition} is {bound}: at most {room} can be {verb}."
        return ExhaustedError(text, available=room)


def _too_many_digits(amount: int) -> InvalidValueError:
    return InvalidValueError(f"amount is {amount}; the sum would have more than 38 digits", field="amount")
