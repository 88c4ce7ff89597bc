"""Declare an entity `epochs` over items of calculated placement, while processes of both declarations work on it.

    python -m dynashard_checks.redeclared                # 100,000 items; 2 minutes

Each worker is a process with a declaration of its own. All begin with calculated placement, and change to epochs one
after the other. Then the count grows twice by epochs while they go on. No item that was stored before may move. Every
acknowledged item must be found by its key, and be once in each listing that begins after it.
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from random import Random
from threading import Event
from typing import Any, Final

from dynashard import Collection, Dynashard, Entity, Key, Registry, Shards, definition, new_id
from dynashard.key_clock import ClockBounds
from dynashard.resharding import Resharder, Scope, Timing
from dynashard.schema import PK, SK
from dynashard.transport import Transport, connect
from dynashard.transport.interface import Call
from dynashard.transport.paging import pages
from dynashard_checks.schedules.epochs.keys import ksuid
from dynashard_checks.schedules.wire import TABLE, TOPOLOGY, LeanWire, create_tables, port_of_engine_in_memory
from dynashard_checks.soak.ledger import Ledger

_TENANT: Final = "t"
_BEFORE: Final = 4
_LEASE: Final = 1.0
_CLOCKS: Final = ClockBounds(off=1.5, ahead=1.0)
_TIMING: Final = Timing(lease=_LEASE, operation=10.0, skew=0.0, lag=0.0, clocks=_CLOCKS, margin=2.0)
_LOADED: Final = 2500
_DAY: Final = 86_400
_BITS: Final = 128
_PAGE: Final = 1000
_PAUSE: Final = 0.01


def _declared(placement: str) -> type[Any]:
    class Message(
        Entity,
        name="m.v1.Message",
        key=Key("{tenant}", "{id}"),
        shards=Shards(start=_BEFORE, max=64, placement=placement),
        registry=Registry(),
    ):
        tenant: str
        id: str = new_id()
        n: int = 0

    return Message


CALCULATED: Final = _declared("calculated")
EPOCHS: Final = _declared("epochs")


@dataclass
class Verdict:
    """The result of a run: what was stored before, what was done meanwhile, and what was wrong.

    Attributes:
        items: how many items were stored before, with calculated placement.
        created, deleted, read: how many single items the workers created, deleted and read.
        listings: how many complete listings were compared.
        counts: the counts at the end, of the epochs of the partition.
        moved: items that were stored before and stand elsewhere afterwards.
        lost: acknowledged items that are not stored, or are not found by their keys.
        invisible: what was wrong with listings.
        doubled: items that are stored more than once.
    """

    items: int
    created: int = 0
    deleted: int = 0
    read: int = 0
    listings: int = 0
    counts: list[int] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    invisible: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values, with numbers in place of lists."""
        wrong = ("moved", "lost", "invisible", "doubled")
        return {name: len(value) if name in wrong else value for name, value in asdict(self).items()}

    @property
    def fine(self) -> bool:
        """Whether nothing was wrong."""
        return not (self.moved or self.lost or self.invisible or self.doubled)


