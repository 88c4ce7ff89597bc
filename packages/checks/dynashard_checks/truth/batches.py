"""Judge the outcomes of batches, transactions and edges while requests to DynamoDB are lost, late, refused and reset.

Each item is written by one write only, beside others in the same batch. Half of them are stored before, without faults.
When all late requests have been executed, what is stored shows for each write whether its outcome was true: `ok` means
that it was done, a refusal that it was not, and `outcome_unknown` allows both. The steps of a transaction and the two
items of an edge must also have been done together, and the counts of edges must be those of the edges that are stored.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Final

from domain.samples.follows import FOLLOWS
from dynashard import Collection, Dynashard, Entity, RetryPolicy
from dynashard.entity import definition
from dynashard.errors import DynashardError, OutcomeUnknownError
from dynashard.transactions import Delete, Put
from dynashard.transport import connect
from dynashard_checks.truth.api_clients import TABLES
from dynashard_checks.truth.batch_items import TENANT, Subject, subjects
from dynashard_checks.truth.proxy import Rates
from dynashard_checks.truth.world import create_api_tables, faulty_engine
from dynashard_patterns import EdgeStore
from dynashard_serving.commands.answers import Commands
from dynashard_serving.commands.handler import build_commands
from dynashard_serving.settings import ServingSettings

_KEYS: Final = ("a key of the bench",)
OK, REFUSED, UNKNOWN = _OUTCOMES = "ok", "refused", "unknown"
_UNKNOWN_CODE: Final = OutcomeUnknownError.code
_STEPS: Final = 5
_NODES: Final = 10
RATES: Final = Rates(0.12, 0.19)
"""31% of all requests, 12% of them lost or late."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What was reported to the caller about a write of an item.

    Attributes:
        way: how it was written.
        said: `OK`, `REFUSED` or `UNKNOWN`.
        before: the item that was stored before; None if there was none.
        after: the item that the write stores; None for a delete.
        together: the number of the group that is written as one, if it is.
    """

    way: str
    model: type[Entity]
    said: str
    before: Entity | None
    after: Entity | None
    together: str | None = None

    @property
    def key(self) -> Entity:
        """The item, for its key."""
        found = self.after or self.before
        assert found is not None  # noqa: S101 - a write has an item before it or after it
        return found

    def done_in(self, stored: Entity | None) -> bool | None:
        """Whether what is stored shows that the write was done; None if it shows something else altogether."""
        if _same(stored, self.after):
            return True
        return False if _same(stored, self.before) else None


@dataclass
class Verdict:
    """The result of a run: how many writes had which outcome, by way, and a line for each false outcome."""

    reported: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    false: list[str] = field(default_factory=list)
    faults: dict[str, Any] = field(default_factory=dict)
    edges: int = 0

    @property
    def items(self) -> int:
        """How many writes were judged."""
        return self.reported.total()

    def as_dict(self) -> dict[str, Any]:
        """Return the verdict as JSON values."""
        ways = sorted({name.rpartition(" ")[0] for name in self.reported})
        return {
            "items": self.items,
            "false": len(self.false),
            "reported": {
                way: {said: self.reported[f"{way} {said}"] for said in (OK, REFUSED, UNKNOWN)} for way in ways
            },
            "unknown_that_were_done": self.done[UNKNOWN],
            "edges": self.edges,
            "engine": self.faults,
        }


def _same(stored: Entity | None, wanted: Entity | None) -> bool:
    if stored is None or wanted is None:
        return stored is wanted
    names = wanted.model_fields_set
    return all(getattr(stored, name) == getattr(wanted, name) for name in names)


@dataclass
class Writing:
    """Writes batches in several ways, and records their outcomes.

    Args:
        db: the entities, on the failing engine.
        clean: the entities, on the same engine without faults.
        commands: direct invocation, on the failing engine.
        size: the number of items of a batch.
        known: the entities by their paths.
    """

    db: Dynashard
    clean: Dynashard
    commands: Commands
    size: int
    known: Mapping[str, Subject]

    def batch(self, number: int, random: Random) -> list[Claim]:
        """Write one batch of an entity: over direct invocation, also with several operations in one, or in Python."""
        paths = sorted(self.known)
        path = paths[number % len(paths)]
        subject = self.known[path]
        writes = list(self._writes(subject, number, random))
        turn = number // len(paths) % 3
        if subject.mixed and turn == 1:
            said, way = self._mixed(path, writes, random), f"{path} mixed"
        elif subject.invoked and turn == 0:
            said, way = self._invoked(path, writes), f"{path} invoked"
        else:
            said, way = self._in_python(subject.model, writes), f"{path} in Python"
        return [Claim(way, subject.model, reported, *write) for reported, write in zip(said, writes, strict=True)]

    def _writes(self, subject: Subject, number: int, random: Random) -> Iterator[tuple[Entity | None, Entity | None]]:
        """Yield the item before and after each write, puts first; what is before is stored."""
        made = [
            tuple(self._item(subject, f"k{number}-{n}", f"w{number}-{n}-{version}") for version in (0, 1))
            for n in range(self.size)
        ]
        writes = [random.choice([(None, new), (old, new), (old, None)]) for old, new in made]
        writes.sort(key=lambda write: write[1] is None)
        collection: Collection[Any] = self.clean.collection(subject.model)
        collection.batch_write(put=[old for old, _ in writes if old is not None])
        yield from writes

    @staticmethod
    def _item(subject: Subject, name: str, version: str) -> Entity:
        text = json.dumps({"tenant_id": TENANT, **subject.document(name, version)})
        return subject.model.model_validate_json(text)

    def _in_python(self, model: type[Entity], writes: Sequence[tuple[Any, Any]]) -> list[str]:
        puts = [new for _, new in writes if new is not None]
        outcomes = self.db.collection(model).try_batch_write(
            put=puts, delete=[_key(model, old) for old, new in writes if new is None]
        )
        return [_said(None if outcome is None else outcome.code) for outcome in outcomes]

    def _invoked(self, path: str, writes: Sequence[tuple[Any, Any]]) -> list[str]:
        puts = [json.loads(new.model_dump_json(exclude_unset=True)) for _, new in writes if new is not None]
        model = self.known[path].model
        deletes = [json.loads(old.model_dump_json(include={*_key(model, old)})) for old, new in writes if new is None]
        event = {"operation": "batch_write", "entity": path, "tenant_id": TENANT, "put": puts, "delete": deletes}
        answer = self.commands.answer(event)
        if not answer["ok"]:
            return [_said(answer["error"]["code"])] * len(writes)
        outcomes = [*answer["result"]["put"], *answer["result"]["delete"]]
        return [_said(None if each["ok"] else each["error"]["code"]) for each in outcomes]

    def _mixed(self, path: str, writes: Sequence[tuple[Any, Any]], random: Random) -> list[str]:
        requests = [_request(self.known[path].model, *write, random) for write in writes]
        event = {"operation": "batch", "entity": path, "tenant_id": TENANT, "requests": requests}
        answer = self.commands.answer(event)
        if not answer["ok"]:
            return [_said(answer["error"]["code"])] * len(writes)
        return [_said(None if each["ok"] else each["error"]["code"]) for each in answer["result"]]

    def transaction(self, number: int, random: Random) -> list[Claim]:
        """Put and delete some items of different entities together."""
        # Transactions take no items of random placement, and put none with attachments.
        paths = sorted(self.known.keys() - {"accesses", "incidents"})
        chosen = [self.known[random.choice(paths)] for _ in range(_STEPS)]
        writes: list[tuple[type[Entity], Entity, Entity | None]] = []
        for n, subject in enumerate(chosen):
            old, new = (self._item(subject, f"t{number}-{n}", f"w{number}-{n}-{version}") for version in (0, 1))
            writes.append((subject.model, old, random.choice([new, None])))
        for model, old, _ in writes:
            self.clean.collection(model).batch_write(put=[old])
        steps = [Put(new) if new is not None else Delete(model, _key(model, old)) for model, old, new in writes]
        said = _reported(partial(self.db.transact, *steps))
        return [Claim("transaction", model, said, old, new, f"transaction {number}") for model, old, new in writes]


def _stored(db: Dynashard, model: type[Entity], keys: Sequence[Mapping[str, Any]]) -> list[Entity | None]:
    collection, attachments = db.collection(model), tuple(definition(model).attachments)
    if not attachments:
        return list(collection.batch_get(keys, consistent=True))
    return [collection.find(key, consistent=True, include=attachments) for key in keys]


def _key(model: type[Entity], item: Entity) -> dict[str, Any]:
    return {name: getattr(item, name) for name in definition(model).key_fields}


def _request(model: type[Entity], old: Entity | None, new: Entity | None, random: Random) -> Mapping[str, Any]:
    """Return a request of a mixed batch for a write of an item."""

    def document(item: Entity | None) -> dict[str, Any]:
        return {} if item is None else json.loads(item.model_dump_json(exclude_unset=True, exclude={"tenant_id"}))

    before, after, item = document(old), document(new), new or old
    assert item is not None  # noqa: S101 - a write has an item before it or after it
    key = json.loads(item.model_dump_json(include={*_key(model, item)}, exclude={"tenant_id"}))
    if new is None:
        return {"operation": "delete", "key": key}
    if old is None:
        once = {"idempotency_key": f"{key}"} if random.random() < 0.5 else {}  # noqa: PLR2004 - half
        return {"operation": "create", "item": after, **once}
    patch = {name: value for name, value in after.items() if before.get(name) != value}
    update = {"operation": "update", "key": key, "patch": patch}
    return random.choice([update, {"operation": "put", "item": after}])


def _reported(write: Callable[[], object]) -> str:
    try:
        write()
    except DynashardError as error:
        return _said(error.code)
    return OK


def _said(code: str | None) -> str:
    return OK if code is None else UNKNOWN if code == _UNKNOWN_CODE else REFUSED


@dataclass
class Following:
    """Adds and removes edges between few nodes, and judges them and their counts."""

    edges: EdgeStore[Any]
    clean: EdgeStore[Any]
    reported: list[tuple[str, str, str, str, bool]] = field(default_factory=list)

    def once(self, number: int, random: Random) -> None:
        """Add an edge of its own, or remove one that was there."""
        one, other = f"User.{number}", f"Actor.{number % _NODES}"
        removes = random.random() < 0.5  # noqa: PLR2004 - half
        if removes:
            self.clean.add(TENANT, one, other)
        work = partial(self.edges.remove if removes else self.edges.add, TENANT, one, other)
        self.reported.append((one, other, _reported(work), f"edge {number}", removes))

    def judge(self, verdict: Verdict) -> None:
        """Compare the outcomes with the edges that are stored, and the counts with both."""
        found: Counter[str] = Counter()
        for one, other, said, name, removes in self.reported:
            there = self.clean.find(TENANT, one, other) is not None
            found[other] += there
            verdict.reported[f"edge {said}"] += 1
            if said != UNKNOWN and (there is removes) is (said == OK):
                verdict.false.append(f"{name}: {said}, and it is {'there' if there else 'not there'}")
        for other, edges in found.items():
            counted = self.clean.count(TENANT, other, "backward")
            if counted != edges:
                verdict.false.append(f"{other} has {edges} edges, and {counted} are counted")
        verdict.edges = found.total()


def judge(db: Dynashard, claims: Sequence[Claim], verdict: Verdict) -> None:
    """Compare the outcomes with what is stored."""
    groups: dict[str, set[bool | None]] = {}
    for model in {claim.model for claim in claims}:
        mine = [claim for claim in claims if claim.model is model]
        stored = _stored(db, model, [_key(model, claim.key) for claim in mine])
        for claim, item in zip(mine, stored, strict=True):
            done = claim.done_in(item)
            verdict.reported[f"{claim.way} {claim.said}"] += 1
            verdict.done[claim.said] += done is True
            if done is None or (claim.said != UNKNOWN and done is not (claim.said == OK)):
                verdict.false.append(f"{claim.way}: {claim.said}, and stored is {item!r} of {claim.after!r}")
            if claim.together:
                groups.setdefault(claim.together, set()).add(done)
    verdict.false += [f"{name} was done in part" for name, done in groups.items() if len(done) > 1]


def run_batches(
    items: int,
    *,
    size: int = 20,
    threads: int = 8,
    rates: Rates = RATES,
    seed: int = 1,
    attempts: int = 2,
    known: Mapping[str, Subject] | None = None,
) -> Verdict:
    """Write this many items in batches, and a tenth of it more in transactions and as edges; judge all outcomes.

    Args:
        items: how many, of all entities in turn.
        size: the items of a batch.
        threads: how many callers there are.
        rates: the rates of faults.
        seed: determines the writes, and the faults of requests.
        attempts: how often each request is sent at most.
        known: the entities; those of the domain if None.
    """
    with faulty_engine(seed) as engine:
        create_api_tables(engine.wire)
        port = engine.wire.port
        failing = connect(engine.endpoint, "us-east-1", access_key="local", secret_key="local", attempts=attempts)  # noqa: S106
        whole = connect(f"http://127.0.0.1:{port}", "us-east-1", access_key="local", secret_key="local")  # noqa: S106
        table, topology, idempotency = TABLES
        settings = ServingSettings(
            table=table,
            topology_table=topology,
            idempotency_table=idempotency,
            environment="local",
            cursor_keys=_KEYS,
            growth_mode="off",
        )
        retries = RetryPolicy(seconds=0.5)
        open_on = partial(Dynashard, table=table, topology_table=topology, cursor_keys=_KEYS, retry_policy=retries)
        db, clean = open_on(failing), open_on(whole)
        writing = Writing(db, clean, build_commands(settings, failing, retry_policy=retries), size, known or subjects())
        following = Following(EdgeStore.on(db, FOLLOWS), EdgeStore.on(clean, FOLLOWS))
        verdict = Verdict()
        batches, more = -(-items // size), items // 10
        transactions = -(-more // _STEPS) if known is None else 0
        engine.fail(rates)
        with ThreadPoolExecutor(threads) as pool:
            work = [pool.submit(writing.batch, n, Random(seed * 10_000 + n)) for n in range(batches)]
            work += [pool.submit(writing.transaction, n, Random(seed * 20_000 + n)) for n in range(transactions)]
            others = [pool.submit(following.once, n, Random(seed * 30_000 + n)) for n in range(more)]
            claims = [claim for each in work for claim in each.result()]
            for each in others:
                each.result()
        engine.fail(Rates())
        time.sleep(rates.late)
        judge(clean, claims, verdict)
        following.judge(verdict)
        verdict.faults = engine.log()[0]
        failing.close()
        whole.close()
        return verdict
