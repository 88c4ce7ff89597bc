"""Schedules of an entity with a unique field: clients want few values, in all phases of a resize.

The simulated database reports to the model what is stored. At every moment no two live items have one value. At the end
each live item has its reservation, and no other is in force whose owner is live with another value or absent. Before
the schedule begins there are reservations that are left over, so clients take values over from the start.

In some schedules requests are late. Then an item may be stored at a former home, where no reader finds it, and another
one may take its value. So two items may not have one value once both were read or acknowledged. At the end this holds
of all items that are at their homes.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import Any, Final

from dynashard import EntityDefinition, definition
from dynashard.entity.uniqueness import RESERVATION, reserved_for
from dynashard.errors import KeyTooFarAheadError, NotUniqueError, TransactionRefusedError
from dynashard.repository.reservations import owner_of, reservation
from dynashard.routing import home
from dynashard.schema import EXPIRES_AT, PK, SK
from dynashard.transport.interface import Wire
from dynashard_checks.schedules.database import Database
from dynashard_checks.schedules.entities import TENANT, UniqueNote
from dynashard_checks.schedules.history import History, Key, Stored, identity
from dynashard_checks.schedules.late import LateDatabase
from dynashard_checks.schedules.operations import Operation
from dynashard_checks.schedules.plan import Plan, lateness, planned
from dynashard_checks.schedules.schedule import Outcome, Schedule
from dynashard_checks.schedules.scheduler import Actor, AnomalyError
from dynashard_checks.schedules.transactions import Part, Transacted, TransactingClient, TransactingSchedule
from dynashard_checks.schedules.wire import TABLE, LeanWire

UNIQUE: Final = "unique"
"""The kind of these schedules."""
_KINDS: Final = ("race", "race", "grow", "shrink", "calm")
_TAGS: Final = ("red", "green")
_PLANTED: Final = "Planted"
_WRITERS: Final = ("create", "create", "put", "update", "delete", "transact", "batch_write")
_REFUSALS: Final = (NotUniqueError, KeyTooFarAheadError)
_LAST_LOOK_UPS: Final = 4
_READERS: Final = ("look_up", "look_up", "get", "create", "put", "update", "delete", "transact")


class UniqueClient(TransactingClient):
    """A client whose items have one of few values, or none."""

    _wanted: list[str | None]
    """The values of the items that the running operation writes."""

    def operate(self, kind: str) -> None:
        """See `Client.operate`."""
        self._wanted = []
        super().operate(kind)

    def _item(self, key: Key) -> Any:
        item = super()._item(key).model_copy(update={"tag": self._random.choice((*_TAGS, *_TAGS, None))})
        self._wanted.append(item.tag)
        return item

    @contextmanager
    def _operation(self, kind: str, *keys: Key, **more: Any) -> Iterator[Operation]:
        with super()._operation(kind, *keys, **more) as operation, self._refused_truly(keys):
            yield operation

    @contextmanager
    def _transaction(self, parts: dict[Key, Part]) -> Iterator[Transacted]:
        with super()._transaction(parts) as operation, self._refused_truly(()):
            yield operation

    @contextmanager
    def _refused_truly(self, keys: Collection[Key]) -> Iterator[None]:
        """Check that a refused value belonged to another item at some moment: a reservation alone refuses nobody."""
        watch = self._history.watch()
        try:
            yield
        except (NotUniqueError, TransactionRefusedError) as error:
            # A put may also store the value of the item that was known.
            wanted = [*self._wanted, *(self._known[key].tag for key in keys if self._known.get(key) is not None)]
            tags = [tag for tag in wanted if tag is not None]
            of_others = (value for key, seen in watch.seen.items() if key not in keys for value in seen if value)
            known = (
                self._history.values_known and (keys or len(tags) == len(set(tags))) and _reason(error) == "not_unique"
            )
            if known and not any(_tag(self._history.contents[value]) in tags for value in of_others):
                raise AnomalyError(f"{tags} is refused, but no other item had it") from error
            raise
        finally:
            self._history.unwatch(watch)

    def _part(self, kind: str, key: Key) -> Part:
        # A delete that ignores a missing item only checks that it is missing, which the model does not see.
        return super()._part("delete" if kind == "drop" else kind, key)

    def _do_update(self) -> None:
        """Update the unique field, or another one."""
        key, known = self._known_key()
        value = next(self._traffic.values)
        fields: dict[str, Any] = {"value": value}
        if self._random.random() < 0.7:
            fields["tag"] = self._random.choice((*_TAGS, None))
            self._wanted.append(fields["tag"])
        if_match, expected = (known.revision, known.value) if known and self._random.random() < 0.3 else (None, None)
        with self._operation("update", key, value=value, if_match=if_match, expected=expected) as operation:
            operation.wrote(self._saw(key, self.collection.update(self._fields(key), set=fields, if_match=if_match)))

    def _do_look_up(self) -> None:
        """Look an item up by its value: what is answered has the value, and certainly lived during the look-up."""
        tag, before = self._random.choice(_TAGS), self._holding()
        keys = sorted({*self._traffic.keys, *self._history.all_keys()})
        with self._operation("batch_get", *keys) as operation:
            found = self.collection.find(tenant=TENANT, tag=tag)
            if found is None:
                self._none_had(tag, operation, before)
                return
            if found.tag != tag:
                raise AnomalyError(f"the look-up of {tag} answers {found!r}")
            self._saw(found.id, found)
            if found.id in keys:
                operation.saw(found.id, found)

    def _saw(self, key: Key, item: Any) -> Any:
        """Keep what was read or acknowledged: from now on readers must find it, so nothing else may have its value."""
        self._history.reported.add(item.revision)
        self._history.settled()
        return super()._saw(key, item)

    def _holding(self) -> set[tuple[str, str | None]]:
        """The revisions and values of items that certainly live and were reported."""
        return {(identity(item), _tag(item)) for item in reported(self._history)}

    def _none_had(self, tag: str, operation: Operation, before: set[tuple[str, str | None]]) -> None:
        """Refuse the answer that nothing has a value if one item had it all the time."""
        if any(each[1] == tag for each in before & self._holding()):
            raise AnomalyError(f"the look-up of {tag} answers nothing, but {before} had it before and after")
        for key in operation.keys if self._history.values_known else ():
            seen = operation.watch.of(key)
            contents = [self._history.contents[value] for value in seen if value is not None]
            # What a transaction leaves may be free before its item shows that.
            if (
                not self._history.changing(key)
                and None not in seen
                and all(_tag(content) == tag for content in contents)
            ):
                raise AnomalyError(f"the look-up of {tag} answers nothing, but {key} had it all the time")

    def finish(self) -> None:
        """See `Client.finish`; look all values up as well."""
        super().finish()
        for _ in range(_LAST_LOOK_UPS):
            self.operate("look_up")

    def _do_batch_write(self) -> None:
        """Put some items in a batch, each of which may be refused."""
        chosen = self._random.sample(self._traffic.keys, self._random.randint(1, len(self._traffic.keys)))
        put = [self._item(key) for key in chosen]
        with self._operation("batch_write", *chosen, puts={item.id: item.value for item in put}) as operation:
            outcomes = self.collection.try_batch_write(put)
            for each in outcomes:
                if each is not None and not isinstance(each, _REFUSALS) and not each.transient:
                    raise each
            if any(outcomes):
                operation.lost()
            else:
                operation.wrote_all()


class UniqueChecks(Schedule):
    """What schedules of an entity with a unique field check, whatever places its items."""

    def __init__(self, wire: LeanWire, plan: Any, trace: list[str] | None = None) -> None:
        super().__init__(wire, plan, trace)
        self._traffic.kinds = (_WRITERS, _READERS)
        self._history.settled = self._check_unique

    @property
    def _entity(self) -> EntityDefinition[Any]:
        return definition(self._plan.model)

    def _prepare(self) -> None:
        """Leave reservations over for keys that do not have their values."""
        super()._prepare()
        random = Random(self._plan.seed ^ 0x0F)
        [unique] = self._entity.unique
        for tag in _TAGS:
            if random.random() < 0.5:
                [place] = reserved_for(self._entity, {"tenant": TENANT, "tag": tag})
                owner = self._entity.key_of({"tenant": TENANT, "id": random.choice(self._plan.keys)})
                self._put(TABLE, [{**reservation(place, unique, owner, None), _PLANTED: {"BOOL": True}}])

    def _found(self) -> list[Stored]:
        """The items that readers certainly find."""
        return self._history.surely_live()

    def _is_home(self, item: Stored, final: int) -> bool:
        """Whether readers find an item at the end."""
        del item, final
        return True

    def _check_unique(self) -> None:
        """Check that no two items have one value."""
        owners: dict[str, Key] = {}
        for item in self._found():
            tag, key = _tag(item), item[SK]["S"]
            if tag is not None and owners.setdefault(tag, key) != key:
                raise AnomalyError(f"{owners[tag]} and {key} both have {tag}")

    def _check_records(self) -> int:
        final = super()._check_records()
        rows = self._wire.call("Scan", {"TableName": TABLE})["Items"]
        reserved = {row[PK]["S"]: row for row in rows if row[SK]["S"] == RESERVATION}
        for place, key in self._due(self._history.surely_live(), final):
            owner = owner_of(reserved.get(place, {}))
            if owner is None or owner.sort != key:
                raise AnomalyError(f"{key} does not have the reservation {place}; {owner} has it")
        if not self._plan.late:
            live = [item for key in self._history.all_keys() for item in self._history.live(key)]
            self._check_left_over(reserved, {place for place, _ in self._due(live, final)})
        return final

    def _due(self, items: Sequence[Stored], final: int) -> list[tuple[str, Key]]:
        """The reservations that these items should have, but for those that a late request stored elsewhere."""
        return [
            (place, item[SK]["S"])
            for item in items
            if self._is_home(item, final)
            for place in reserved_for(self._entity, {"tenant": TENANT, "tag": _tag(item)})
        ]

    def _check_left_over(self, reserved: Mapping[str, Wire], due: Collection[str]) -> None:
        """Refuse a reservation that no item has, unless it was there at the start or expires by itself."""
        now = self._scheduler.now
        for place, row in reserved.items():
            owner = owner_of(row)
            planted = _PLANTED in row
            expires = float(row[EXPIRES_AT]["N"]) if EXPIRES_AT in row else None
            gone = expires is not None and expires <= now + 1
            if place not in due and not planted and not gone:
                raise AnomalyError(f"the reservation {place} of {owner} is left over")


class UniqueSchedule(UniqueChecks, TransactingSchedule):
    """A schedule of an entity with a unique field."""

    def _new_client(self, actor: Actor) -> UniqueClient:
        return UniqueClient(self._traffic, actor)

    def _new_database(self, chance: Random) -> Database:
        database = super()._new_database(chance)
        if isinstance(database, LateDatabase):
            database.straying |= {"TransactWriteItems"}
        return database

    def _found(self) -> list[Stored]:
        """The items that readers certainly find. One that was stored late counts from when it was reported."""
        return reported(self._history) if self._plan.late else self._history.surely_live()

    def _is_home(self, item: Stored, final: int) -> bool:
        key = self._entity.key_of({"tenant": TENANT, "id": item[SK]["S"]})
        return bool(item[PK]["S"] == home(self._entity, key, final))


def reported(history: History) -> list[Stored]:
    """Return the items that certainly live and were read or acknowledged, so that readers find them."""
    return [item for item in history.surely_live() if identity(item) in history.reported]


def _reason(error: NotUniqueError | TransactionRefusedError) -> str:
    return error.reason if isinstance(error, TransactionRefusedError) else error.code


def _tag(item: Stored) -> str | None:
    return item["tag"]["S"] if "tag" in item else None


def planned_unique(seed: int, *, late: bool | None = None) -> Plan:
    """Draw the plan of a seed. `late` requests are drawn if it is None, and only those of PREPARE if it is True."""
    drawn, strays = lateness(Random(seed ^ 0x1A7E))
    kind = _KINDS[seed % len(_KINDS)]
    if late or (late is None and drawn and strays):
        kind, late = "strays", True
    plan = planned(seed, kind, late=drawn if late is None else late, model=UniqueNote)
    # In other schedules with late requests nothing expires, because they compare listings and reads.
    return replace(plan, some_expire=seed % 3 == 0) if plan.late else plan


def run_unique(wire: LeanWire, seed: int, *, late: bool | None = None, trace: list[str] | None = None) -> Outcome:
    """Run the schedule of a seed, with a unique field; see `planned_unique`.

    Raises:
        AnomalyError: the code under test broke a promise.
    """
    return UniqueSchedule(wire, planned_unique(seed, late=late), trace).run()
