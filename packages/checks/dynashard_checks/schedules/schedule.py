"""Run a schedule to its end, and check all answers and the stored items.

A schedule has a layout, a resize, clients, faults and kills. Its plan is drawn from a seed, and the
same seed always gives the same schedule.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Any, Final

from dynashard import definition
from dynashard.codec import encode_value
from dynashard.entity import EntityDefinition, IndexDefinition
from dynashard.entity.uniqueness import RESERVATION
from dynashard.placement import UNSHARDED
from dynashard.routing import Router, home, shard_keys
from dynashard.schema import PK, REV, SK, TYPE, index_pk, index_sk
from dynashard.topology import Phase, TopologyTable, View, family_of, index_key
from dynashard.topology.records import Record, encode, first_record
from dynashard.transport.interface import Wire
from dynashard_checks.linearizability.checker import check
from dynashard_checks.linearizability.listings import Listing, misses_and_doubles
from dynashard_checks.schedules.clients import Client
from dynashard_checks.schedules.database import Database, Faults
from dynashard_checks.schedules.entities import GROUP, TENANT
from dynashard_checks.schedules.history import History, Key
from dynashard_checks.schedules.late import LateDatabase, LateFaults
from dynashard_checks.schedules.plan import CALM, INDEX_COUNT, Plan, planned
from dynashard_checks.schedules.requests import KEYS
from dynashard_checks.schedules.resizes import Kills, Resize
from dynashard_checks.schedules.scheduler import Actor, AnomalyError, Scheduler
from dynashard_checks.schedules.traffic import LEASE, OPERATION, SKEW, Traffic, kinds_of
from dynashard_checks.schedules.wire import TABLE, TOPOLOGY, LeanWire, wiped

_BATCH: Final = 25


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a schedule."""

    seed: int
    kind: str
    calls: int
    steps: int
    operations: int
    listings: int
    gave_up: int
    kills: int
    refused: tuple[str, ...]


