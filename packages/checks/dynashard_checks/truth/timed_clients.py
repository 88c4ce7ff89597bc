"""Clients of entities placed by epochs, whose clocks are off, and which share a few keys near the present."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from random import Random
from threading import Event, Lock
from time import monotonic
from typing import Any, Final

from dynashard import Collection
from dynashard.errors import (
    AlreadyExistsError,
    ClockOffError,
    DynashardError,
    KeyTooFarAheadError,
    NotFoundError,
    OutcomeUnknownError,
    RevisionMismatchError,
)
from dynashard_checks.linearizability.listings import Listing
from dynashard_checks.linearizability.model import UNSEEN, Answer, Kind, Operation, Seen, State
from dynashard_checks.schedules.epochs.keys import ksuid

Subject = tuple[str, str]
"""Tenant and key of an item."""
_WEIGHTS: Final = {
    "get": 24, "create": 14, "put": 12, "replace": 14, "update": 6, "update_at": 6, "delete": 5, "delete_at": 6,
    "list": 2,
}  # fmt: skip
_NEW_SHARE: Final = 0.12
_READ_AGAIN: Final = 0.7
_BITS: Final = 128


@dataclass
class Keys:
    """The keys that all clients share. They are replaced all the time by keys of the present.

    Attributes:
        tenants: the logical partitions.
        ahead: how far ahead of a clock a key may be, in seconds.
        slots: how many keys of each tenant are in use at a time.
        moments: when the epochs of each tenant begin, in epoch seconds.
        used: all keys that ever were in use.
    """

    tenants: tuple[str, ...]
    ahead: float
    slots: int = 8
    moments: dict[str, list[float]] = field(default_factory=dict)
    used: set[Subject] = field(default_factory=set)
    _current: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    _lock: Lock = field(default_factory=Lock)

    def draw(self, random: Random, now: float) -> Subject:
        """Draw a key in use, or a new one as a process makes it whose clock is at `now`."""
        tenant = random.choice(self.tenants)
        with self._lock:
            current = self._current[tenant]
            if len(current) == self.slots and random.random() >= _NEW_SHARE:
                return tenant, random.choice(current)
            beginning = [moment for moment in self.moments.get(tenant, ()) if now - 2 < moment <= now + self.ahead]
            at = random.choice([now, now - 1, now + self.ahead, *beginning * 3])
            key = ksuid(at, random.choice((0, random.getrandbits(_BITS))))
            if key not in current:
                del current[: len(current) - self.slots + 1]
                current.append(key)
            self.used.add((tenant, key))
            return tenant, key


@dataclass
class History:
    """What all clients have done. Threads may share it.

    Attributes:
        operations: the operations on each key, without those that were refused without effect.
        listings: the listings, each with its tenant.
        refused: how many operations were refused without effect, by their error.
        strange: errors that no client should get.
    """

    operations: dict[Subject, list[Operation]] = field(default_factory=lambda: defaultdict(list))
    listings: list[tuple[str, Listing]] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    strange: list[str] = field(default_factory=list)
    _versions: dict[str, int] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def add(self, subject: Subject, operation: Operation) -> None:
        """Add an operation with its answer."""
        with self._lock:
            self.operations[subject].append(operation)

    def saw(self, item: Any) -> Seen:
        """Note the version of an item's revision, and return what was seen."""
        self._versions[item.revision] = item.value
        return Seen(State(item.value), has_total=False)

    def named(self) -> dict[Subject, list[Operation]]:
        """Return all operations, with the versions of the revisions that refusals name."""
        return {subject: [self._named(each) for each in some] for subject, some in self.operations.items()}

    def _named(self, operation: Operation) -> Operation:
        seen = operation.seen
        if operation.answer is not Answer.MISMATCH or seen is None or seen.state is None:
            return operation
        version = self._versions.get(str(seen.state.version), UNSEEN)
        return replace(operation, seen=replace(seen, state=State(version)))

    def turned_down(self, error: DynashardError) -> None:
        """Count an operation that was refused without effect."""
        with self._lock:
            self.refused[type(error).__name__] += 1
            if not error.retryable and not isinstance(error, KeyTooFarAheadError):
                self.strange.append(f"{type(error).__name__}: {error}")


