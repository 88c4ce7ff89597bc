"""One schedule: operations of both versions, backfills that are killed, and resizes, judged against the truth."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any, Final

from dynashard import Dynashard, definition
from dynashard.backfills import Backfill, IndexBuild, Migration, Options, Report, wrong_index_keys
from dynashard.errors import (
    EngineError,
    NewerItemError,
    NotFoundError,
    ReshardRefusedError,
    RevisionMismatchError,
    ThrottledError,
    UndecodableItemError,
)
from dynashard.resharding import Resharder, Scope, Timing
from dynashard.resharding.scope import Family
from dynashard.runtime import Runtime
from dynashard.schema import MOVED_TO, PK, SK, TOPOLOGY_KEY, VERSION
from dynashard.testing.one_by_one import OneByOne
from dynashard.topology import LeasedTopology
from dynashard.transport.classification import unanswered
from dynashard.transport.interface import Resend, Wire
from dynashard_checks.changed_models.entities import FAMILY, TENANT, NewPart, OldPart
from dynashard_checks.schedules.scheduler import AnomalyError
from dynashard_checks.schedules.wire import TABLE, TOPOLOGY, LeanWire

IDS: Final = [f"i{number}" for number in range(12)]
NAMES: Final = [f"{first} {last}" for first in ("ada", "bob") for last in ("x", "y", "z")]
LEASE: Final = 30.0
_KEYS: Final = ["cursors of schedules stay here"]
_MOST_STEPS: Final = 400
_FEW: Final = 7
_MOST: Final = 8
"""The most shards."""

Values = dict[str, Any]


class Killed(BaseException):
    """The process of a backfill was killed."""


@dataclass
class Clock:
    """The time of a schedule, which passes when somebody sleeps."""

    now: float = 1_780_000_000.0

    def __call__(self) -> float:
        """Return the time in epoch seconds."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now += max(0.0, seconds)


class Interleaved(OneByOne):
    """Calls `between` before each request, and injects faults into those of a backfill."""

    def __init__(self, wire: LeanWire, between: Callable[[Wire], None], faults: Callable[[], str] = lambda: "") -> None:
        self._wire, self._between, self._faults = wire, between, faults

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        """Send one request; see `Transport.call`."""
        self._between({**request})
        # Requests for the state of a backfill are repeated by the real transport. A kill stands for their errors.
        fault = self._faults() if request.get("TableName") == TABLE else ""
        if fault == "throttle":
            raise ThrottledError("too fast", operation=operation, aws_code="ThrottlingException")
        if fault == "lost request" and operation in ("UpdateItem", "PutItem"):
            raise unanswered(operation, "ReadTimeoutError", "the request was lost")
        answer = self._wire.call(operation, request, resend=resend)
        if fault == "lost answer" and operation in ("UpdateItem", "PutItem"):
            raise unanswered(operation, "ReadTimeoutError", "the answer was lost")
        return answer

    def close(self) -> None:
        """Do nothing: the engine's connection belongs to all schedules."""


