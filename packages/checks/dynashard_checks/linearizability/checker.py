"""A linearizability checker: it finds out whether some order of the operations makes every answer true.

This is the algorithm of Wing and Gong with memoisation, in its just-in-time form (Lowe, "Testing for linearizability",
2017). It processes invocations and returns in the order of time, and keeps every configuration that the answers so far
allow: the state of the register, and which running operations have already taken effect. When an operation returns, all
operations that may precede it are tried. If no configuration is left, no order explains the answers.

Operations of unknown outcome may take effect at any moment after their invocation, or never. There can be hundreds of
them, so three rules keep the number of configurations small without losing a solution:

- Indistinguishable operations (the same effect, and a version that no answer names) form a group. Only the number of
  its members that have taken effect is kept.
- A configuration is dropped if another one has the same state and has used fewer unknown operations, because the other
  one can do everything that the dropped one can.
- An operation that does not change the register takes effect as soon as its answer is true.

The first attempt keeps only the configurations that have used the fewest operations. If one of them lasts to the end,
the history is linearizable. If none does, the check starts again with more configurations, and finally with all of
them. A history is refused only if no configuration was dropped.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Final, TypeVar

from dynashard_checks.linearizability.model import (
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
_SHOWN: Final = 12
"""How many operations before a violation are reported."""

_Used = frozenset[tuple[int, int]]
"""The members of groups that have taken effect, each as its group and its number in the group."""
_Place = tuple[State | None, frozenset[int]]
"""The state, and the running operations that have taken effect."""
_NOTHING: Final[_Used] = frozenset()


class UndecidedError(Exception):
    """There are too many configurations to decide."""


@dataclass(frozen=True, slots=True)
class Violation:
    """No order of the operations makes all answers true.

    Attributes:
        operation: the first operation, in the order of answers, whose answer cannot be true.
        before: the operations just before it.
        states: the states that the register may have had then.
    """

    operation: Operation
    before: tuple[Operation, ...]
    states: tuple[State | None, ...]

    def __str__(self) -> str:
        states = ", ".join("absent" if s is None else f"{s.version} ({s.total})" for s in self.states)
        before = "\n".join(f"  {each}" for each in self.before)
        return f"not linearizable: {self.operation}\nthe register may have held: {states}\nbefore:\n{before}"


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
    """Check many keys that are absent at first, and return their violations.

    Linearizability is local: a history is linearizable if the history of each key is.
    """
    found = {key: check(operations) for key, operations in histories.items()}
    return {key: violation for key, violation in found.items() if violation is not None}


def _anonymised(operations: Sequence[Operation], initial: State | None) -> list[Operation]:
    """Give one version to all writes of unknown outcome whose versions no answer names, so that they form groups."""
    named: set[Version] = {each.expected for each in operations}
    named |= {each.seen.state.version for each in operations if each.seen is not None and each.seen.state is not None}
    named |= {None, initial.version if initial else None}
    return [
        replace(each, version=UNSEEN) if each.answer is Answer.UNKNOWN and each.version not in named else each
        for each in operations
    ]


class _Check:
    """One attempt. `narrowed` is true if it has dropped configurations, because it keeps at most `width`."""

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
                last = tuple(self._operations[each] for each in done[-_SHOWN:])
                return Violation(operation, last, states)
            self._narrow()
            self._settle()
            done.append(number)
        return None

    def _events(self) -> Iterator[tuple[int, bool]]:
        """Return invocations and returns in the order of time. Invocations come first in each moment."""
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
        """Return the configurations in which the operation that returns has taken effect."""
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
        """Return whether no other operation has to precede one whose answer is already true.

        Running and unknown operations can also follow an operation that does not change the state. Operations before it
        are not visible after an operation that always leaves the same state, or that requires one version. Only other
        running operations that could not follow it matter then.
        """
        if keeps(operation) or operation.expected is not None:
            return True
        if operation.kind is Kind.UPDATE and (operation.seen is None or not operation.seen.has_total):
            return False
        return len(self._running) + len(self._keeping) <= 1 + len(effective)

    def _hopeless(self, needed: Version, state: State | None, effective: frozenset[int]) -> bool:
        """Return whether the version in an answer is gone, or can no longer be written. Versions never return."""
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
        """Yield the configurations after each operation that may take effect next."""
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
        """Keep the configurations that have used the fewest operations, and prefer different places."""
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
        """Remove the members that have taken effect in every configuration."""
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
    """Return the version that the register must have before the operation for its answer to be true, if it is known."""
    if operation.answer is not Answer.OK:
        return None
    if operation.kind is Kind.GET:
        return operation.seen.state.version if operation.seen and operation.seen.state else None
    return operation.expected


def _add(configurations: dict[_Place, list[_Used]], place: _Place, used: _Used) -> bool:
    """Add a configuration unless another one has used no more operations, and drop those that have used more."""
    others = configurations.get(place)
    if others is None:
        configurations[place] = [used]
        return True
    if any(other <= used for other in others):
        return False
    others[:] = [other for other in others if not used <= other]
    others.append(used)
    return True
