"""A linearizability checker: is there one order of the operations in which every answer is true?

This is the algorithm of Wing and Gong with memoisation, in its just-in-time form (Lowe, "Testing for linearizability",
2017). It walks through invocations and returns in time and keeps every configuration that the answers so far allow:
the state of the register, and which of the operations that are still running have taken effect already. Only when an
operation returns, whatever may precede it takes effect. If no configuration is left, no order explains the answers.

Operations of unknown outcome may take effect at any moment after their invocation, or never. There can be hundreds of
them, so three things keep the configurations few, without losing one that matters:

- Those that nobody can tell apart (the same effect, and a version that no answer names) are one group, of which only
  the number that has taken effect counts.
- A configuration is dropped if another one has the same state with fewer unknown operations used up: what can still
  happen to the former can happen to the latter.
- An operation that leaves the register as it is takes effect as soon as its answer is true.

The first attempt keeps only the configurations that have used up least. One that lasts to the end proves the history
linearizable. If none does, the check begins again with more of them, and in the end with all: a history is refused only
when nothing was dropped.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Final, TypeVar

from tests.linearizability.model import (
    UNSEEN,
    Answer,
    Kind,
    Operation,
    State,
    Version,
    answered,
    effect,
    keeps,
)

K = TypeVar("K")

MOST_CONFIGURATIONS: Final = 500_000
_WIDTHS: Final = (24, 400)
"""How many configurations the first attempts keep."""
_TOLD: Final = 12
"""How many operations before a violation are told."""

_Used = frozenset[tuple[int, int]]
"""Members of groups that have taken effect: group, and number in it."""
_Place = tuple[State | None, frozenset[int]]
"""The state, and which of the running operations have taken effect."""
_NOTHING: Final[_Used] = frozenset()


class UndecidedError(Exception):
    """There are too many configurations to decide."""


@dataclass(frozen=True, slots=True)
class Violation:
    """No order of the operations makes all answers true.

    Attributes:
        operation: the first, in order of answers, whose answer cannot be true.
        before: the operations just before it.
        states: what the register may have held then.
    """

    operation: Operation
    before: tuple[Operation, ...]
    states: tuple[State | None, ...]

    def __str__(self) -> str:
        states = ", ".join("absent" if s is None else f"{s.version} ({s.total})" for s in self.states)
        told = "\n".join(f"  {each}" for each in self.before)
        return f"not linearizable: {self.operation}\nthe register may have held: {states}\nbefore:\n{told}"


def check(operations: Sequence[Operation], *, initial: State | None = None) -> Violation | None:
    """Check the history of one key.

    Args:
        operations: all operations on it, in any order. Intervals that only touch count as overlapping.
        initial: what the register held before all of them.

    Returns:
        None if the history is linearizable, otherwise the first answer that no order explains.

    Raises:
        UndecidedError: there are too many configurations.
    """
    known = _anonymised(operations, initial)
    for width in (*_WIDTHS, None):
        attempt = _Check(known, initial, width)
        violation = attempt.run()
        if violation is None or not attempt.narrowed:
            return violation
    raise AssertionError("the last attempt drops nothing")


def check_all(histories: Mapping[K, Sequence[Operation]]) -> dict[K, Violation]:
    """The violations of many keys, each of which begins absent. Linearizability of parts is that of the whole."""
    found = {key: check(operations) for key, operations in histories.items()}
    return {key: violation for key, violation in found.items() if violation is not None}


def _anonymised(operations: Sequence[Operation], initial: State | None) -> list[Operation]:
    """The operations, where writes of unknown outcome whose versions no answer names cannot be told apart."""
    named: set[Version] = {each.expected for each in operations}
    named |= {each.seen.state.version for each in operations if each.seen is not None and each.seen.state is not None}
    named |= {None, initial.version if initial else None}
    return [
        replace(each, version=UNSEEN) if each.answer is Answer.UNKNOWN and each.version not in named else each
        for each in operations
    ]


class _Check:
    """One attempt; `narrowed` tells that it has dropped configurations, because it keeps at most `width`."""

    def __init__(self, operations: Sequence[Operation], initial: State | None, width: int | None) -> None:
        self.narrowed = False
        self._width = width
        self._operations = operations
        self._running: dict[int, Operation] = {}
        self._keeping: dict[int, Operation] = {}
        self._groups: dict[tuple[object, ...], int] = {}
        self._members: list[Operation] = []
        self._invoked: list[int] = []
        self._settled: list[int] = []
        self._always: list[int] = []
        self._writers: defaultdict[Version, list[int]] = defaultdict(list)
        self._by_expected: defaultdict[Version, list[int]] = defaultdict(list)
        self._configurations: dict[_Place, list[_Used]] = {(initial, frozenset()): [_NOTHING]}

    def run(self) -> Violation | None:
        done: list[int] = []
        for number, returns in self._events():
            operation = self._operations[number]
            if not returns:
                self._invoke(number, operation)
                continue
            before = self._configurations
            self._configurations = self._after(number, operation)
            self._running.pop(number, None)
            self._keeping.pop(number, None)
            if not self._configurations:
                states = tuple(dict.fromkeys(state for state, _ in before))
                told = tuple(self._operations[each] for each in done[-_TOLD:])
                return Violation(operation, told, states)
            self._narrow()
            self._settle()
            done.append(number)
        return None

    def _events(self) -> Iterator[tuple[int, bool]]:
        """Invocations and returns in time; of those at one moment, invocations first."""
        events: list[tuple[float, bool, int]] = []
        for number, operation in enumerate(self._operations):
            events.append((operation.invoked, False, number))
            if operation.answer is not Answer.UNKNOWN:
                events.append((operation.returned, True, number))
        events.sort()
        return ((number, returns) for _, returns, number in events)

    def _invoke(self, number: int, operation: Operation) -> None:
        if operation.answer is not Answer.UNKNOWN:
            (self._keeping if keeps(operation) else self._running)[number] = operation
            return
        if keeps(operation):
            return
        identity = (operation.kind, operation.version, operation.expected, operation.total, operation.adds)
        group = self._groups.setdefault(identity, len(self._members))
        if group == len(self._members):
            self._members.append(operation)
            self._writers[operation.version].append(group)
            self._invoked.append(0)
            self._settled.append(0)
        if self._invoked[group] == self._settled[group]:
            self._enlist(group, operation)
        self._invoked[group] += 1

    def _enlist(self, group: int, operation: Operation) -> None:
        groups = self._always if operation.expected is None else self._by_expected[operation.expected]
        if group not in groups:
            groups.append(group)

    def _after(self, number: int, operation: Operation) -> dict[_Place, list[_Used]]:
        """The configurations in which the operation that returns has taken effect."""
        found: dict[_Place, list[_Used]] = {}
        visited: dict[_Place, list[_Used]] = {}
        todo = [(*place, used) for place, useds in self._configurations.items() for used in useds]
        explored = 0
        needed = _needed(operation)
        for state, before, used in todo:
            effective = self._with_true_answers(state, before)
            if number in effective:
                _add(found, (state, effective - {number}), used)
                continue
            if not _add(visited, (state, effective), used):
                continue
            true, after = answered(operation, state)
            if true:
                _add(found, (after, effective), used)
            if self._hopeless(needed, state, effective) if not true else self._enough(operation, effective):
                continue
            explored += 1
            if self._width is not None and explored > 4 * self._width and found:
                self.narrowed = True
                break
            if explored > MOST_CONFIGURATIONS:
                raise UndecidedError(f"{operation} follows more than {MOST_CONFIGURATIONS} configurations")
            todo.extend(self._steps(state, effective, used))
        return found

    def _enough(self, operation: Operation, effective: frozenset[int]) -> bool:
        """Whether nothing needs to precede an operation whose answer is true already.

        What is running or unknown can as well follow an operation that leaves the state as it is. Nothing that precedes
        it shows in one that leaves the same state whatever it finds, or that finds the one version that it names: only
        what else is running and could not follow it.
        """
        if keeps(operation) or operation.expected is not None:
            return True
        if operation.kind is Kind.UPDATE and (operation.seen is None or not operation.seen.has_total):
            return False
        return len(self._running) + len(self._keeping) <= 1 + len(effective)

    def _hopeless(self, needed: Version, state: State | None, effective: frozenset[int]) -> bool:
        """Whether the version that an answer names has gone, or cannot come any more. Versions never return."""
        if needed is None or needed == UNSEEN:
            return False
        if state is not None and state.version == needed:
            return True
        running = any(each.version == needed for n, each in self._running.items() if n not in effective)
        groups = self._writers.get(needed, ())
        return not running and all(self._invoked[group] == self._settled[group] for group in groups)

    def _with_true_answers(self, state: State | None, effective: frozenset[int]) -> frozenset[int]:
        true = [n for n, each in self._keeping.items() if n not in effective and answered(each, state)[0]]
        return effective.union(true) if true else effective

    def _steps(
        self, state: State | None, effective: frozenset[int], used: _Used
    ) -> Iterator[tuple[State | None, frozenset[int], _Used]]:
        """What may take effect next."""
        for number, operation in self._running.items():
            if number not in effective:
                true, after = answered(operation, state)
                if true:
                    yield after, effective | {number}, used
        groups: Iterable[int] = self._always
        if state is not None and state.version in self._by_expected:
            groups = [*groups, *self._by_expected[state.version]]
        for group in groups:
            applies, after = effect(self._members[group], state)
            if not applies or after == state:
                continue
            count = self._settled[group] + sum(1 for of, _ in used if of == group)
            if count < self._invoked[group]:
                yield after, effective, used | {(group, count)}

    def _narrow(self) -> None:
        """Keep the configurations that have used up least, those of different places first."""
        if self._width is None or sum(map(len, self._configurations.values())) <= self._width:
            return
        self.narrowed = True
        ranked = [
            (rank, len(used), place, used)
            for place, useds in self._configurations.items()
            for rank, used in enumerate(sorted(useds, key=len))
        ]
        ranked.sort(key=itemgetter(0, 1))
        self._configurations = {}
        for _, _, place, used in ranked[: self._width]:
            self._configurations.setdefault(place, []).append(used)

    def _settle(self) -> None:
        """Forget the members that have taken effect in every configuration."""
        useds = [used for each in self._configurations.values() for used in each]
        common = frozenset.intersection(*useds)
        if not common:
            return
        for group, _ in common:
            self._settled[group] += 1
            if self._settled[group] == self._invoked[group]:
                expected = self._members[group].expected
                (self._always if expected is None else self._by_expected[expected]).remove(group)
        self._configurations = {place: [used - common for used in each] for place, each in self._configurations.items()}


def _needed(operation: Operation) -> Version:
    """The version that must be there before the operation for its answer to be true, if it is a certain one."""
    if operation.answer is not Answer.OK:
        return None
    if operation.kind is Kind.GET:
        return operation.seen.state.version if operation.seen and operation.seen.state else None
    return operation.expected


def _add(configurations: dict[_Place, list[_Used]], place: _Place, used: _Used) -> bool:
    """Add a configuration, unless there is one that has used no more; drop those that have used more."""
    others = configurations.get(place)
    if others is None:
        configurations[place] = [used]
        return True
    if any(other <= used for other in others):
        return False
    others[:] = [other for other in others if not used <= other]
    others.append(used)
    return True
