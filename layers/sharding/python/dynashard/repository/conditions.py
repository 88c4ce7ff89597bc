"""The conditions that writes carry, and the errors of failed ones.

Every conditional write demands that no relocation marker is stored at its key, because a moved item is written only at
its new home. An item whose `ExpiresAt` has passed counts as absent, even while the table still holds it. `now` is in
epoch seconds throughout.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from msgspec import Struct, field

from dynashard.entity import UNREVISED, EntityDefinition, expiry, marked_count, marker_problem, revision_in
from dynashard.entity.versions import FIRST
from dynashard.errors import AlreadyExistsError, NotFoundError, RevisionMismatchError, UndecodableItemError
from dynashard.schema import EXPIRES_AT, MOVED_TO, PK, REV, SK, TYPE, VERSION

_GONE: Final = f"attribute_not_exists({PK}) OR {EXPIRES_AT} <= :now"


class Condition(Struct, frozen=True):
    """A condition expression with its values and names. To be joined by `&`, an OR must be in parentheses."""

    expression: str
    values: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)

    def __and__(self, other: "Condition") -> "Condition":
        values, names = {**self.values, **other.values}, {**self.names, **other.names}
        return Condition(f"{self.expression} AND {other.expression}", values, names)

    def on(self, request: dict[str, Any]) -> dict[str, Any]:
        """Add this condition to a request, and return it; if it fails, the answer brings the stored item."""
        request["ConditionExpression"] = self.expression
        request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        if self.values:
            request["ExpressionAttributeValues"] = {**request.get("ExpressionAttributeValues", {}), **self.values}
        if self.names:
            request["ExpressionAttributeNames"] = {**request.get("ExpressionAttributeNames", {}), **self.names}
        return request


UNMARKED: Final = Condition(f"attribute_not_exists({MOVED_TO})")
"""Anything but a marker."""
_STORED: Final = Condition(f"attribute_exists({PK})")
_UNVERSIONED: Final = Condition(f"attribute_not_exists({VERSION})")
_UNEXPIRED: Final = f"NOT {EXPIRES_AT} <= :now"
"""Holds also without a time, or with something else in its place: such an item is live; see `is_live`."""
_UNEXPIRED_ITEM: Final = f"{UNMARKED.expression} AND {_UNEXPIRED}"
_LIVE: Final = f"{_STORED.expression} AND {_UNEXPIRED_ITEM}"


def absent(now: int) -> Condition:
    """No live item and no marker."""
    return UNMARKED & Condition(f"({_GONE})", _time(now))


def absent_or_marker(now: int) -> Condition:
    """No live item, but perhaps a marker."""
    return Condition(f"attribute_exists({MOVED_TO}) OR {_GONE}", _time(now))


def live_or_none(now: int, *, not_by: str | None = None) -> Condition:
    """A live item or none at all, not written by the revision `not_by`."""
    condition = Condition(_UNEXPIRED_ITEM, _time(now))
    return condition if not_by is None else condition & Condition(f"NOT {REV} = :rev", {":rev": {"S": not_by}})


def absent_or_matching(now: int, *, if_match: str | None) -> Condition:
    """Anything but a marker or, if a revision is named, a live item at another one."""
    if if_match is None:
        return UNMARKED
    matches = _at(if_match)
    return UNMARKED & Condition(f"({_GONE} OR {matches.expression})", {**_time(now), **matches.values})


def live(now: int, *, if_match: str | None = None) -> Condition:
    """A live item, at this revision if one is named; `UNREVISED` for an item without one; see `revision_in`."""
    condition = Condition(_LIVE, _time(now))
    return condition if if_match is None else condition & _at(if_match)


@cache
def of_version(version: int, *, exactly: bool) -> Condition:
    """No item of a later version of its declaration; `exactly` one of this version."""
    if version == FIRST:
        return _UNVERSIONED
    values = {":version": {"N": str(version)}}
    if exactly:
        return Condition(f"{VERSION} = :version", values)
    return Condition(f"({_UNVERSIONED.expression} OR {VERSION} <= :version)", values)


@cache
def of_type(name: str, *, untyped: bool, or_none: bool) -> Condition:
    """An item of the entity with this name; `untyped` also one of no entity, `or_none` also nothing at all."""
    terms = ["#type = :type"]
    terms += ["attribute_not_exists(#type)"] if untyped else []
    terms += [f"attribute_not_exists({PK})"] if or_none else []
    expression = terms[0] if len(terms) == 1 else f"({' OR '.join(terms)})"
    return Condition(expression, {":type": {"S": name}}, {"#type": TYPE})


def unchanged(item: Mapping[str, Any]) -> Condition:
    """The item as it was read: not a marker, and still at its revision, or still without one."""
    if REV not in item:
        return _STORED & UNMARKED & Condition(f"attribute_not_exists({REV})")
    # As it is stored: another program may have written something that is not a revision.
    return _STORED & UNMARKED & Condition(f"{REV} = :match", {":match": item[REV]})


def _time(now: int) -> dict[str, Any]:
    return {":now": {"N": str(now)}}


def _at(revision: str) -> Condition:
    if revision == UNREVISED:
        # No comparison holds for what is not a text, or not there.
        return Condition(f"NOT {REV} > :match", {":match": {"S": UNREVISED}})
    return Condition(f"{REV} = :match", {":match": {"S": revision}})


def is_live(item: Mapping[str, Any] | None, now: float) -> bool:
    """Whether readers see a stored item."""
    if not item or MOVED_TO in item:
        return False
    # An item with something else in place of a time does not expire in DynamoDB either; decoding it says what is wrong.
    return EXPIRES_AT not in item or (ends := expiry(item)) is None or ends > now


def is_marker(item: Mapping[str, Any] | None) -> bool:
    """Whether what is stored is a relocation marker."""
    return item is not None and MOVED_TO in item


def is_damaged(item: Mapping[str, Any] | None) -> bool:
    """Whether what is stored should be a relocation marker and leads nowhere, so that no reader can say what it is."""
    return item is not None and MOVED_TO in item and marked_count(item) is None


def moved_to(marker: Mapping[str, Any]) -> int:
    """Return the shard count under which a marker's item has its home; `UndecodableItemError` if it names none."""
    if (count := marked_count(marker)) is None:
        raise damaged_marker(marker)
    return count


