"""The conditions that writes carry, and the errors of failed ones.

Every conditional write demands that no relocation marker is stored at its key, because a moved item is written only at
its new home. An item whose `ExpiresAt` has passed counts as absent, even while the table still holds it. `now` is in
epoch seconds throughout.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dynashard.entity import UNREVISED, revision_in
from dynashard.errors import AlreadyExistsError, NotFoundError, RevisionMismatchError
from dynashard.schema import EXPIRES_AT, MOVED_TO, PK, REV

_UNMARKED: Final = f"attribute_not_exists({MOVED_TO})"
_LIVE: Final = f"(attribute_not_exists({EXPIRES_AT}) OR {EXPIRES_AT} > :now)"
_GONE: Final = f"attribute_not_exists({PK}) OR {EXPIRES_AT} <= :now"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition expression with its values."""

    expression: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def on(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the request with this condition; if it fails, the answer brings the stored item."""
        conditional = {
            **request,
            "ConditionExpression": self.expression,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        if self.values:
            conditional["ExpressionAttributeValues"] = {**request.get("ExpressionAttributeValues", {}), **self.values}
        return conditional


UNMARKED: Final = Condition(_UNMARKED)
"""Anything but a marker."""


def absent(now: int) -> Condition:
    """No live item and no marker."""
    return Condition(f"{_UNMARKED} AND ({_GONE})", _time(now))


def absent_or_marker(now: int) -> Condition:
    """No live item, but perhaps a marker."""
    return Condition(f"attribute_exists({MOVED_TO}) OR {_GONE}", _time(now))


def live_or_none(now: int, *, not_by: str) -> Condition:
    """A live item or none at all, not written by the revision `not_by`."""
    return Condition(f"{_UNMARKED} AND {_LIVE} AND NOT {REV} = :rev", {**_time(now), ":rev": {"S": not_by}})


def absent_or_matching(now: int, *, if_match: str | None) -> Condition:
    """Anything but a marker or, if a revision is named, a live item at another one."""
    if if_match is None:
        return UNMARKED
    matches, value = _matches(if_match)
    return Condition(f"{_UNMARKED} AND ({_GONE} OR {matches})", _time(now) | value)


def live(now: int, *, if_match: str | None = None) -> Condition:
    """A live item, at this revision if one is named; `UNREVISED` for an adopted item without one."""
    terms = [f"attribute_exists({PK})", _UNMARKED, _LIVE]
    if if_match is None:
        return Condition(" AND ".join(terms), _time(now))
    matches, value = _matches(if_match)
    return Condition(" AND ".join([*terms, matches]), _time(now) | value)


def _time(now: int) -> dict[str, Any]:
    return {":now": {"N": str(now)}}


def _matches(revision: str) -> tuple[str, dict[str, Any]]:
    if revision == UNREVISED:
        return f"attribute_not_exists({REV})", {}
    return f"{REV} = :match", {":match": {"S": revision}}


def is_live(item: Mapping[str, Any] | None, now: int) -> bool:
    """Whether readers see a stored item."""
    if not item or MOVED_TO in item:
        return False
    return EXPIRES_AT not in item or float(item[EXPIRES_AT]["N"]) > now


def is_marker(item: Mapping[str, Any] | None) -> bool:
    """Whether what is stored is a relocation marker."""
    return item is not None and MOVED_TO in item


def moved_to(marker: Mapping[str, Any]) -> int:
    """Return the shard count under which a marker's item has its home."""
    return int(marker[MOVED_TO]["N"])


def refusal(
    found: Mapping[str, Any] | None, *, name: str, now: int, if_match: str | None
) -> NotFoundError | AlreadyExistsError | RevisionMismatchError:
    """Return a caller's error for a condition that failed because of a stored item, or because there is none."""
    current = found if is_live(found, now) else None
    if if_match is not None:
        return mismatch(name, revision_in(current) if current else None)
    return exists_already(name) if current else NotFoundError(f"{name} does not exist")


def exists_already(name: str) -> AlreadyExistsError:
    """Return the error of a create whose key has a live item."""
    return AlreadyExistsError(f"{name} exists already")


def mismatch(name: str, revision: str | None) -> RevisionMismatchError:
    """Return the error of a write that names another revision than the stored one; None if there is no live item."""
    state = "does not exist" if revision is None else f"is at revision {revision}"
    return RevisionMismatchError(f"{name} {state}; read it again before changing it", current=revision)
