"""Reservations of unique values: which of them a write takes and leaves, and the actions of its transaction.

A reservation names the logical key of its owner, and expires when its owner does. Every write of an item takes and
leaves reservations in the transaction that writes the item, so a live item owns the reservations of all its values.

A reservation may be left over: DynamoDB deletes an expired item and its reservation at different moments, and other
programs delete only the item. So a reservation alone refuses nobody: its owner is read (see `transactions`).
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any, Final, NamedTuple

from dynashard.entity import EntityDefinition, ItemKey
from dynashard.entity.uniqueness import RESERVATION, UniqueDefinition, reserved_for
from dynashard.errors import InputError, TransactionCanceledError, UndecodableItemError
from dynashard.repository.conditions import Condition
from dynashard.routing import logical_partition_of, wire_key
from dynashard.schema import EXPIRES_AT, OWNER_PARTITION, OWNER_REV, OWNER_SORT, PK, SK, TYPE
from dynashard.transport.interface import Wire

Places = Mapping[str, UniqueDefinition]
"""Reservations by their stored partition keys."""


class Reserving(NamedTuple):
    """The reservations that a write of an item takes and leaves; one that it keeps unchanged is in neither.

    `expires` is the time of expiry of those that it takes, as it is stored; None if the item does not expire. `own` are
    those that it takes although the item has them, with another time of expiry.
    """

    takes: Places
    leaves: Places
    expires: Wire | None = None
    own: AbstractSet[str] = frozenset()


NOTHING: Final = Reserving({}, {})


def reserving_of(
    entity: EntityDefinition[Any], before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> Reserving:
    """Return what a write takes and leaves: the fields of its item before it and after it, None without one.

    Raises `InputError` for new values that cannot be reserved.
    """
    old = {} if before is None else reserved_for(entity, before)
    new = {} if after is None else reserved_for(entity, after)
    times = [expiry_of(entity, values) for values in (before, after)]
    takes = new if times[0] != times[1] else {place: each for place, each in new.items() if place not in old}
    leaves = {place: each for place, each in old.items() if place not in new}
    return Reserving(takes, leaves, times[1], takes.keys() & old.keys())


def expiry_of(entity: EntityDefinition[Any], values: Mapping[str, Any] | None) -> Wire | None:
    """Return the time of expiry of an item with these fields, as it is stored; None if it does not expire."""
    moment = None if values is None or entity.expires is None else values.get(entity.expires)
    return None if moment is None or entity.expires is None else entity.encode_field(entity.expires, moment)


def fields_stored(entity: EntityDefinition[Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a stored item that decide what is reserved for it; none if they cannot be decoded."""
    with suppress(UndecodableItemError):
        return _fields_read(entity, stored)
    return {}