class Schedule:
    """A planned schedule on an engine.

    Args:
        wire: the connection to an engine with empty tables.
        plan: the plan.
        trace: gets a line for each request and event; None for no trace.
    """

    def __init__(self, wire: LeanWire, plan: Plan, trace: list[str] | None = None) -> None:
        self._wire = wire
        self._plan = plan
        self._random = Random(plan.seed ^ 0x5EED)
        self._scheduler = self._new_scheduler(Random(plan.seed ^ 0x7142))
        self._scheduler.trace = trace
        self._history = History(self._scheduler.clock, skew=SKEW, values_known=not plan.late)
        self._database = self._new_database(Random(plan.seed ^ 0xFA17))
        self._kills = Kills(Random(plan.seed ^ 0x4111), plan.kill_rate)
        entity = definition(plan.model)
        self._traffic = Traffic(
            self._database,
            plan.model,
            plan.keys,
            kinds_of(
                self._random.choice, race=plan.kind == "race", calm=plan.kind in CALM, strays=plan.kind == "strays"
            ),
            indexes=self._indexes(entity),
            random_placement=entity.shards is not None and not entity.shards.rule.fixed,
        )
        self._traffic.some_expire = plan.some_expire or self._traffic.random_placement
        self._traffic.all_expire = self._traffic.random_placement and plan.target < plan.origin
        self._ended = 0
        self._resize = Resize(
            self._database,
            plan.model,
            plan.scope,
            plan.target,
            self._kills,
            begun=plan.stages is not None,
            rewrite=plan.rewrite,
        )
        if plan.kind == "strays" and isinstance(self._database, LateDatabase):
            self._database.delay = self._resize.delay

    def run(self) -> Outcome:
        """Run the schedule to its end.

        Raises:
            AnomalyError: the code under test broke a promise.
        """
        calls = self._wire.calls
        try:
            self._prepare()
            self._start()
            self._scheduler.run()
            self._finish()
        finally:
            self._clean()
        return Outcome(
            self._plan.seed,
            self._plan.kind,
            calls=self._wire.calls - calls,
            steps=self._scheduler.steps,
            operations=self._traffic.operations,
            listings=self._traffic.listings,
            gave_up=self._traffic.gave_up,
            kills=self._kills.struck,
            refused=tuple(self._resize.refused),
        )

    def _new_scheduler(self, chance: Random) -> Scheduler:
        return Scheduler(chance, operation=OPERATION, ticked=self._tick)

    def _new_database(self, chance: Random) -> Database:
        plan = self._plan
        if plan.late:
            strays = plan.kind == "strays"
            late_faults = LateFaults(chance, 0.7 if strays else plan.fault_rate, left=16, strays=strays)
            return LateDatabase(self._wire, self._scheduler, self._history, late_faults)
        return Database(self._wire, self._scheduler, self._history, Faults(chance, plan.fault_rate))

    def _new_client(self, actor: Actor) -> Client:
        return Client(self._traffic, actor)

    def _tick(self) -> None:
        self._history.ticked()

    def _indexes(self, entity: EntityDefinition[Any]) -> Sequence[str | None]:
        if self._plan.scope.index is not None:
            return (self._plan.scope.index.name, self._plan.scope.index.name, None)
        return (None, None, None, *entity.indexes)

    # Setup.

    def _prepare(self) -> None:
        items = self._first_items()
        self._history.load(items)
        self._put(TABLE, items)
        now = self._scheduler.now - 1000
        entity = definition(self._plan.model)
        records = [first_record(family_of(entity), self._plan.origin, now=now, lease=LEASE)]
        for index in entity.indexes.values():
            if index.shards:
                count = self._plan.index_origin if index == self._plan.scope.index else INDEX_COUNT
                records.append(first_record(index_key(entity, index), count, now=now, lease=LEASE))
        self._put(TOPOLOGY, [encode(record) for record in records])
        if self._plan.stages is not None:
            self._run_to_stage(self._plan.stages)

    def _run_to_stage(self, stages: int) -> None:
        faults, kills = self._database.faults, self._kills
        kept = faults.rate, kills.rate
        faults.rate = kills.rate = 0.0
        self._scheduler.spawn("leader", lambda actor: self._resize.run_to_stage(actor, stages=stages))
        self._scheduler.run()
        faults.rate, kills.rate = kept

    def _put(self, table: str, items: Sequence[Wire]) -> None:
        for at in range(0, len(items), _BATCH):
            some = items[at : at + _BATCH]
            self._wire.call("BatchWriteItem", {"RequestItems": {table: [{"PutRequest": {"Item": i}} for i in some]}})
        for item in items:
            self._database.written.add((table, *(item[name]["S"] for name in KEYS[table])))

    def _first_items(self) -> list[Wire]:
        items = []
        for number, key in enumerate(self._plan.keys):
            if self._random.random() < self._plan.filled:
                items.append(self._first_item(key, number))
                self._traffic.created.add(key)
        return items

    def _first_item(self, key: Key, number: int) -> Wire:
        plan, random = self._plan, self._random
        entity = definition(plan.model)
        ranked = random.random() < 0.8
        lifetimes = (None, None, None, None, 50.0, 150.0, 300.0) if self._traffic.some_expire else (None,)
        expires = random.choice((50.0, 200.0) if self._traffic.all_expire else lifetimes)
        item = plan.model(
            tenant=TENANT,
            id=key,
            value=number,
            kept=random.random() < 0.7,
            group=GROUP if ranked else None,
            rank=f"r{random.randrange(2)}" if ranked else None,
            text="x" * (400 * 1024 - 500) if plan.large and not ranked else "",
            **({"created_at": datetime.fromtimestamp(1e9, UTC)} if entity.created_fields else {}),
        )
        item_key = entity.key_of(item)
        router = Router(Counts(plan))
        stored = home(entity, item_key, plan.origin)
        if self._traffic.random_placement:
            shards = shard_keys(entity.shards.rule, item_key.partition, entity.separator, plan.origin)  # type: ignore[union-attr]
            stored = random.choice(shards)
        wire: Wire = {PK: {"S": stored}, SK: {"S": key}}
        if plan.origin != UNSHARDED or plan.kind == "strays" or random.random() < 0.3:
            wire |= {TYPE: {"S": entity.name}, REV: {"S": f"first.{number}"}}
        for index in entity.indexes.values():
            wire |= router.index_attributes(entity, index, item_key, item.__dict__)
        wire |= entity.encode(item.__dict__)
        if expires is not None:
            wire["ExpiresAt"] = encode_value(int(self._scheduler.now + expires), path="ExpiresAt")
        return wire

    # Actors.

    def _start(self) -> None:
        plan, scheduler = self._plan, self._scheduler
        for number in range(plan.clients):
            scheduler.spawn(f"client{number}", self._client if number or plan.kind != "strays" else self._writer)
        if plan.kind in CALM:
            self._resize.over = True
            return
        scheduler.spawn("controller", self._resize.control)
        for number in range(plan.movers):
            scheduler.spawn(f"mover{number}", self._resize.move)
        if plan.operator:
            scheduler.spawn("operator", self._resize.interfere)

    def _writer(self, actor: Actor) -> None:
        client = self._new_client(actor)
        client.write()
        client.run(self._plan.bursts, self._resize)

    def _client(self, actor: Actor) -> None:
        self._new_client(actor).run(self._plan.bursts, self._resize)

    # Final checks.

    def _finish(self) -> None:
        """Check the stored items, and what a new client reads, after all actors have ended."""
        self._ended = self._history.recorder.now()
        self._database.faults.rate = 0.0
        self._kills.rate = 0.0
        self._check_stored()
        final = self._check_records()
        if not self._plan.late:
            self._check_places(final)
        self._scheduler.spawn("finisher", lambda actor: self._new_client(actor).finish())
        self._scheduler.run()
        self._check_answers()

    def _check_answers(self) -> None:
        """Check that the answers about each key agree with one order of the operations."""
        for key, operations in sorted(self._history.recorder.histories.items()):
            violation = None if key in self._history.expiring_keys else check(operations)
            if violation is not None:
                raise AnomalyError(f"{key} is {violation}")
        lasting = {
            k: done for k, done in self._history.recorder.histories.items() if k not in self._history.expiring_keys
        }
        wrong = [
            each
            for listing in self._history.listings
            for each in misses_and_doubles(lasting, listing)
            if not (self._may_miss(listing) and " lacks " in each)
        ]
        if wrong:
            raise AnomalyError("; ".join(wrong))

    def _may_miss(self, listing: Listing) -> bool:
        """Return whether a listing may miss an item that a late request has stored at an old place.

        A listing during a resize that narrows the layout does not read such places, but reads of single keys find these
        items. A listing that begins after the resize must return them.
        """
        plan = self._plan
        narrowed = plan.target < plan.origin or plan.origin == UNSHARDED
        return plan.late and narrowed and listing.invoked < self._ended

    def _check_stored(self) -> None:
        stored = {
            (item[PK]["S"], item[SK]["S"]): item
            for item in self._wire.call("Scan", {"TableName": TABLE})["Items"]
            if item[SK]["S"] != RESERVATION
        }
        if stored != self._history.items and not self._plan.large:
            raise AnomalyError(f"the model differs from the table: {self._history.items} is {stored}")

    def _check_records(self) -> int:
        """Check that the resize has ended, and return the count."""
        entity = definition(self._plan.model)
        table = TopologyTable(self._wire, TOPOLOGY)
        records = table.read([self._plan.scope.key, family_of(entity)])
        record = records.get(self._plan.scope.key) or records[family_of(entity)]
        if not _is_stable(record) or records[family_of(entity)].active:
            raise AnomalyError(f"the resize has not ended: {records}")
        if record.count != self._plan.target and not self._plan.operator and not self._resize.refused:
            raise AnomalyError(f"the resize has not reached {self._plan.target}: {record}")
        return record.count

    def _check_places(self, final: int) -> None:
        """Check that each live key is at its home, has the right index keys, and no relocation marker is left."""
        plan, history = self._plan, self._history
        if history.markers():
            raise AnomalyError(f"relocation markers are left: {history.markers()}")
        entity = definition(plan.model)
        counts = [Counts(plan)]
        if (index := plan.scope.index) is not None:
            # Without rewriting, older entries stay where they stand.
            record = self._database.record(plan.scope.key)
            former = record.former if record is not None else frozenset()
            counts = [Counts(plan, {index.slot: each}) for each in (final, *former)]
        count = plan.origin if plan.scope.index is not None else final
        for key in history.all_keys():
            for item in history.live(key):
                item_key = entity.key_of({"tenant": TENANT, "id": key})
                places = [home(entity, item_key, count)]
                if self._traffic.random_placement and entity.shards is not None:
                    places = shard_keys(entity.shards.rule, item_key.partition, entity.separator, count)
                if item[PK]["S"] not in places:
                    raise AnomalyError(f"{key} is at {item[PK]['S']}, not at {places}")
                self._check_index_keys(entity, item, counts)

    def _check_index_keys(self, entity: EntityDefinition[Any], item: Any, counts: "list[Counts]") -> None:
        key = entity.key_of({"tenant": TENANT, "id": item[SK]["S"]})
        values = {"tenant": TENANT, "id": item[SK]["S"]}
        values |= {name: item[name]["S"] for name in ("group", "rank") if name in item}
        for index in entity.indexes.values():
            wanted: list[Wire] = [{}]
            if {"group", "rank"} <= values.keys():
                wanted = [Router(each).index_attributes(entity, index, key, values) for each in counts]
            names = (index_pk(index.slot), index_sk(index.slot))
            found = {name: item[name] for name in names if name in item}
            if found not in wanted:
                raise AnomalyError(f"{item[SK]['S']} is in {index.name} as {found}, not as one of {wanted}")

    def _clean(self) -> None:
        """Empty the tables."""
        if self._scheduler.failure is not None:
            for table, names in KEYS.items():
                wiped(self._wire, table, names)
            return
        keys = sorted(self._database.written)
        for at in range(0, len(keys), _BATCH):
            requests: dict[str, list[Wire]] = {}
            for table, *rest in keys[at : at + _BATCH]:
                key = dict(zip(KEYS[table], ({"S": value} for value in rest), strict=True))
                requests.setdefault(table, []).append({"DeleteRequest": {"Key": key}})
            self._wire.call("BatchWriteItem", {"RequestItems": requests})