def damaged_marker(marker: Mapping[str, Any]) -> UndecodableItemError:
    """Return the error of a relocation marker that leads nowhere."""
    return UndecodableItemError(
        f"the relocation marker at {marker[PK]['S']} {marker[SK]['S']} is damaged: {marker_problem(marker)}. "
        "Run `dynashard verify`, and remove the row if nothing needs it"
    )


def refusal(
    found: Mapping[str, Any] | None, *, name: str, now: int, if_match: str | None
) -> NotFoundError | AlreadyExistsError | RevisionMismatchError:
    """Return a caller's error for a condition that failed because of a stored item, or because there is none."""
    current = found if is_live(found, now) else None
    if if_match is not None:
        return mismatch(name, revision_in(current) if current else None)
    return exists_already(name) if current else NotFoundError(f"{name} does not exist")


def later_version(entity: EntityDefinition[Any], found: Mapping[str, Any] | None) -> UndecodableItemError | None:
    """Return the error of a write that a stored item refuses because of its version; None if that is not why."""
    if found is None or MOVED_TO in found:
        return None
    try:
        entity.versions.require_known(entity, found)
    except UndecodableItemError as error:
        return error
    return None


def exists_already(name: str) -> AlreadyExistsError:
    """Return the error of a create whose key has a live item."""
    return AlreadyExistsError(f"{name} exists already")


def mismatch(name: str, revision: str | None) -> RevisionMismatchError:
    """Return the error of a write that names another revision than the stored one; None if there is no live item."""
    state = "does not exist" if revision is None else f"is at revision {revision}"
    return RevisionMismatchError(f"{name} {state}; read it again before changing it", current=revision)
