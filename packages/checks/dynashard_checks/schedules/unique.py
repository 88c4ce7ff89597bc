"""Schedules of an entity with a unique field: clients want few values, in all phases of a resize.

The simulated database reports to the model what is stored. At every moment no two live items have one value. At the end
each live item has its reservation, and no other is in force whose owner is live with another value or absent. Before
the schedule begins there are reservations that are left over, so clients take values over from the start.
"""

from collections.abc import Mapping
from random import Random
from typing import Any, Final

from dynashard import definition
from dynashard.entity.uniqueness import RESERVATION, reserved_for
from dynashard.errors import NotUniqueError
from dynashard.repository.reservations import owner_of, reservation
from dynashard.schema import EXPIRES_AT, PK, SK
from dynashard.transport.interface import Wire
from dynashard_checks.schedules.entities import TENANT, UniqueNote
from dynashard_checks.schedules.history import Key, Stored
from dynashard_checks.schedules.operations import Operation
from dynashard_checks.schedules.plan import Plan, planned
from dynashard_checks.schedules.schedule import Outcome
from dynashard_checks.schedules.scheduler import Actor, AnomalyError
from dynashard_checks.schedules.transactions import Part, TransactingClient, TransactingSchedule
from dynashard_checks.schedules.wire import TABLE, LeanWire

UNIQUE: Final = "unique"
"""The kind of these schedules."""
_ENTITY: Final = definition(UniqueNote)
_KINDS: Final = ("race", "race", "grow", "shrink", "calm")
_TAGS: Final = ("red", "green")
_PLANTED: Final = "Planted"
_WRITERS: Final = ("create", "create", "put", "update", "delete", "transact", "batch_write")
_READERS: Final = ("look_up", "look_up", "get", "create", "put", "update", "delete", "transact")


class UniqueClient(TransactingClient):
    """A client whose items have one of few values, or none."""

    def _item(self, key: Key) -> Any:
        return super()._item(key).model_copy(update={"tag": self._random.choice((*_TAGS, *_TAGS, None))})

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
        if_match, expected = (known.revision, known.value) if known and self._random.random() < 0.3 else (None, None)
        with self._operation("update", key, value=value, if_match=if_match, expected=expected) as operation:
            operation.wrote(self._saw(key, self.collection.update(self._fields(key), set=fields, if_match=if_match)))

    def _do_look_up(self) -> None:
        """Look an item up by its value: what is answered has the value, and certainly lived during the look-up."""
        tag = self._random.choice(_TAGS)
        keys = self._traffic.keys
        with self._operation("batch_get", *keys) as operation:
            found = self.collection.find(tenant=TENANT, tag=tag)
            if found is None:
                self._none_had(tag, operation)
                return
            if found.tag != tag:
                raise AnomalyError(f"the look-up of {tag} answers {found!r}")
            if self._history.values_known and found.revision not in operation.watch.of(found.id):
                raise AnomalyError(f"the look-up of {tag} answers {found!r}, which did not live then")

    def _none_had(self, tag: str, operation: Operation) -> None:
        for key in self._traffic.keys:
            seen = operation.watch.of(key)
            contents = [self._history.contents[value] for value in seen if value is not None]
            # What a transaction leaves may be free before its item shows that.
            if (
                not self._history.changing(key)
                and None not in seen
                and all(_tag(content) == tag for content in contents)
            ):
                raise AnomalyError(f"the look-up of {tag} answers nothing, but {key} had it all the time")

    def _do_batch_write(self) -> None:
        """Put some items in a batch, each of which may be refused."""
        chosen = self._random.sample(self._traffic.keys, self._random.randint(1, len(self._traffic.keys)))
        put = [self._item(key) for key in chosen]
        with self._operation("batch_write", *chosen, puts={item.id: item.value for item in put}) as operation:
            outcomes = self.collection.try_batch_write(put)
            for each in outcomes:
                if each is not None and not isinstance(each, NotUniqueError) and not each.transient:
                    raise each
            if any(outcomes):
                operation.lost()
            else:
                operation.wrote_all()


class UniqueSchedule(TransactingSchedule):
    """A schedule of an entity with a unique field."""

    def __init__(self, wire: LeanWire, plan: Plan, trace: list[str] | None = None) -> None:
        super().__init__(wire, plan, trace)
        self._traffic.kinds = (_WRITERS, _READERS)
        self._history.settled = self._check_unique

    def _new_client(self, actor: Actor) -> UniqueClient:
        return UniqueClient(self._traffic, actor)

    def _prepare(self) -> None:
        """Leave reservations over for keys that do not have their values."""
        super()._prepare()
        random = Random(self._plan.seed ^ 0x0F)
        [unique] = _ENTITY.unique
        for tag in _TAGS:
            if random.random() < 0.5:
                [place] = reserved_for(_ENTITY, {"tenant": TENANT, "tag": tag})
                owner = _ENTITY.key_of({"tenant": TENANT, "id": random.choice(self._plan.keys)})
                self._put(TABLE, [{**reservation(place, unique, owner, None), _PLANTED: {"BOOL": True}}])

    def _check_unique(self) -> None:
        owners: dict[str, Key] = {}
        for item in [] if self._plan.late else self._history.surely_live():
            tag, key = _tag(item), item[SK]["S"]
            if tag is not None and owners.setdefault(tag, key) != key:
                raise AnomalyError(f"{owners[tag]} and {key} both have {tag}")

    def _check_stored(self) -> None:
        super()._check_stored()
        rows = self._wire.call("Scan", {"TableName": TABLE})["Items"]
        reserved = {row[PK]["S"]: row for row in rows if row[SK]["S"] == RESERVATION}
        due = self._due()
        for place, key in due.items():
            owner = owner_of(reserved.get(place, {}))
            if owner is None or owner.sort != key:
                raise AnomalyError(f"{key} does not have the reservation {place}; {owner} has it")
        if not self._plan.late:
            self._check_left_over(reserved, due)

    def _due(self) -> dict[str, Key]:
        """The reservations that live items should have."""
        found: dict[str, Key] = {}
        for key in self._history.all_keys():
            homes = self._history.live(key) if not self._plan.late else []
            for item in homes:
                found |= dict.fromkeys(reserved_for(_ENTITY, {"tenant": TENANT, "tag": _tag(item)}), key)
        return found

    def _check_left_over(self, reserved: Mapping[str, Wire], due: Mapping[str, Key]) -> None:
        """Refuse a reservation that no item has, unless it was there at the start or expires by itself."""
        now = self._scheduler.now
        for place, row in reserved.items():
            owner = owner_of(row)
            planted = _PLANTED in row
            expires = float(row[EXPIRES_AT]["N"]) if EXPIRES_AT in row else None
            gone = expires is not None and expires <= now + 1
            if place not in due and not planted and not gone:
                raise AnomalyError(f"the reservation {place} of {owner} is left over")


def _tag(item: Stored) -> str | None:
    return item["tag"]["S"] if "tag" in item else None


def run_unique(wire: LeanWire, seed: int, *, trace: list[str] | None = None) -> Outcome:
    """Run the schedule of a seed, with a unique field.

    Raises:
        AnomalyError: the code under test broke a promise.
    """
    plan = planned(seed, _KINDS[seed % len(_KINDS)], late=False, model=UniqueNote)
    return UniqueSchedule(wire, plan, trace).run()