class Counts:
    """A topology with the counts at the start of a plan."""

    def __init__(self, plan: Plan, index_counts: Mapping[str, int] | None = None) -> None:
        self._plan = plan
        self._index_counts = index_counts or {}

    def view(self, entity: EntityDefinition[Any], partition: str) -> View:
        """See `Topology.view`."""
        del entity, partition
        return View(self._plan.origin)

    def index_view(self, entity: EntityDefinition[Any], index: IndexDefinition) -> View:
        """See `Topology.index_view`."""
        del entity
        if index.slot in self._index_counts:
            return View(self._index_counts[index.slot])
        if index == self._plan.scope.index:
            return View(self._plan.index_origin)
        return View(INDEX_COUNT if index.shards else UNSHARDED)

    def refresh(self, entity: EntityDefinition[Any], partition: str) -> None:
        """Do nothing: the counts are fixed."""


def run_seed(
    wire: LeanWire,
    seed: int,
    *,
    kind: str | None = None,
    stages: int | None = None,
    late: bool | None = None,
    trace: list[str] | None = None,
) -> Outcome:
    """Run the schedule of a seed.

    Args:
        wire: the connection to an engine with empty tables.
        seed: determines the whole schedule.
        kind: the kind of the schedule; drawn if None.
        stages: the stage of the resize at which the clients start; drawn if None.
        late: whether requests may be executed at any later time; drawn if None.
        trace: gets a line for each request and event.

    Raises:
        AnomalyError: the code under test broke a promise.
    """
    return Schedule(wire, planned(seed, kind, stages, late=late), trace).run()


def _is_stable(record: Record) -> bool:
    return record.phase is Phase.STABLE and record.target is None and record.swept
