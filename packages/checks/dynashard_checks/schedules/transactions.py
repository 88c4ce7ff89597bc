"""Schedules whose clients also do transactions: several steps on several keys, judged as one."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from dynashard import Check, Create, Delete, Put, Step, Update
from dynashard.errors import DynashardError, OutcomeUnknownError, TransactionRefusedError
from dynashard.transactions import Transaction
from dynashard_checks.linearizability.model import Answer, Kind
from dynashard_checks.schedules.clients import Client
from dynashard_checks.schedules.history import Key, Value, Values
from dynashard_checks.schedules.operations import Operation
from dynashard_checks.schedules.plan import Plan, planned
from dynashard_checks.schedules.schedule import Outcome, Schedule
from dynashard_checks.schedules.scheduler import Actor, AnomalyError, Killed
from dynashard_checks.schedules.wire import LeanWire

KINDS: Final = ("race", "race", "grow", "shrink", "adopt", "family")
_KINDS: Final = {
    "create": Kind.CREATE,
    "put": Kind.PUT,
    "update": Kind.UPDATE,
    "delete": Kind.DELETE,
    "drop": Kind.DROP,
}
_WRITING: Final = ("create", "create", "put", "update", "delete", "drop")
_CHECKING: Final = ("check", "check none", "check none")
_WRITERS: Final = ("transact", "transact", "transact", "create", "delete")
_READERS: Final = ("transact", "transact", "batch_get", "get", "update", "page", "count")


@dataclass(frozen=True)
class Part:
    """The step of a transaction on one key. `if_match` is the revision that it names, and it adds `adds` to `hits`."""

    kind: str
    key: Key
    step: Step
    if_match: str | None = None
    expected: int | None = None
    adds: int = 0
    value: int | None = None
    total: int = 0

    @property
    def checks(self) -> bool:
        """Whether the step is a check, which writes nothing."""
        return self.kind in _CHECKING

    @property
    def recorded(self) -> Kind | None:
        """The kind for the linearizability checker; None for a check."""
        return _KINDS.get(self.kind)


@dataclass
class Transacted(Operation):
    """A transaction of a client. `held` is true if it was applied, and its checks were true at that time."""

    parts: dict[Key, Part] = field(default_factory=dict)
    held: bool = False
    stored: dict[Key, Any] = field(default_factory=dict)

    def begin(self) -> None:
        """See `Operation.begin`. The checker judges each step by itself, which is less than a transaction promises."""
        for key, part in self.parts.items():
            if part.recorded is not None:
                self._begin(
                    key, part.recorded, version=part.value, expected=part.expected, total=part.total, adds=part.adds
                )

    def check(self, key: Key, before: Values, after: Values) -> None:
        """Judge the effect on a key, and the checks at that time. This is a `history.Check`."""
        part = self.parts.get(key)
        if part is None or part.checks:
            raise AnomalyError(f"the transaction of {self.keys} has written {key}")
        self._hold()
        self.adds, self.kind = part.adds, part.kind
        if part.kind == "drop" and after == before == frozenset([None]):
            return
        mine = self.applied.setdefault(key, [])
        if mine and before == after and (before != frozenset(mine) or self._unchanged(key, mine[0])):
            # The answer came late, and what is stored was moved to where readers look for it now.
            return
        mine.append(self._written(key, before, after))
        self.stored[key] = self.history.contents.get(mine[0] or "")
        if len(mine) > 1:
            raise AnomalyError(f"{part} was applied twice: {mine}")
        if part.if_match is not None and part.if_match not in before and not self._may_expire(part.if_match):
            raise AnomalyError(f"{part} was applied to {sorted(map(str, before))}")

    def _unchanged(self, key: Key, value: Value) -> bool:
        """Return whether an item is stored as it was applied; an item that has expired counts as absent."""
        return self.history.expired(key) if value is None else self.history.contents[value] == self.stored[key]

    def _hold(self) -> None:
        for part in self.parts.values():
            now = self.history[part.key]
            wanted: Value = part.if_match if part.kind == "check" else None
            if part.checks and wanted not in now and not self.history.expired(part.key):
                raise AnomalyError(f"{part} passed in a transaction, but the key is {sorted(map(str, now))}")
        self.held = True

    def done(self, stored: list[Any]) -> None:
        """Check the acknowledgement."""
        for key in list(self._recorded):
            self._answer(key, Answer.OK)
        if not self.history.values_known:
            return
        if not self.held:
            raise AnomalyError(f"the transaction of {self.keys} was acknowledged, but never applied")
        for part, item in zip(self.parts.values(), stored, strict=True):
            if item is not None and item.revision not in self.history.contents:
                raise AnomalyError(f"{part} was acknowledged as {item.revision}, but never applied")
            if part.kind in ("create", "put", "update", "delete") and not self.applied.get(part.key):
                raise AnomalyError(f"{part} was acknowledged, but never applied")

    def refused(self, error: DynashardError) -> bool:
        """Check an error. Return whether it is an answer rather than an unknown outcome."""
        if not isinstance(error, TransactionRefusedError):
            if isinstance(error, OutcomeUnknownError):
                self.lost()
            if error.transient:
                return False
            raise AnomalyError(f"the transaction of {self.keys} failed: {error!r}") from error
        part = list(self.parts.values())[error.step]
        self.kind = part.kind
        if error.reason in ("already_exists", "not_found"):
            self._saw_existence(part, live=error.reason == "already_exists")
        elif error.reason == "revision_mismatch":
            self._saw_mismatch(part)
        if self.held:
            raise AnomalyError(f"the transaction of {self.keys} was applied, and then refused: {error}")
        return True

    def _saw_existence(self, part: Part, *, live: bool) -> None:
        """Check that a step was refused because its item is live, or because none is."""
        if part.key in self._recorded:
            self._answer(part.key, Answer.EXISTS if live else Answer.MISSING)
        if self.history.values_known:
            self._check_existence(part.key, live=live)

    def _saw_mismatch(self, part: Part) -> None:
        """Check that a step was refused because its item is not at the revision that it names."""
        if part.key in self._recorded:
            self._answer(part.key, Answer.MISMATCH)
        if self.history.values_known and self.watch.of(part.key) == {part.if_match}:
            raise AnomalyError(f"{part} is refused, but the key is at {part.if_match}")

    def end(self) -> None:
        """Check that all steps were applied, or none."""
        times = {len(self.applied.get(part.key, ())) for part in self.parts.values() if part.kind in ("create", "put")}
        if len(times) > 1:
            raise AnomalyError(f"the transaction of {self.keys} was applied in part: {self.applied}")


class TransactingClient(Client):
    """A client that also does transactions."""

    def _do_transact(self) -> None:
        keys = self._random.sample(self._traffic.keys, self._random.randint(1, min(3, len(self._traffic.keys))))
        kinds = [self._random.choice(_WRITING)]
        kinds += [self._random.choice(self._random.choice((_WRITING, _CHECKING))) for _ in keys[1:]]
        parts = {key: self._part(kind, key) for kind, key in zip(kinds, keys, strict=True)}
        with self._transaction(parts) as operation:
            stored = Transaction(self._store, [part.step for part in parts.values()]).run()
            operation.done(stored)
            for key, item in zip(parts, stored, strict=True):
                if item is not None:
                    self._saw(key, item)

    def _part(self, kind: str, key: Key) -> Part:  # noqa: PLR0911 - one for each kind
        model, known = self._traffic.model, self._known.get(key)
        revision = known.revision if known is not None and known.revision else None
        if_match = revision if self._random.random() < 0.3 else None
        expected = known.value if known is not None and if_match else None
        fields, adds = self._fields(key), self._random.choice((0, 1))
        if kind == "create":
            item = self._item(key)
            return Part(kind, key, Create(item), value=item.value)
        if kind == "put":
            item = self._item(key)
            return Part(kind, key, Put(item, if_match=if_match), if_match, expected, value=item.value)
        if kind == "update":
            value = next(self._traffic.values)
            step = Update(model, fields, set={"value": value}, add={"hits": adds}, if_match=if_match)
            return Part(kind, key, step, if_match, expected, adds, value)
        if kind == "delete":
            return Part(kind, key, Delete(model, fields, if_match=if_match), if_match, expected)
        if kind == "drop":
            return Part(kind, key, Delete(model, fields, missing="ignore"))
        if kind == "check" and revision is not None:
            return Part(kind, key, Check(model, fields, revision), revision)
        return Part("check none", key, Check(model, fields, None))

    @contextmanager
    def _transaction(self, parts: dict[Key, Part]) -> Iterator[Transacted]:
        scheduler, traffic = self._scheduler, self._traffic
        watch = self._history.watch(*parts)
        deleted = frozenset(key for key, part in parts.items() if part.kind in ("delete", "drop"))
        operation = Transacted(
            "transact",
            tuple(parts),
            self._history,
            watch,
            deletes=deleted,
            parts=parts,
        )
        operation.begin()
        self._actor.topology_read_at = scheduler.now
        self.transport.check = operation.check
        scheduler.note(self._actor, f"=== transact {[(part.kind, part.key, part.if_match) for part in parts.values()]}")
        try:
            yield operation
            traffic.done += 1
        except DynashardError as error:
            scheduler.note(self._actor, f"=== transact: {type(error).__name__}: {error}")
            if operation.refused(error):
                traffic.done += 1
            else:
                traffic.gave_up += 1
        except Killed:
            operation.lost()
            raise
        finally:
            self._actor.topology_read_at = None
            self.transport.check = None
            self._history.unwatch(watch)
        operation.end()


class TransactingSchedule(Schedule):
    """A schedule of clients that also do transactions."""

    def __init__(self, wire: LeanWire, plan: Plan, trace: list[str] | None = None) -> None:
        super().__init__(wire, plan, trace)
        self._traffic.kinds = (_WRITERS, _READERS)

    def _new_client(self, actor: Actor) -> Client:
        return TransactingClient(self._traffic, actor)


def run_transactions(wire: LeanWire, seed: int, *, trace: list[str] | None = None) -> Outcome:
    """Run the schedule of a seed, with transactions.

    Raises:
        AnomalyError: the code under test broke a promise.
    """
    kind = KINDS[seed % len(KINDS)]
    return TransactingSchedule(wire, planned(seed, kind), trace).run()