@dataclass
class Schedule:
    """A table with items of two versions, and what must be true of it.

    Attributes:
        truth: the fields of each live item, as version 2 has them.
        old_forms: the items that are stored in the form of version 1, as far as clients have left them.
    """

    wire: LeanWire
    random: Random
    clock: Clock = field(default_factory=Clock)
    truth: dict[str, Values] = field(default_factory=dict)
    old_forms: set[str] = field(default_factory=set)
    done: int = 0
    depth: int = 0
    old_runs: bool = True
    kill_in: int = -1
    resizes: int = 2

    def __post_init__(self) -> None:
        self.runtime = Runtime(self.clock, self.clock.sleep, self.random.random)
        self.revisions = count(1)
        plain = Interleaved(self.wire, lambda _: None)
        self.old = self._client(plain).collection(OldPart)
        fresh = self._client(plain)
        self.router, self.new = fresh.store.router, fresh.collection(NewPart)
        self.raced_old = self._client(Interleaved(self.wire, self._race)).collection(OldPart)
        self.raced_new = self._client(Interleaved(self.wire, self._race)).collection(NewPart)
        ids = count(1)
        self.resharder = Resharder(
            plain,
            table=TABLE,
            topology_table=TOPOLOGY,
            entities=[NewPart],
            timing=Timing(lease=LEASE, operation=10.0, skew=1.0, lag=0.0),
            runtime=self.runtime,
            new_id=lambda: f"resize-{next(ids)}",
            segments=2,
        )

    def _client(self, transport: Interleaved) -> Dynashard:
        topology = LeasedTopology(transport, TOPOLOGY, lease=LEASE, runtime=self.runtime)
        return Dynashard(transport, table=TABLE, cursor_keys=_KEYS, topology=topology, runtime=self.runtime)

    # Operations of clients.

    def _race(self, _: Wire) -> None:
        """Let another client act between two requests of one."""
        if self.depth < 1 and self.random.random() < 0.25:  # noqa: PLR2004 - the share of races
            self.operate()

    def operate(self, identity: str = "") -> None:
        """Do one operation of a client, on a drawn item unless one is named, and compare the item with the truth."""
        self.depth += 1
        try:
            identity = identity or self.random.choice(IDS)
            if self.old_runs and self.random.random() < 0.75:  # noqa: PLR2004 - most of them
                self._old_operation(identity)
            else:
                self._new_operation(identity)
            self.done += 1
            if self.depth == 1:
                self.compare(identity)
        finally:
            self.depth -= 1

    def _old_operation(self, identity: str) -> None:
        name, amount = self.random.choice(NAMES), str(self.random.randrange(100))
        items = self.raced_old
        how = self.random.choice(("put", "put", "put", "update", "replace", "delete"))
        key = {"tenant": TENANT, "id": identity}
        try:
            if how == "put":
                items.put(OldPart(**key, name=name, amount=amount))
                self._left_old(identity, name, amount)
            elif how == "update":
                items.update(key, set={"amount": amount})
                self.truth[identity]["amount"] = int(amount)
            elif how == "replace":
                read = items.get(key, consistent=True)
                items.put(read.model_copy(update={"name": name}), over=read)
                self._left_old(identity, name, read.amount)
            else:
                self._delete(items, key, identity)
        except NewerItemError:
            if identity in self.old_forms or identity not in self.truth:
                raise AnomalyError(f"{how} of version 1 met a newer item at {identity}, which is none") from None
        except UndecodableItemError as error:
            raise AnomalyError(f"{how} of version 1 changed what it cannot read: {error}") from error
        except (NotFoundError, RevisionMismatchError):
            self._require_raced(how, identity)
        else:
            if how != "delete" and identity not in self.old_forms:
                raise AnomalyError(f"{how} of version 1 wrote over a newer item at {identity}")

    def _left_old(self, identity: str, name: str, amount: str) -> None:
        if identity in self.truth and identity not in self.old_forms:
            raise AnomalyError(f"version 1 wrote over a newer item at {identity}")
        first, _, last = name.partition(" ")
        self.truth[identity] = {"first": first, "last": last, "amount": int(amount)}
        self.old_forms.add(identity)

    def _new_operation(self, identity: str) -> None:
        first, _, last = self.random.choice(NAMES).partition(" ")
        amount = self.random.randrange(100)
        items, key = self.raced_new, {"tenant": TENANT, "id": identity}
        how = self.random.choice(("put", "update", "update", "add", "replace", "guarded", "batch", "delete"))
        values = {"first": first, "last": last, "amount": amount}
        try:
            if how == "put":
                items.put(NewPart(**key, **values))
                self.truth[identity] = values
            elif how == "batch" and self.depth == 1:
                # A batch replaces what is written between its read and its write.
                self.new.batch_write(put=[NewPart(**key, **values)])
                self.truth[identity] = values
            elif how == "update":
                items.update(key, set={"last": last})
                self.truth[identity]["last"] = last
            elif how == "add":
                items.update(key, add={"amount": 1})
                self.truth[identity]["amount"] += 1
            elif how == "replace":
                read = items.get(key, consistent=True)
                items.put(read.model_copy(update={"first": first}), over=read)
                self.truth[identity] = {**self._fields(read), "first": first}
            elif how == "guarded":
                items.put(NewPart(**key, **values), handling="guarded")
                self.truth[identity] = values
            else:
                self._delete(items, key, identity)
                return
            self.old_forms.discard(identity)
        except (NotFoundError, RevisionMismatchError):
            self._require_raced(how, identity)

    def _delete(self, items: Any, key: Values, identity: str) -> None:
        items.delete(key)
        del self.truth[identity]
        self.old_forms.discard(identity)

    def _require_raced(self, how: str, identity: str) -> None:
        if identity in self.truth and how not in ("replace", "guarded") and self.depth > 1:
            raise AnomalyError(f"{how} did not find {identity}, which exists")

    @staticmethod
    def _fields(item: Any) -> Values:
        return {name: getattr(item, name) for name in ("first", "last", "amount")}

    # Judgements.

    def compare(self, identity: str) -> None:
        """Compare what both versions read of an item with the truth."""
        key = {"tenant": TENANT, "id": identity}
        found = self.new.find(key, consistent=True)
        shown = None if found is None else self._fields(found)
        if shown != self.truth.get(identity):
            raise AnomalyError(f"{identity} is {shown}, and should be {self.truth.get(identity)}")
        if self.random.random() < 0.1:  # noqa: PLR2004 - a listing takes many requests
            self.compare_listings()

    def compare_listings(self) -> None:
        """Compare what listings of version 2 return: of the table all, of an index nothing wrong."""
        order = self.random.choice(("round_robin", "ordered", "shard"))
        part = {"tenant": TENANT}
        everything = self._listed(order=order)
        if everything != self.truth:
            raise AnomalyError(f"a listing by {order} shows {everything}, and should show {self.truth}")
        last = self.random.choice("xyz")
        wanted = {name: each for name, each in self.truth.items() if each["last"] == last}
        filtered = self._listed(order=order, filters={"last": last})
        if filtered != wanted:
            raise AnomalyError(f"a filter by {last} shows {filtered}, and should show {wanted}")
        for name in ("by_last", "by_amount"):
            page = self.new.list(part, index=name, order=order)
            shown = {each.id: self._fields(each) for each in page}
            if any(self.truth.get(identity) != each for identity, each in shown.items()):
                raise AnomalyError(f"a listing of {name} shows {shown}, and the truth is {self.truth}")
            if page.complete and shown != self.truth:
                raise AnomalyError(f"a complete listing of {name} shows {shown}, and should show {self.truth}")

    def _listed(self, **how: Any) -> dict[str, Values]:
        found = [*self.new.list({"tenant": TENANT}, **how)]
        shown = {each.id: self._fields(each) for each in found}
        if len(shown) < len(found):
            raise AnomalyError(f"a listing shows an item twice: {found}")
        return shown

    # Backfills and resizes.

    def between(self, request: Wire) -> None:
        """What may happen before a request of a backfill."""
        if self.depth:
            return
        self.kill_in -= 1
        if self.kill_in == 0:
            raise Killed
        if self.random.random() < 0.3:  # noqa: PLR2004 - the share of requests with an operation before them
            about = request.get("Key", {}).get(SK, {}).get("S", "")
            self.operate(about if self.random.random() < 0.5 else "")  # noqa: PLR2004 - half of them race for the item
        if self.random.random() < 0.4:  # noqa: PLR2004 - as above
            self.resize()

    def fault(self) -> str:
        """Draw the fault of a request of a backfill; mostly none."""
        drawn = self.random.random()
        return "throttle" if drawn < 0.02 else "lost request" if drawn < 0.05 else "lost answer" if drawn < 0.1 else ""  # noqa: PLR2004

    def resize(self) -> None:
        """Begin a resize, or carry the one on that is under way, by one step."""
        self.depth += 1
        try:
            busy = self.resharder.poll()
            if busy:
                self._step(busy[0])
            elif self.resizes and self.random.random() < 0.3:  # noqa: PLR2004 - the share of idle moments
                self.resizes -= 1
                scopes = [Scope(definition(NewPart)), Scope(definition(NewPart), partition=f"{FAMILY}:{TENANT}")]
                scope = self.random.choice([*scopes, Scope(definition(NewPart), index=self._by_amount())])
                count_now = self.resharder.status(scope).count
                rewrite = True if scope.index else None
                with suppress(ReshardRefusedError):
                    self.resharder.start(scope, count_now * 2 if count_now < _MOST else count_now // 2, rewrite=rewrite)
        finally:
            self.depth -= 1

    def _step(self, key: str) -> None:
        step = self.resharder.advance(key)
        for task in step.tasks:
            while not self.resharder.work(key, task, seconds=1e9):
                pass
        if step.kind == "wait":
            self.clock.now += step.seconds

    def settle(self) -> None:
        """End all resizes."""
        self.depth += 1
        for _ in range(_MOST_STEPS):
            busy = self.resharder.poll()
            if not busy:
                self.depth -= 1
                return
            self._step(busy[0])
        raise AnomalyError("a resize does not end")

    @staticmethod
    def _by_amount() -> Any:
        return definition(NewPart).indexes["by_amount"]

    def backfill(self, kind: str, *, restart: bool) -> Report:
        """Run a backfill, as a process of its own."""
        transport = Interleaved(self.wire, self.between, self.fault)
        store, entity = self._client(transport).store, definition(NewPart)
        family = Family([entity])
        work = (
            Migration(store, entity, family)
            if kind == "migrate"
            else IndexBuild(store, entity, family, entity.indexes[kind])
        )
        options = Options(workers=1, tasks=2, seconds=1.0, chunk=4, write_units=1e6, read_units=1e6, lease=LEASE)
        return Backfill(store, TOPOLOGY, work, options).run(restart=restart)


def clear(wire: LeanWire) -> None:
    """Remove what the schedule before has stored."""
    for table, names in ((TABLE, (PK, SK)), (TOPOLOGY, (TOPOLOGY_KEY,))):
        for item in wire.call("Scan", {"TableName": table})["Items"]:
            wire.call("DeleteItem", {"TableName": table, "Key": {name: item[name] for name in names}})


def run_seed(wire: LeanWire, seed: int) -> int:
    """Run a schedule; return how many operations clients did. Raises `AnomalyError` if something was wrong."""
    clear(wire)
    world = Schedule(wire, Random(seed))
    for _ in range(world.random.randrange(10, 40)):
        world.operate()
    goals = ["migrate", "by_amount", "by_last"]
    world.random.shuffle(goals)
    for _ in range(world.random.randrange(3)):
        # Too few requests for one to end, which would say what holds only when no process of version 1 runs.
        _killed(world, world.random.choice(goals), restart=False, most=_FEW)
    # No process of version 1 runs any more.
    world.old_runs = False
    for goal in goals:
        _to_the_end(world, goal)
    for _ in range(5):
        world.operate()
    world.settle()
    world.clock.now += LEASE
    world.compare_listings()
    _judge_stored(world)
    return world.done


def _killed(world: Schedule, kind: str, *, restart: bool, most: int = 60) -> Report | None:
    """Run a backfill that is killed after a few requests."""
    world.kill_in = world.random.randrange(1, most)
    try:
        return world.backfill(kind, restart=restart)
    except (Killed, EngineError):
        # What a process does that ends with an error, another run goes on with.
        return None
    finally:
        world.kill_in = -1


def _to_the_end(world: Schedule, kind: str) -> None:
    report = _killed(world, kind, restart=True)
    for _ in range(world.random.randrange(3)):
        if report is None:
            report = _killed(world, kind, restart=False)
    for _ in range(20):
        if report is not None and report.complete:
            return
        with suppress(EngineError):
            report = world.backfill(kind, restart=False)
    raise AnomalyError(f"{kind} does not end: {report}")


def _judge_stored(world: Schedule) -> None:
    entity = definition(NewPart)
    router = world.router
    for item in world.wire.call("Scan", {"TableName": TABLE, "ConsistentRead": True})["Items"]:
        if MOVED_TO in item:
            continue
        if item.get(VERSION) != {"N": "2"}:
            raise AnomalyError(f"{item[SK]['S']} is still of version {item.get(VERSION)}")
        if wrong := wrong_index_keys(router, entity, item, entity.indexes.values()):
            raise AnomalyError(f"{item[SK]['S']} has wrong index keys: {wrong}")
