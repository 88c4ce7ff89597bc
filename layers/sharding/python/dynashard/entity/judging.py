"""The judgement of stored items: whether what is stored can be served as an item of its entity.

An item is undecodable if its attributes do not fit its fields, if its fields contradict its key, or if what the layer
stores beside them is malformed. `EntityDefinition.decode` and `decode_fields` judge; this module has the rest: the
attributes that all entities share, and the verdict that listings carry in place of an item.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from msgspec import Struct

from dynashard.errors import NewerItemError, UndecodableItemError
from dynashard.schema import EXPIRES_AT, MAX_SHARDS, MOVED_TO, PK, REV, SK, TYPE

R = TypeVar("R")

MALFORMED: Final = (KeyError, TypeError, AttributeError, ValueError)
"""What reading an attribute raises that is not in DynamoDB's JSON, or of another type."""


class Undecodable(Struct, frozen=True):
    """A stored item that does not fit its entity, so it is left out.

    Attributes:
        partition_key, sort_key: its stored key.
        problem: what is wrong with it.
        versions: if it is of a later version of its entity, that version and the one that this release declares.
    """

    partition_key: str
    sort_key: str
    problem: str
    versions: tuple[int, int] | None = None

    @property
    def error(self) -> UndecodableItemError:
        """The error that a caller gets who asks for this item alone, or for no items left out."""
        if self.versions is not None:
            return NewerItemError(self.problem, version=self.versions[0], known=self.versions[1])
        return UndecodableItemError(self.problem)


def judged(read: Callable[[Mapping[str, Any]], R], wire: Mapping[str, Any]) -> R | Undecodable:
    """Return what is read of a stored item, or the verdict that it does not fit."""
    try:
        return read(wire)
    except NewerItemError as error:
        return verdict(wire, str(error), (error.version, error.known))
    except UndecodableItemError as error:
        return verdict(wire, str(error))


def verdict(wire: Mapping[str, Any], problem: str, versions: tuple[int, int] | None = None) -> Undecodable:
    """Return the verdict that a stored item does not fit."""
    partition, sort = (str(next(iter(wire.get(name, {}).values()), "")) for name in (PK, SK))
    return Undecodable(partition, sort, problem, versions)


def unrevised_problem(wire: Mapping[str, Any]) -> str | None:
    """Return why a stored item cannot be one that the layer wrote; None if it has a type and a revision."""
    lacking = " and ".join(name for name in (TYPE, REV) if name not in wire)
    return f"it has no {lacking}, so the layer has not written it: write it anew" if lacking else None


def system_problem(name: str, wire: Mapping[str, Any], *, expires: bool = True) -> str | None:
    """Return what is wrong with the attributes that the layer stores beside the fields of an entity; None if nothing.

    An adopted item has neither a type nor a revision. If the entity's items never expire, what is stored in place of a
    time belongs to others: DynamoDB ignores it too.
    """
    if MOVED_TO in wire and (damage := marker_problem(wire)):
        return damage
    if TYPE in wire and wire[TYPE] != {"S": name}:
        return f"{TYPE} is {wire[TYPE]}, not {name}"
    if REV in wire and not wire[REV].get("S"):
        return f"{REV} is {wire[REV]}, which is not a revision"
    if expires and EXPIRES_AT in wire and expiry(wire) is None:
        return f"{EXPIRES_AT} {wire[EXPIRES_AT]} is not a time in epoch seconds"
    return None


def marker_problem(wire: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a relocation marker: it names no shard count; None if nothing."""
    if marked_count(wire) is None:
        return f"{MOVED_TO} is {wire[MOVED_TO]}, which is not a number of shards"
    return None


def marked_count(wire: Mapping[str, Any]) -> int | None:
    """Return the shard count that a relocation marker names; None if it names none."""
    text = wire[MOVED_TO].get("N")
    if type(text) is not str or not text.isdecimal() or len(text) > len(str(MAX_SHARDS)) or int(text) > MAX_SHARDS:
        return None
    return int(text)


def expiry(wire: Mapping[str, Any]) -> float | None:
    """Return the time of expiry of a stored item that has one, in epoch seconds; None if it is not a number."""
    try:
        return float(wire[EXPIRES_AT]["N"])
    except MALFORMED:
        return None