def _fields_read(entity: EntityDefinition[Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same fields as readers get them; raises as `EntityDefinition.decode`."""
    if entity.assignment.sees_others(entity.reserving):
        # A validator may make one of the others, whatever is stored for it.
        read = {name: value for name, value in entity.decode(stored).__dict__.items() if name in entity.reserving}
        return read | expiry_stored(entity, stored)
    return entity.decode_fields(stored, sorted(entity.reserving))


def expiry_stored(entity: EntityDefinition[Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the field of expiry of a stored item: readers get an earlier time if its retention is shorter by now."""
    return {} if entity.expires is None else entity.decode_fields(stored, [entity.expires])


def stored_places(entity: EntityDefinition[Any], stored: Mapping[str, Any]) -> Places:
    """Return what is reserved for a stored item."""
    with suppress(InputError):
        return reserved_for(entity, fields_stored(entity, stored))
    return {}


def has(entity: EntityDefinition[Any], stored: Mapping[str, Any], place: str) -> bool:
    """Whether a stored item has the values of a reservation.

    An item whose fields cannot be read, such as one of a later version of the declaration, may have them. One whose
    fields contradict its key has none, because nobody can see it; it may have the values of another tenant.
    """
    try:
        if entity.misplaced(entity.decode_fields(stored, entity.key_fields), stored):
            return False
        fields = _fields_read(entity, stored)
    except UndecodableItemError:
        return True
    with suppress(InputError):
        return place in reserved_for(entity, fields)
    return False


def owner_of(reservation: Mapping[str, Any]) -> ItemKey | None:
    """Return the logical key of a reservation's owner; None if what is stored names none."""
    try:
        owner = ItemKey(reservation[OWNER_PARTITION]["S"], reservation[OWNER_SORT]["S"])
    except (KeyError, TypeError):
        return None
    # No key of DynamoDB is empty.
    return owner if owner.partition and owner.sort else None


def reservation_key(place: str) -> Wire:
    """Return the stored key of a reservation."""
    return wire_key((place, RESERVATION))


def reservation(
    place: str, unique: UniqueDefinition, owner: ItemKey, expires: Wire | None, revision: str | None = None
) -> Wire:
    """Return a reservation as it is stored, about 250 bytes. `revision` is that of the write that takes it."""
    return {
        **reservation_key(place),
        TYPE: {"S": unique.kind},
        OWNER_PARTITION: {"S": owner.partition},
        OWNER_SORT: {"S": owner.sort},
        **({} if revision is None else {OWNER_REV: {"S": revision}}),
        **({} if expires is None else {EXPIRES_AT: expires}),
    }


def take(
    table: str, item: Wire, owners: Iterable[ItemKey], now: int, left_over: Mapping[str, Any] | None = None
) -> Wire:
    """Return the action that stores a reservation if none is in force, or if one of `owners` has it.

    It also replaces one that is `left_over` while it is as it was read. If its owner has taken it again since, it has
    another revision, however late the action is executed and wherever the owner is stored then.
    """
    terms, values = _belonging(owners)
    if left_over is not None:
        term, more = as_read(left_over)
        terms, values = [*terms, term], {**values, **more}
    free = [f"attribute_not_exists({PK})", f"{EXPIRES_AT} <= :now"]
    condition = Condition(" OR ".join(free + terms), {":now": {"N": str(now)}, **values})
    return {"Put": condition.on({"TableName": table, "Item": item})}


def leave(table: str, place: str, owners: Iterable[ItemKey]) -> Wire:
    """Return the action that deletes a reservation, which one of `owners` must have if there is one."""
    terms, values = _belonging(owners)
    condition = Condition(" OR ".join([f"attribute_not_exists({PK})", *terms]), values)
    return {"Delete": condition.on({"TableName": table, "Key": reservation_key(place)})}


def of_others(table: str, place: str, owners: Iterable[ItemKey]) -> Wire:
    """Return the check that a reservation is not one of `owners`."""
    terms, values = _belonging(owners)
    condition = Condition(" AND ".join(f"NOT {term}" for term in terms), values)
    return {"ConditionCheck": condition.on({"TableName": table, "Key": reservation_key(place)})}


def held(table: str, entity: EntityDefinition[Any], stored: Mapping[str, Any]) -> list[Wire]:
    """Return the checks that a stored item has all of its reservations; none without unique fields.

    They are part of moving an item that was stored late at a former home: it was never acknowledged, so its values may
    have been reserved for another item since.
    """
    if not entity.unique:
        return []
    owner = ItemKey(logical_partition_of(entity, stored[PK]["S"]), stored[SK]["S"])
    [term], values = _belonging([owner])
    return [
        {"ConditionCheck": Condition(term, values).on({"TableName": table, "Key": reservation_key(place)})}
        for place in stored_places(entity, stored)
    ]


def not_held(error: TransactionCanceledError) -> bool:
    """Whether only the checks of `held` refused to move an item, because one of its values belongs to another."""
    marker, copy, *reserved = error.reasons
    return not marker.refused and not copy.refused and any(reason.condition_failed for reason in reserved)


def as_read(found: Mapping[str, Any]) -> tuple[str, dict[str, Wire]]:
    """Return the condition that a reservation is the one that was read, and its values."""
    names = {OWNER_PARTITION: ":read0", OWNER_SORT: ":read1", OWNER_REV: ":read2"}
    terms = [f"{name} = {value}" if name in found else f"attribute_not_exists({name})" for name, value in names.items()]
    return f"({' AND '.join(terms)})", {value: found[name] for name, value in names.items() if name in found}


def _belonging(owners: Iterable[ItemKey]) -> tuple[list[str], dict[str, Wire]]:
    """Conditions, one for each owner, that a reservation belongs to it; and their values."""
    terms: list[str] = []
    values: dict[str, Wire] = {}
    for number, owner in enumerate(dict.fromkeys(owners)):
        terms.append(f"({OWNER_PARTITION} = :p{number} AND {OWNER_SORT} = :s{number})")
        values |= {f":p{number}": {"S": owner.partition}, f":s{number}": {"S": owner.sort}}
    return terms, values
