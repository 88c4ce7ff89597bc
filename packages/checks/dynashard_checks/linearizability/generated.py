"""Random histories of an atomic register, falsified histories, and a checker by brute force."""

from collections.abc import Sequence
from dataclasses import replace
from heapq import heappop, heappush
from itertools import permutations
from math import inf
from random import Random

from dynashard_checks.linearizability.model import (
    Answer,
    Kind,
    Operation,
    Seen,
    State,
    Version,
    answered,
    effect,
)


def atomic_history(
    random: Random, operations: int, *, clients: int = 4, unknown: float = 0.15, late: float = 5.0
) -> list[Operation]:
    """Return a random history of an atomic register.

    Args:
        random: draws everything.
        operations: how many operations it has.
        clients: how many clients run one operation at a time each.
        unknown: the share of operations whose answer is lost. Half of these never take effect.
        late: the longest time in seconds after which such an operation takes effect.
    """
    register: State | None = None
    seen_last: list[Version] = [None] * clients
    found: dict[int, Operation] = {}
    events = sorted((random.random(), client, client, "start") for client in range(clients))
    begun = 0
    while events:
        now, number, client, what = heappop(events)
        if what == "start":
            if begun == operations:
                continue
            number, begun = clients + begun, begun + 1
            found[number] = _drawn(random, number, now, seen_last[client])
            lost = random.random() < unknown
            if not lost or random.random() < 0.5:
                delay = random.random() * (late if lost else 1.0)
                heappush(events, (now + delay, number, client, "lost" if lost else "effect"))
            if lost:
                heappush(events, (now + random.random(), number, client, "start"))
        elif what == "lost":
            _, register = effect(found[number], register)
        else:
            returned = now + random.random() * 0.5
            found[number], register = _performed(replace(found[number], returned=returned), register)
            seen_last[client] = register.version if register else seen_last[client]
            heappush(events, (returned + random.random() * 0.3, number, client, "start"))
    return list(found.values())


def _drawn(random: Random, number: int, now: float, known: Version) -> Operation:
    kind = random.choice((Kind.CREATE, Kind.PUT, Kind.PUT, Kind.UPDATE, Kind.DELETE, Kind.GET, Kind.GET))
    conditional = kind in (Kind.PUT, Kind.UPDATE, Kind.DELETE) and random.random() < 0.6
    return Operation(
        kind=kind,
        invoked=now,
        version=number if kind in (Kind.CREATE, Kind.PUT, Kind.UPDATE) else None,
        expected=known if conditional else None,
        adds=random.choice((0, 1)) if kind is Kind.UPDATE else 0,
        name=f"op{number}",
    )


def _performed(operation: Operation, register: State | None) -> tuple[Operation, State | None]:
    """Apply an operation to a register. Return it with its true answer, and the register afterwards."""
    kind = operation.kind
    if kind is Kind.GET:
        found = Answer.MISSING if register is None else Answer.OK
        return replace(operation, answer=found, seen=Seen(register) if register else None), register
    applies, after = effect(operation, register)
    if not applies:
        if operation.expected is not None:
            return replace(operation, answer=Answer.MISMATCH, seen=Seen(register, has_total=False)), register
        return replace(operation, answer=Answer.EXISTS if kind is Kind.CREATE else Answer.MISSING), register
    seen = Seen(after) if kind is Kind.UPDATE else None
    created = (register is None) if kind is Kind.PUT and operation.expected is None else None
    return replace(operation, answer=Answer.OK, seen=seen, created=created), after


def falsified(random: Random, history: Sequence[Operation]) -> list[Operation]:
    """Return the history with one answer replaced by another that the operation could have given."""
    wrong = list(history)
    answers = [at for at, each in enumerate(wrong) if each.answer is not Answer.UNKNOWN]
    at = random.choice(answers)
    wrong[at] = random.choice(_falsehoods(random, wrong[at], history))
    return wrong


def _falsehoods(random: Random, operation: Operation, history: Sequence[Operation]) -> list[Operation]:
    kind, answer = operation.kind, operation.answer
    if kind is Kind.GET:
        versions = [e.version for e in history if e.version is not None and e.invoked < operation.returned]
        seen = operation.seen.state if operation.seen else None
        others = [version for version in versions if seen is None or version != seen.version]
        found = [replace(operation, answer=Answer.MISSING, seen=None)] if answer is Answer.OK else []
        if others:
            found.append(replace(operation, answer=Answer.OK, seen=Seen(State(random.choice(others)), has_total=False)))
        return found or [replace(operation, answer=Answer.OK, seen=Seen(State("nobody's"), has_total=False))]
    if answer is Answer.OK:
        if operation.expected is not None:
            refusal = Answer.MISMATCH
        else:
            refusal = Answer.MISSING if kind in (Kind.UPDATE, Kind.DELETE) else Answer.EXISTS
        if kind is Kind.PUT and operation.expected is None:
            # A put without a version is never refused, but its answer about the replaced item can be wrong.
            return [replace(operation, created=not operation.created)]
        return [replace(operation, answer=refusal, seen=None)]
    return [replace(operation, answer=Answer.OK, seen=None)]


def linearizable(operations: Sequence[Operation], *, initial: State | None = None) -> bool:
    """Return whether some order explains all answers, by trying all orders. Use it for few operations."""
    certain = [each for each in operations if each.answer is not Answer.UNKNOWN]
    unknown = [each for each in operations if each.answer is Answer.UNKNOWN]
    for chosen in range(1 << len(unknown)):
        some = certain + [each for at, each in enumerate(unknown) if chosen >> at & 1]
        if any(_explains(order, initial) for order in permutations(some)):
            return True
    return False


def _explains(order: Sequence[Operation], state: State | None) -> bool:
    latest = -inf
    for operation in order:
        latest = max(latest, operation.invoked)
        # It returned before an operation was invoked that precedes it in this order.
        if operation.returned < latest:
            return False
        if operation.answer is Answer.UNKNOWN:
            applies, state = effect(operation, state)
            if not applies:
                return False
            continue
        true, state = answered(operation, state)
        if not true:
            return False
    return True
