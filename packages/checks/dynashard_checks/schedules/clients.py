"""Clients of the layer that do random operations. Each has a topology with leases of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from random import Random
from typing import Any, Final

from dynashard import Filter, RetryPolicy
from dynashard.entity import WriteGuarantee, definition
from dynashard.errors import DynashardError
from dynashard.reads.cursor import CursorCodec
from dynashard.repository import Store
from dynashard.routing import Router
from dynashard.runtime import Runtime
from dynashard.service import Collection
from dynashard.topology import LeasedTopology, Topology
from dynashard.transactions.single_writes import TransactedWrites
from dynashard_checks.schedules.entities import GROUP, TENANT
from dynashard_checks.schedules.history import Key, Watch
from dynashard_checks.schedules.operations import Operation
from dynashard_checks.schedules.processes import Process
from dynashard_checks.schedules.scheduler import Actor, AnomalyError, Killed
from dynashard_checks.schedules.sessions import Session
from dynashard_checks.schedules.traffic import LEASE, Pace, TimedTopology, Traffic
from dynashard_checks.schedules.transport import ActorTransport
from dynashard_checks.schedules.wire import TABLE, TOPOLOGY

_CURSORS: Final = CursorCodec(["a secret of the schedules"])
_RETRY_SECONDS: Final = 15.0
_CHOOSING: Final = ("index", "filters", "prefix", "start", "end", "consistent")
"""The arguments of a listing that choose items."""


class Client:
    """A client that does one operation after the other.

    Args:
        traffic: the state that all clients share.
        actor: takes its turns.
        process: its clock; None for one that is right.
    """

    def __init__(self, traffic: Traffic, actor: Actor, process: Process | None = None) -> None:
        self._traffic = traffic
        self._actor = actor
        self._random = actor.random
        self._scheduler = traffic.database.scheduler
        self._history = traffic.database.history
        self.process = process or Process(self._scheduler)
        self.transport = ActorTransport(traffic.database, actor, self.process)
        clock = self.process.clock
        topology = LeasedTopology(
            self.transport, TOPOLOGY, lease=LEASE, runtime=Runtime(clock, monotonic=self._scheduler.clock)
        )
        store = Store(
            transport=self.transport,
            table=TABLE,
            router=self._router(TimedTopology(topology, actor, self._scheduler)),
            runtime=Runtime(clock, random=self._random.random),
            new_revisions=self._revisions_of,
            retry_policy=RetryPolicy(
                seconds=_RETRY_SECONDS,
                runtime=Runtime(monotonic=self._scheduler.clock, sleep=self._sleep, random=self._random.random),
            ),
            batch_concurrency=1,
            exactly_once=TransactedWrites,
        )
        self._store = store
        self.collection: Collection[Any] = Collection(store, _CURSORS, traffic.model)
        self._revisions = count(1)
        self._known: dict[Key, Any] = {}

    def _router(self, topology: Topology) -> Router:
        return Router(topology, self.process.key_clock)

    def write(self) -> None:
        """Write a few items at once, before the resize continues."""
        for _ in range(self._random.choice((1, 1, 2, 3))):
            self.operate(self._random.choice(("create", "create", "put")))

    def run(self, bursts: int, pace: Pace) -> None:
        """Do a few operations at a time, with rests in between.

        Args:
            bursts: how often it does a few operations, at most.
            pace: decides when it acts.
        """
        for _ in range(bursts):
            expected = self._random.random() < 0.7
            for early in pace.turns(self._actor, self._random.choice((1, 2, 3, 4, 6))):
                self._scheduler.pause(self._actor)
                writers, readers = self._traffic.kinds
                self.operate(self._random.choice(readers if early is expected else writers))
            if not pace.rest(self._actor):
                return

    def operate(self, kind: str) -> None:
        """Do one operation, and compare its answer with the history."""
        self._traffic.operations += 1
        getattr(self, f"_do_{kind}")()

    def finish(self) -> None:
        """Read all keys, and end all listings, after all other actors have ended."""
        for key in self._history.all_keys():
            with self._operation("get", key) as operation:
                operation.saw(key, self.collection.find(self._fields(key), consistent=True))
        for index in (None, self._random.choice(self._traffic.indexes)):
            order = self._random.choice(("round_robin", "ordered", "shard"))
            self._finish_session(self._new_session({"index": index, "order": order, "limit": 100}))
        for session in list(self._traffic.sessions):
            self._finish_session(session)
        self._do_count()

    def _finish_session(self, session: Session) -> None:
        for _ in range(100):
            if session not in self._traffic.sessions:
                return
            self._page(session)
        raise AnomalyError(f"the listing {dict(session.asked)} does not end")

    # Single items.

    def _do_create(self) -> None:
        key = self._fresh_key() if self._traffic.random_placement else self._key()
        if key is None:
            return
        item = self._item(key)
        with self._operation("create", key, value=item.value) as operation:
            operation.wrote(self._saw(key, self.collection.create(item)))

    def _do_put(self) -> None:
        key, known = self._known_key()
        item = self._item(key)
        if known is not None and self._random.random() < 0.3:
            item = known.model_copy(update={"value": item.value, "kept": item.kept})
            if item.expires_at is not None:
                self._history.expiring_keys.add(key)
        if_match, expected = _condition(known, often=0.4, random=self._random)
        if self._traffic.random_placement and if_match is None:
            # Two puts of a new item with one key can reach different random shards. This placement is for new keys.
            return
        with self._operation(
            "put", key, value=item.value, if_match=if_match, expected=expected, total=item.hits
        ) as operation:
            operation.wrote(self._saw(key, self.collection.put(item, if_match=if_match).item))

    def _do_update(self) -> None:
        key, known = self._known_key()
        value = next(self._traffic.values)
        fields: dict[str, Any] = {"value": value, "kept": self._random.random() < 0.7}
        if self._random.random() < 0.2:
            fields |= {"group": GROUP, "rank": self._rank()}
        adds = self._random.choice((0, 0, 1))
        if_match, expected = _condition(known, often=0.3, random=self._random)
        with self._operation("update", key, value=value, adds=adds, if_match=if_match, expected=expected) as operation:
            add = {"hits": adds} if adds else None
            operation.wrote(
                self._saw(key, self.collection.update(self._fields(key), set=fields, add=add, if_match=if_match))
            )

    def _do_delete(self) -> None:
        key, known = self._known_key()
        if_match, expected = _condition(known, often=0.3, random=self._random)
        with self._operation(
            "delete", key, deletes=frozenset([key]), if_match=if_match, expected=expected, gone=self._guarded(if_match)
        ) as operation:
            self.collection.delete(self._fields(key), if_match=if_match)
            operation.deleted(key)

    def _guarded(self, if_match: str | None) -> bool:
        return if_match is None and definition(self._traffic.model).guarantee is WriteGuarantee.GUARDED

    def _do_get(self) -> None:
        key = self._key()
        with self._operation("get", key) as operation:
            consistent = self._random.random() < 0.5
            item = self.collection.find(self._fields(key), consistent=consistent)
            operation.saw(key, item if item is None else self._saw(key, item))

    def _do_exists(self) -> None:
        key = self._key()
        with self._operation("get", key) as operation:
            operation.saw_existence(key, live=self.collection.exists(self._fields(key)))

    # Batches.

    def _do_batch_get(self) -> None:
        keys = self._traffic.keys
        with self._operation("batch_get", *keys) as operation:
            items = self.collection.batch_get([self._fields(key) for key in keys], consistent=True)
            for key, item in zip(keys, items, strict=True):
                operation.saw(key, item if item is None else self._saw(key, item))

    def _do_batch_write(self) -> None:
        chosen = self._random.sample(self._traffic.keys, self._random.randint(1, len(self._traffic.keys)))
        deleted = frozenset(chosen[: self._random.randrange(len(chosen) + 1)])
        if self._traffic.random_placement:
            chosen = [*deleted]
            fresh = self._fresh_key()
            chosen += [] if fresh is None or fresh in deleted else [fresh]
        if not chosen:
            return
        put = [self._item(key) for key in chosen if key not in deleted]
        puts = {item.id: item.value for item in put}
        with self._operation("batch_write", *chosen, deletes=deleted, puts=puts) as operation:
            self.collection.batch_write(put=put, delete=[self._fields(key) for key in sorted(deleted)])
            operation.wrote_all()

    # Listings.

    def _do_page(self) -> None:
        begun = self._traffic.sessions
        if begun and self._random.random() < 0.7:
            session = self._random.choice(begun)
        else:
            session = self._new_session(self._question())
        self._page(session)

    def _do_scan(self) -> None:
        asked = {**self._question(), "order": "none"}
        session = self._new_session(asked, shared=False)
        chosen = {name: asked[name] for name in _CHOOSING if name in asked}
        with self._operation("scan") as operation, self._ending(session):
            session.receive(list(self.collection.scan(self._partition(session), workers=1, **chosen)), operation)
            session.finish()
            self._traffic.listings += 1

    def _do_count(self) -> None:
        asked = self._question()
        session = self._new_session(asked, shared=False)
        chosen = {name: asked[name] for name in _CHOOSING if name in asked}
        with self._operation("count"), self._ending(session):
            session.count(self.collection.count(self._partition(session), **chosen))

    def _page(self, session: Session) -> None:
        self._traffic.sessions.remove(session)
        asked = {"limit": self._random.randint(1, 3), **session.asked}
        with self._operation("page") as operation:
            try:
                page = self.collection.list(self._partition(session), cursor=session.cursor, **asked)
            except DynashardError:
                self._traffic.sessions.append(session)
                raise
            except Killed:
                self._history.unwatch(session.watch)
                raise
            session.pages += 1
            session.cursor = page.cursor
            session.receive(page.items, operation)
            if page.cursor is not None:
                self._traffic.sessions.append(session)
                return
            session.finish()
            self._traffic.listings += 1
            self._history.unwatch(session.watch)

    def _new_session(self, asked: dict[str, Any], *, shared: bool = True) -> Session:
        session = Session(asked, self._history, self._history.watch())
        if shared:
            self._traffic.sessions.append(session)
        return session

    @contextmanager
    def _ending(self, session: Session) -> Iterator[None]:
        try:
            yield
        finally:
            self._history.unwatch(session.watch)

    def _question(self) -> dict[str, Any]:
        random = self._random
        asked: dict[str, Any] = {
            "order": random.choice(("round_robin", "ordered", "ordered", "shard")),
            "direction": random.choice(("asc", "desc")),
        }
        index = random.choice(self._traffic.indexes)
        if index is not None:
            asked["index"] = index
        elif random.random() < 0.3:
            asked["consistent"] = True
        if random.random() < 0.25:
            asked["filters"] = [Filter("kept", "=", value=True)]
        if random.random() < 0.15:
            asked["prefix"] = "r" if index else "k"
        return asked

    # Shared by all operations.

    @contextmanager
    def _operation(self, kind: str, *keys: Key, **more: Any) -> Iterator[Operation]:
        scheduler, traffic = self._scheduler, self._traffic
        watch: Watch = self._history.watch(*keys)
        operation = Operation(kind, keys, self._history, watch, **more)
        operation.begin()
        self._actor.topology_read_at = scheduler.now
        self.transport.check = operation.check
        if scheduler.trace is not None:
            options = {name: value for name, value in more.items() if value}
            scheduler.note(self._actor, f"=== {kind} {' '.join(keys)} {options or ''}")
        try:
            yield operation
            traffic.done += 1
        except DynashardError as error:
            scheduler.note(self._actor, f"=== {kind}: {type(error).__name__}: {error}")
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

    def _saw(self, key: Key, item: Any) -> Any:
        self._known[key] = item
        return item

    def _key(self) -> Key:
        return self._random.choice(self._traffic.keys)

    def _known_key(self) -> tuple[Key, Any]:
        key = self._key()
        known = self._known.get(key)
        return key, known if known is not None and known.revision else None

    def _fresh_key(self) -> Key | None:
        left = [key for key in self._traffic.keys if key not in self._traffic.created]
        if not left:
            return None
        key = self._random.choice(left)
        self._traffic.created.add(key)
        return key

    def _item(self, key: Key) -> Any:
        random = self._random
        ranked = random.random() < 0.8
        lifetime = random.choice((90.0, 200.0) if self._traffic.all_expire else (None, None, None, 20.0, 100.0))
        if not self._traffic.some_expire:
            lifetime = None
        expires = None if lifetime is None else datetime.fromtimestamp(int(self._scheduler.now + lifetime), UTC)
        if expires is not None:
            self._history.expiring_keys.add(key)
        return self._traffic.model(
            tenant=TENANT,
            id=key,
            value=next(self._traffic.values),
            kept=random.random() < 0.7,
            group=GROUP if ranked else None,
            rank=self._rank() if ranked else None,
            expires_at=expires,
        )

    def _rank(self) -> str:
        return f"r{self._random.randrange(2)}"

    def _fields(self, key: Key) -> dict[str, Any]:
        return {"tenant": TENANT, "id": key}

    def _partition(self, session: Session) -> dict[str, Any]:
        return {"tenant": TENANT, "group": GROUP} if session.asked.get("index") else {"tenant": TENANT}

    def _revisions_of(self, writes: int) -> list[str]:
        return [f"{self._actor.name}.{next(self._revisions)}" for _ in range(writes)]

    def _sleep(self, seconds: float) -> None:
        self._scheduler.sleep(self._actor, seconds)


def _condition(known: Any | None, *, often: float, random: Random) -> tuple[str | None, int | None]:
    """Draw the revision that a write names, and the number of its item; mostly None for both."""
    if known is None or random.random() >= often:
        return None, None
    return known.revision, known.value
