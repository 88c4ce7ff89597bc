"""Sharded counters: numbers that many writers add to at once.

A counter is a few items, its slots. A writer adds to a random one, and a reader sums them up. What is added as a step
of a transaction is added exactly once, and with it whatever else the transaction does.

    class Plays(Entity, name="plays.v1.Plays", key=Key(partition="{tenant_id}:{series}:{slot}")):
        tenant_id: str
        series: str
        slot: int
        plays: int = 0

    PLAYS = Slots(Plays, slots=16)

    plays = SlotStore.on(db, PLAYS)
    plays.add({"tenant_id": "abc", "series": "news"}, plays=1)
    db.transact(Create(play), plays.adding({"tenant_id": "abc", "series": "news"}, plays=1))
    plays.total({"tenant_id": "abc", "series": "news"})        # {"plays": 2}

Source of the idea: "sharded counters", as DynamoDB's and other key-value stores' guides have them for hot numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import NoneType
from typing import Any, Final, Generic, Self, TypeVar

from dynashard import Dynashard
from dynashard.entity import Entity, definition, plain_types
from dynashard.errors import DeclarationError, InvalidKeyError
from dynashard.repository import Repository, Store
from dynashard.transactions import Transaction, Update

__all__ = [
    "SlotStore",
    "Slots",
]

E = TypeVar("E", bound=Entity)

MOST_SLOTS: Final = 100
"""What one BatchGetItem reads."""
_NUMBERS: Final = frozenset({int, float, Decimal})

Number = int | float | Decimal


@dataclass(frozen=True, slots=True)
class Slots(Generic[E]):
    """Slots of one kind, declared.

    Attributes:
        model: the entity of the slots: with `slot` among its key fields, and with numbers that have a default of 0.
        slots: how many items a counter has. It can be raised at any time, but never lowered: slots that are not read
            are not counted.
        slot: the field with the number of the slot, from 0. In the partition template, every slot is a
            partition of its own.

    Raises:
        DeclarationError: the entity cannot be a counter.
    """

    model: type[E]
    slots: int = 16
    slot: str = "slot"

    def __post_init__(self) -> None:
        entity = definition(self.model)
        if self.slot not in entity.key_fields:
            raise DeclarationError(entity.name, f"is to be a counter, but {self.slot} is not a field of its key")
        if plain_types(self.model.model_fields[self.slot].annotation) != {int}:
            raise DeclarationError(entity.name, f"is to be a counter: declare {self.slot} as an int")
        if not 1 <= self.slots <= MOST_SLOTS:
            raise DeclarationError(entity.name, f"has {self.slots} slots: it can have 1 to {MOST_SLOTS}")
        if not self.numbers:
            raise DeclarationError(entity.name, "is to be a counter, but has no number to add to: declare `n: int = 0`")

    @property
    def numbers(self) -> tuple[str, ...]:
        """The fields that are counted: numbers, zero by default."""
        entity = definition(self.model)
        return tuple(
            name
            for name, field in self.model.model_fields.items()
            if name not in entity.key_fields
            and (plain_types(field.annotation) - {NoneType}) <= _NUMBERS
            and plain_types(field.annotation) - {NoneType}
            and not field.is_required()
            and not field.default
        )

    def keys(self, key: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The keys of a counter's slots, slot 0 first.

        Args:
            key: the fields of its key, all but the slot.

        Raises:
            InvalidKeyError: the slot is named.
        """
        if self.slot in key:
            raise InvalidKeyError(f"{self.slot} is drawn for you: leave it out", field=self.slot)
        return [{**key, self.slot: number} for number in range(self.slots)]


class SlotStore(Generic[E]):
    """Slots of one kind in a table. Safe to share between threads."""

    def __init__(self, store: Store, counters: Slots[E]) -> None:
        self._store = store
        self._counters = counters
        self._items: Repository[E] = Repository(store, counters.model)

    @classmethod
    def on(cls, db: Dynashard, counters: Slots[E]) -> Self:
        """Open the counters of one kind. Costs nothing."""
        return cls(db.store, counters)

    def adding(self, key: Mapping[str, Any], /, **amounts: Number) -> Update:
        """A step of a transaction that adds to a counter: to one of its slots, drawn now.

        Args:
            key: the fields of its key, all but the slot.
            amounts: what to add by field; less than 0 to take away.

        Raises:
            InvalidKeyError: the slot is named.

        Cost: none; the step, 2 write units.
        """
        keys = self._counters.keys(key)
        return Update(
            self._counters.model, keys[int(self._store.runtime.random() * len(keys))], add=amounts, missing="create"
        )

    def add(self, key: Mapping[str, Any], /, **amounts: Number) -> None:
        """Add to a counter, exactly once even if the request is sent again.

        Raises:
            InvalidKeyError, InvalidValueError: nothing was sent.
            TransactionConflictError, ThrottledError: nothing was added.
            EngineUnavailableError: no answer came; it may have been added.

        Cost: 2 write units, 1 round trip.
        """
        Transaction(self._store, [self.adding(key, **amounts)]).run()

    def total(self, key: Mapping[str, Any], *, consistent: bool = False) -> dict[str, Any]:
        """Return the sums of a counter by field; zeros if nothing was ever added.

        Args:
            key: the fields of its key, all but the slot.
            consistent: count everything that was acknowledged before.

        Cost: 0.5 read units a slot, 1 if consistent; 1 round trip.
        """
        return self.totals([key], consistent=consistent)[0]

    def totals(self, keys: Sequence[Mapping[str, Any]], *, consistent: bool = False) -> list[dict[str, Any]]:
        """Return the sums of several counters, in their order.

        Raises:
            UnprocessedError: with the keys that could not be read in time.
            UndecodableItemError: a slot does not fit its entity, so the sum would be wrong.

        Cost: what `total` costs for each; 1 round trip for 100 slots, up to 16 at a time.
        """
        slots, numbers = self._counters.slots, self._counters.numbers
        spread = [each for key in keys for each in self._counters.keys(key)]
        found = self._items.batches.get(spread, consistent=consistent, strict=True) if spread else []
        return [
            {
                name: sum(getattr(item, name) or 0 for item in found[at : at + slots] if item is not None)
                for name in numbers
            }
            for at in range(0, len(found), slots)
        ]