@dataclass
class Run:
    """A run on an empty table."""

    transport: Transport
    items: int
    counts: Sequence[int]
    seed: int
    pause: float
    ledger: Ledger = field(default_factory=Ledger)
    stop: Event = field(default_factory=Event)
    newer: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.verdict = Verdict(self.items)

    def judged(self, workers: int) -> Verdict:
        """Load the items, let processes change their declarations and the count grow, and compare what is stored."""
        self._load()
        before = self._stored()
        self.newer = [Event() for _ in range(workers + 1)]
        with ThreadPoolExecutor(workers + 1) as pool:
            running = [pool.submit(self._work, number) for number in range(workers)]
            running.append(pool.submit(self._list, workers))
            try:
                self._change()
            finally:
                self.stop.set()
            for each in running:
                each.result()
        self._compare(before)
        return self.verdict

    def _load(self) -> None:
        random, now, messages = Random(self.seed), time.time(), self._process(CALCULATED)
        for first in range(0, self.items, _LOADED):
            made = [
                CALCULATED(tenant=_TENANT, id=ksuid(now - random.randrange(1, _DAY), random.getrandbits(_BITS)), n=n)
                for n in range(first, min(first + _LOADED, self.items))
            ]
            messages.batch_write(put=made)
            for message in made:
                self.ledger.born(message.id)

    def _change(self) -> None:
        """Roll the declaration out, process by process, and then let the count grow."""
        self._let_work(3.0)
        for process in self.newer:
            process.set()
            self._let_work(0.5)
        resharder = Resharder(self.transport, table=TABLE, topology_table=TOPOLOGY, entities=[EPOCHS], timing=_TIMING)
        entity = definition(EPOCHS)
        scope = Scope(entity, entity.logical_partition({"tenant": _TENANT}))
        for count in self.counts:
            resharder.start(scope, count)
            while (step := resharder.advance(scope.key)).kind != "done":
                self._let_work(min(step.seconds, 1.0))
            self._let_work(3.0)
        self.verdict.counts = [each.count for each in resharder.status(scope).epochs]

    def _let_work(self, seconds: float) -> None:
        self.stop.wait(seconds)

    def _process(self, model: type[Any]) -> Collection[Any]:
        """Return the items as a process sees them that has just started."""
        db = Dynashard(
            self.transport,
            table=TABLE,
            topology_table=TOPOLOGY,
            cursor_keys=["a secret of this check"],
            lease=_LEASE,
            clocks=_CLOCKS,
            growth="off",
        )
        return db.collection(model)

    def _work(self, number: int) -> None:
        """Create, read and delete items, as a process that is replaced by one with the newer declaration."""
        random, verdict, messages = Random(self.seed * 100 + number), self.verdict, self._process(CALCULATED)
        mine = sorted(self.ledger.lives)[number :: len(self.newer) - 1]
        old = True
        while not self.stop.wait(self.pause):
            if old and self.newer[number].is_set():
                old, messages = False, self._process(EPOCHS)
            act = random.random()
            if act < 0.4:  # noqa: PLR2004 - shares
                made = messages.create(tenant=_TENANT, id=ksuid(time.time(), random.getrandbits(_BITS)), n=-1)
                self.ledger.born(made.id)
                mine.append(made.id)
                verdict.created += 1
            elif act < 0.9:  # noqa: PLR2004
                name = random.choice(mine[-50:] if random.random() < 0.5 else mine)  # noqa: PLR2004
                verdict.read += 1
                if messages.find(tenant=_TENANT, id=name, consistent=True) is None:
                    verdict.lost.append(name)
            else:
                name = mine.pop(random.randrange(len(mine)))
                self.ledger.leaving(name)
                messages.delete(tenant=_TENANT, id=name)
                self.ledger.gone(name)
                verdict.deleted += 1

    def _list(self, number: int) -> None:
        """List everything again and again; each page is that of a process with the declaration of the time."""
        random = Random(self.seed)
        old, new = self._process(CALCULATED), self._process(EPOCHS)
        while not self.stop.wait(self.pause):
            started, seen, cursor = time.monotonic(), Counter[str](), None
            order = random.choice(("ordered", "round_robin", "shard"))
            while True:
                messages = new if self.newer[number].is_set() else old
                page = messages.list(tenant=_TENANT, order=order, limit=_PAGE, cursor=cursor, consistent=True)
                seen.update(item.id for item in page.items)
                cursor = page.cursor
                if cursor is None or self.stop.is_set():
                    break
            if cursor is None:
                wrong = self.ledger.compare(seen, started, time.monotonic())
                self.verdict.invisible += [f"{order}: {each}" for each in wrong]
                self.verdict.listings += 1

    def _stored(self) -> dict[str, str]:
        """Return the stored partition keys of all items, by their sort keys."""
        stored: dict[str, str] = {}
        for answer in pages(self.transport, Call("Scan", {"TableName": TABLE, "ConsistentRead": True})):
            for item in answer["Items"]:
                if item[SK]["S"] in stored:
                    self.verdict.doubled.append(item[SK]["S"])
                stored[item[SK]["S"]] = item[PK]["S"]
        return stored

    def _compare(self, before: dict[str, str]) -> None:
        after, alive = self._stored(), self.ledger.alive()
        self.verdict.moved += [name for name, place in before.items() if after.get(name, place) != place]
        self.verdict.lost += sorted(alive - after.keys())
        found = self._process(EPOCHS).batch_get([{"tenant": _TENANT, "id": name} for name in sorted(alive)])
        self.verdict.lost += [name for name, item in zip(sorted(alive), found, strict=True) if item is None]
        seen = Counter(item.id for item in self._process(EPOCHS).scan(tenant=_TENANT))
        self.verdict.invisible += sorted(alive - seen.keys())


def run(
    items: int, *, counts: Sequence[int] = (16, 64), workers: int = 6, seed: int = 1, pause: float = _PAUSE
) -> Verdict:
    """Run on an engine of its own in memory; the count, 4 at first, grows to each of `counts` by an epoch.

    Each worker waits for `pause` seconds after each call, or each listing.
    """
    with ExitStack() as stack:
        port = stack.enter_context(port_of_engine_in_memory())
        wire = LeanWire(port)
        stack.callback(wire.close)
        create_tables(wire)
        transport = connect(f"http://127.0.0.1:{port}", "us-east-1", access_key="local", secret_key="local")  # noqa: S106
        stack.callback(transport.close)
        return Run(transport, items, counts, seed, pause).judged(workers)


def main() -> int:
    """Run, print the verdict, and return 0 if nothing was wrong."""
    parser = argparse.ArgumentParser(prog="python -m dynashard_checks.redeclared", description=__doc__)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    started = time.monotonic()
    verdict = run(asked.items, workers=asked.workers, seed=asked.seed)
    for each in (*verdict.moved, *verdict.lost, *verdict.invisible, *verdict.doubled)[:10]:
        print(each)
    print(json.dumps({**verdict.as_dict(), "seconds": round(time.monotonic() - started)}, indent=2))
    return 0 if verdict.fine else 1


if __name__ == "__main__":
    sys.exit(main())
