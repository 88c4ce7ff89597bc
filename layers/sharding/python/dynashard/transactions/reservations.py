"""The reservations of unique values in a transaction: actions beside those of its steps.

A reservation that another owner has refuses a step only if its owner, which is read then, is live and has the value.
Otherwise the reservation is left over, and is taken over on condition that the owner is still as it was read, and that
the reservation is. The owner's place is that of the view in force now, so in a request that is executed after a resize
it proves nothing; the reservation has one place.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from dynashard.entity import ItemKey, revision_in
from dynashard.entity.uniqueness import UniqueDefinition
from dynashard.errors import CancellationReason, TransactionRefusedError, WriteContendedError
from dynashard.repository.conditions import is_live
from dynashard.repository.home_reader import HomeReader
from dynashard.repository.projection import Reading
from dynashard.repository.reservations import has, leave, of_others, owner_of, reservation, take
from dynashard.repository.store import Store
from dynashard.transactions.participant import Participant, Verdict
from dynashard.transactions.steps import CheckStored
from dynashard.transport.interface import Wire

_GUARD: Final = -1


class _Sent(NamedTuple):
    """A reservation whose action was sent; `taker` is the step that takes it, None if it is only left."""

    place: str
    unique: UniqueDefinition
    taker: Participant | None


class _LeftOver(NamedTuple):
    """A reservation that is left over, as it was read; its owner, and the check that it still has no claim to it.

    There is no check if the step that takes it writes the owner, on a condition of its own, or if it names no owner.
    """

    found: Mapping[str, Any]
    owner: ItemKey | None
    guard: Participant | None


class Reservations:
    """The reservations that the steps of a transaction take and leave. For one transaction, in one thread."""

    def __init__(self, store: Store, participants: Sequence[Participant]) -> None:
        self._store = store
        self._participants = participants
        self._left_over: dict[str, _LeftOver] = {}
        self._of_others: set[str] = set()
        self._sent: list[_Sent] = []

    @property
    def guards(self) -> list[Participant]:
        """The checks of owners of reservations that are left over."""
        return list({each.owner: each.guard for each in self._left_over.values() if each.guard}.values())

    def actions(self) -> list[Wire]:
        """Return an action for each reservation that the steps, which are prepared, take or leave.

        Raises:
            TransactionRefusedError: two steps take the same one.
        """
        takers, leaving = self._takers(), self._leaving()
        self._sent, actions = [], list[Wire]()
        for place, (taker, unique) in takers.items():
            _, owners = leaving.pop(place, (unique, []))
            left_over, write, reserving = self._left_over.get(place), taker.prepared.write, taker.prepared.reserving
            owners += [taker.writes.key] if place in reserving.own else []
            item = reservation(place, unique, taker.writes.key, reserving.expires, write.revision or write.if_match)
            found = None if left_over is None else left_over.found
            actions.append(take(self._store.table, item, owners, write.now, found))
            self._sent.append(_Sent(place, unique, taker))
        for place, (unique, owners) in leaving.items():
            action = of_others if place in self._of_others else leave
            actions.append(action(self._store.table, place, owners))
            self._sent.append(_Sent(place, unique, None))
        return actions

    def _takers(self) -> dict[str, tuple[Participant, UniqueDefinition]]:
        takers: dict[str, tuple[Participant, UniqueDefinition]] = {}
        for participant in self._participants:
            for place, unique in participant.prepared.reserving.takes.items():
                if place in takers:
                    raise participant.not_unique(unique)
                takers[place] = participant, unique
        self._left_over = {place: each for place, each in self._left_over.items() if place in takers}
        return takers

    def _leaving(self) -> dict[str, tuple[UniqueDefinition, list[ItemKey]]]:
        leaving: dict[str, tuple[UniqueDefinition, list[ItemKey]]] = {}
        for participant in self._participants:
            for place, unique in participant.prepared.reserving.leaves.items():
                leaving.setdefault(place, (unique, []))[1].append(participant.writes.key)
        return leaving

    def learn(self, reasons: Iterator[CancellationReason]) -> Verdict:
        """Decide what follows a cancelled transaction, by the reasons of the actions last returned.

        Raises:
            TransactionRefusedError: a live item has a value that a step takes.

        Cost: a consistent read for each reservation that another owner has.
        """
        verdict = Verdict.UNAFFECTED
        for sent, reason in zip(self._sent, reasons, strict=True):
            if not reason.condition_failed:
                found = Verdict.RETRY if reason.refused else Verdict.UNAFFECTED
            elif sent.taker is None:
                # Whether it belongs to the item decides between deleting it and leaving it alone.
                self._of_others ^= {sent.place}
                found = Verdict.REROUTED
            else:
                found = self._met(sent, sent.taker, reason.item)
            verdict = max(verdict, found)
        return verdict

    def _met(self, sent: _Sent, taker: Participant, found: Mapping[str, Any] | None) -> Verdict:
        """Decide what follows a reservation that another item seems to have."""
        self._left_over.pop(sent.place, None)
        if found is None or not is_live(found, self._store.now()):
            # It has gone, or it has expired since the step was prepared.
            taker.prepare_again()
            return Verdict.RETRY
        owner = owner_of(found)
        if owner is None:
            # Another program has damaged it. It belongs to nobody, so it refuses nobody.
            self._left_over[sent.place] = _LeftOver(found, None, None)
            return Verdict.REROUTED
        entity = taker.writes.entity
        stored = HomeReader(self._store, entity).read(owner, Reading(consistent=True))
        own = owner == taker.writes.key
        if stored is not None and has(entity, stored, sent.place):
            if own:
                # It was written since, or its place is another one by now.
                taker.prepare_again()
                return Verdict.RETRY
            raise taker.not_unique(sent.unique)
        if own:
            self._left_over[sent.place] = _LeftOver(found, owner, None)
            return Verdict.REROUTED
        if any(participant.writes.key == owner for participant in self._participants):
            raise WriteContendedError(
                "A step takes what is reserved for the item of another step, which does not have it: write one after "
                "the other, or run `dynashard verify --only unique --mend`"
            )
        check = CheckStored(entity, owner, None if stored is None else revision_in(stored))
        self._left_over[sent.place] = _LeftOver(found, owner, Participant(self._store, _GUARD, check))
        return Verdict.REROUTED

    def learn_guard(self, guard: Participant, reasons: Sequence[CancellationReason]) -> Verdict:
        """Decide what follows for an owner's check: if it does not hold, the reservation is judged again."""
        try:
            return guard.learn(reasons)
        except TransactionRefusedError:
            self._left_over = {place: each for place, each in self._left_over.items() if each.guard is not guard}
            return Verdict.RETRY