@dataclass
class TimedClient:
    """A client that does one operation after the other.

    Attributes:
        collection: the items.
        clock: the clock by whose time it makes keys, in epoch seconds.
        number: its number, for versions of its own.
        random: decides what it does.
        keys: the keys of all clients.
        history: gets its operations and their answers.
        guarded: whether success of a delete only means that the item is gone; see `judging.judged`.
        accepted: how many of its writes were accepted.
        clock_refused: how many operations were refused because of its clock.
    """

    collection: Collection[Any]
    clock: Callable[[], float]
    number: int
    random: Random
    keys: Keys
    history: History
    guarded: bool = False
    accepted: int = 0
    clock_refused: int = 0
    _known: dict[Subject, Any] = field(default_factory=dict)
    _written: int = 0

    def run(self, operations: int, stop: Event) -> None:
        """Do operations until there were enough, or until `stop` is set."""
        kinds, weights = list(_WEIGHTS), list(_WEIGHTS.values())
        for _ in range(operations):
            if stop.is_set():
                return
            [kind] = self.random.choices(kinds, weights)
            getattr(self, f"_do_{kind}")(self.keys.draw(self.random, self.clock()))

    def get(self, subject: Subject) -> None:
        """Read an item consistently."""
        self._do_get(subject)

    def list(self, tenant: str) -> None:
        """List the items of a tenant."""
        self._do_list((tenant, ""))

    def _do_get(self, subject: Subject) -> None:
        with self._operation(Kind.GET, subject) as begun:
            item = self.collection.find(**_fields(subject), consistent=True)
            self._end(subject, begun, Answer.MISSING if item is None else Answer.OK, item)

    def _do_create(self, subject: Subject) -> None:
        with self._operation(Kind.CREATE, subject, version=self._version()) as begun:
            self._wrote(subject, begun, self.collection.create(**_fields(subject), value=begun.version))

    def _do_put(self, subject: Subject) -> None:
        with self._operation(Kind.PUT, subject, version=self._version()) as begun:
            item = self.collection.entity.model(**_fields(subject), value=begun.version)
            self._wrote(subject, begun, self.collection.put(item).item)

    def _do_replace(self, subject: Subject) -> None:
        known = self._read(subject)
        if known is None:
            return
        with self._operation(Kind.PUT, subject, version=self._version(), expected=known.value) as begun:
            item = known.model_copy(update={"value": begun.version})
            self._wrote(subject, begun, self.collection.put(item, if_match=known.revision).item)

    def _do_update(self, subject: Subject, known: Any = None) -> None:
        expected = None if known is None else known.value
        with self._operation(Kind.UPDATE, subject, version=self._version(), expected=expected) as begun:
            if_match = None if known is None else known.revision
            self._wrote(
                subject,
                begun,
                self.collection.update(_fields(subject), set={"value": begun.version}, if_match=if_match),
            )

    def _do_update_at(self, subject: Subject) -> None:
        known = self._read(subject)
        if known is not None:
            self._do_update(subject, known)

    def _do_delete(self, subject: Subject, known: Any = None) -> None:
        expected = None if known is None else known.value
        kind = Kind.DROP if self.guarded and known is None else Kind.DELETE
        with self._operation(kind, subject, expected=expected) as begun:
            self.collection.delete(_fields(subject), if_match=None if known is None else known.revision)
            self.accepted += 1
            self._end(subject, begun, Answer.OK)

    def _do_delete_at(self, subject: Subject) -> None:
        known = self._read(subject)
        if known is not None:
            self._do_delete(subject, known)

    def _do_list(self, subject: Subject) -> None:
        tenant, invoked = subject[0], monotonic()
        asked = {"order": self.random.choice(("ordered", "round_robin", "shard")), "limit": self.random.choice((3, 20))}
        received: list[str] = []
        cursor = None
        while True:
            begun = Operation(Kind.GET, monotonic(), name="listed")
            try:
                page = self.collection.list(tenant=tenant, consistent=True, cursor=cursor, **asked)
            except DynashardError as error:
                self.history.turned_down(error)
                return
            for item in page.items:
                received.append(item.id)
                self._end((tenant, item.id), begun, Answer.OK, item)
            cursor = page.cursor
            if cursor is None:
                break
        listing = Listing(invoked, monotonic(), tuple(received), f"{asked['order']} listing of {tenant}")
        self.history.listings.append((tenant, listing))

    def _read(self, subject: Subject) -> Any:
        """Return an item that was seen, mostly the current one."""
        if subject not in self._known or self.random.random() < _READ_AGAIN:
            self._do_get(subject)
        return self._known.get(subject)

    @contextmanager
    def _operation(self, kind: Kind, subject: Subject, **parts: Any) -> Iterator[Operation]:
        begun = Operation(kind, monotonic(), name=f"client{self.number}", **parts)
        try:
            yield begun
        except (AlreadyExistsError, NotFoundError, RevisionMismatchError) as error:
            self._refused(subject, begun, error)
        except OutcomeUnknownError:
            self.history.add(subject, begun)
        except DynashardError as error:
            self.clock_refused += isinstance(error, ClockOffError)
            self.history.turned_down(error)

    def _refused(self, subject: Subject, begun: Operation, error: DynashardError) -> None:
        if isinstance(error, RevisionMismatchError):
            # Which version has this revision, another answer may show only later.
            seen = None if error.current is None else Seen(State(error.current), has_total=False)
            self.history.add(subject, replace(begun, returned=monotonic(), answer=Answer.MISMATCH, seen=seen))
        else:
            self._end(subject, begun, Answer.EXISTS if isinstance(error, AlreadyExistsError) else Answer.MISSING)

    def _wrote(self, subject: Subject, begun: Operation, item: Any) -> None:
        self.accepted += 1
        if item.value != begun.version:
            # The write was proved by what stands now, which is a later item by another write.
            self._end(subject, replace(begun, kind=Kind.GET, version=None, expected=None), Answer.OK, item)
            self._end(subject, begun, Answer.OK)
            return
        self.history.saw(item)
        self._known[subject] = item
        self._end(subject, begun, Answer.OK)

    def _end(self, subject: Subject, begun: Operation, answer: Answer, item: Any = None) -> None:
        seen = None
        if item is not None:
            self._known[subject] = item
            seen = self.history.saw(item)
        self.history.add(subject, replace(begun, returned=monotonic(), answer=answer, seen=seen))

    def _version(self) -> int:
        self._written += 1
        return self.number * 1_000_000 + self._written


def _fields(subject: Subject) -> dict[str, str]:
    return {"tenant": subject[0], "id": subject[1]}
