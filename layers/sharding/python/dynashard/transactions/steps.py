"""The steps of a transaction: writes and checks that are executed at one moment.

    dynashard.transact(
        Create(order),
        Update(Stock, {"tenant_id": "abc", "article": "4711"}, add={"left": -1}, at_least={"left": 0}),
        Check(Customer, {"tenant_id": "abc", "id": "9"}, revision=customer.revision),
    )

Steps are frozen values. A key is its fields, or an item that has them.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from dynashard.arguments import check_item, check_key, check_revision, check_values, names_of
from dynashard.cures import with_example
from dynashard.entity import Entity, EntityDefinition, ItemKey
from dynashard.errors import InvalidValueError
from dynashard.repository.replacement import revision_read
from dynashard.repository.reservations import NOTHING, Reserving
from dynashard.repository.store import KeyLike


def _refused(_: str, problem: str) -> InvalidValueError:
    return InvalidValueError(problem)


@with_example("Create(user)", _refused)
@dataclass(frozen=True, slots=True)
class Create:
    """Store an item under a key that has no live item.

    Refused as `already_exists`. Cost: 2 write units; 4 while its key moves.

    An entity with unique fields may also refuse this step, and each other that stores an item, as `not_unique`, and
    costs more: see docs/unique.md.
    """

    item: Entity

    def __post_init__(self) -> None:
        check_item("Create", self.item)


@with_example("Put(user)", _refused)
@dataclass(frozen=True, slots=True)
class Put:
    """Store an item, whether or not its key has one; with `if_match`, only over the one at that revision.

    `over` is the stored item that it was made from; see `Collection.put`.

    Refused as `revision_mismatch`. Cost: 2 write units; like `Collection.replace`, it may be read first.
    """

    item: Entity
    if_match: str | None = None
    over: Entity | None = None

    def __post_init__(self) -> None:
        check_item("Put", self.item)
        check_revision(self.if_match)
        if self.over is not None:
            check_item("over", self.over)
            revision_read(self.over, self.if_match)


@with_example("Update(User, user, set={...})", _refused)
@dataclass(frozen=True, slots=True)
class Update:
    """Update some fields of a live item.

    Attributes:
        set, remove, add, if_match: those of `Collection.update`.
        at_least, at_most: bounds that fields must keep to after `add`, by field. One that is not stored has its
            default, or is 0.
        missing: `create` creates a missing item from its key, what is added, and defaults, as counters need it. It can
            be combined with `add` only, and with `set` of the field of expiry.
        returns: whether the transaction returns the updated item; then the item is read first.

    Refused as `not_found`, `revision_mismatch`, or `exhausted` if a sum would not keep to its bounds. Cost: 2 write
    units; with `returns`, and if `Collection.update` would read first, 1 read unit.
    """

    model: type[Entity]
    key: KeyLike
    set: Mapping[str, Any] | None = None
    remove: Collection[str] = ()
    add: Mapping[str, Any] | None = None
    if_match: str | None = None
    missing: Literal["refuse", "create"] = "refuse"
    returns: bool = False
    at_least: Mapping[str, int | float | Decimal] | None = None
    at_most: Mapping[str, int | float | Decimal] | None = None

    def __post_init__(self) -> None:
        check_key("Update", self.model, self.key)
        check_revision(self.if_match)
        check_values("set", self.set)
        names_of("remove", self.remove)
        for name in ("add", "at_least", "at_most"):
            check_values(name, getattr(self, name))
        _check_missing(self.missing, "create")


@with_example("Delete(User, user)", _refused)
@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a live item; with `missing="ignore"`, succeed also if there is none.

    Refused as `not_found` or `revision_mismatch`. Cost: 2 write units.
    """

    model: type[Entity]
    key: KeyLike
    if_match: str | None = None
    missing: Literal["refuse", "ignore"] = "refuse"

    def __post_init__(self) -> None:
        check_key("Delete", self.model, self.key)
        check_revision(self.if_match)
        _check_missing(self.missing, "ignore")


@with_example("Check(User, user, revision=user.revision)", _refused)
@dataclass(frozen=True, slots=True)
class Check:
    """Demand that the live item is at a revision, without changing it; with None, that there is no live item.

    Refused as `revision_mismatch` or `already_exists`. Cost: 2 write units.
    """

    model: type[Entity]
    key: KeyLike
    revision: str | None

    def __post_init__(self) -> None:
        check_key("Check", self.model, self.key)
        check_revision(self.revision, "revision")


@dataclass(frozen=True, slots=True)
class CheckStored:
    """A `Check` by the stored form of the key, whose fields are not known, which may take and leave reservations.

    For transactions themselves, and for the repair of reservations.
    """

    entity: EntityDefinition[Any]
    key: ItemKey
    revision: str | None
    reserving: Reserving = NOTHING


def _check_missing(missing: object, other: str) -> None:
    if missing not in ("refuse", other):
        raise InvalidValueError(f"missing is {missing!r}; it must be refuse or {other}", field="missing")


Step = Create | Put | Update | Delete | Check
"""A part of a transaction."""
