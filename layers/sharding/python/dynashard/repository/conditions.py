"""The conditions writes carry, and what a failed one means.

Every conditional write also demands that the item bears no mark: a moved item is written at its new home only.
An item whose `ExpiresAt` has passed counts as absent, though the table may still hold it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dynashard.entity import UNREVISED, revision_in
from dynashard.errors import AlreadyExistsError, ConditionFailedError, NotFoundError, RevisionMismatchError
from dynashard.schema import EXPIRES_AT, MOVED_TO, PK, REV

_UNMARKED: Final = f"attribute_not_exists({MOVED_TO})"
_LIVE: Final = f"(attribute_not_exists({EXPIRES_AT}) OR {EXPIRES_AT} > :now)"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition expression with its values."""

    expression: str
    values: dict[str, dict[str, str]] = field(default_factory=dict)

    def on(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The request with this condition, asking for the stored item should it fail."""
        conditional = {
            **request,
            "ConditionExpression": self.expression,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        if self.values:
            conditional["ExpressionAttributeValues"] = {**request.get("ExpressionAttributeValues", {}), **self.values}
        return conditional


def absent(now: int) -> Condition:
    """No live item, and no mark, stands at the key. `now` is in epoch seconds."""
    return Condition(f"{_UNMARKED} AND (attribute_not_exists({PK}) OR {EXPIRES_AT} <= :now)", {":now": {"N": str(now)}})


def unmarked() -> Condition:
    """Anything but a mark stands at the key."""
    return Condition(_UNMARKED)


def absent_or_marker(now: int) -> Condition:
    """No live item stands at the key, unless it is a mark. `now` is in epoch seconds."""
    expression = f"attribute_exists({MOVED_TO}) OR attribute_not_exists({PK}) OR {EXPIRES_AT} <= :now"
    return Condition(expression, {":now": {"N": str(now)}})


def live_or_none(now: int, *, not_by: str) -> Condition:
    """A live item, or none at all, stands at the key, and it was not written by `not_by`. `now` is in epoch seconds."""
    return Condition(f"{_UNMARKED} AND {_LIVE} AND NOT {REV} = :rev", {":now": {"N": str(now)}, ":rev": {"S": not_by}})


def absent_or_matching(now: int, *, if_match: str | None) -> Condition:
    """Whatever stands at the key may go: no live item but one at the revision, if one is named, and no mark."""
    if if_match is None:
        return unmarked()
    matches = f"attribute_not_exists({REV})" if if_match == UNREVISED else f"{REV} = :match"
    values = {":now": {"N": str(now)}} | ({} if if_match == UNREVISED else {":match": {"S": if_match}})
    return Condition(f"{_UNMARKED} AND (attribute_not_exists({PK}) OR {EXPIRES_AT} <= :now OR {matches})", values)


def live(now: int, *, if_match: str | None = None) -> Condition:
    """A live item stands at the key.

    Args:
        now: in epoch seconds.
        if_match: the revision it must be at; `UNREVISED` for an adopted item that has none yet.
    """
    terms = [f"attribute_exists({PK})", _UNMARKED, _LIVE]
    values = {":now": {"N": str(now)}}
    if if_match == UNREVISED:
        terms.append(f"attribute_not_exists({REV})")
    elif if_match is not None:
        terms.append(f"{REV} = :match")
        values[":match"] = {"S": if_match}
    return Condition(" AND ".join(terms), values)


def is_live(item: Mapping[str, Any] | None, now: int) -> bool:
    """Whether a stored item is there for readers. `now` is in epoch seconds."""
    if not item or MOVED_TO in item:
        return False
    return EXPIRES_AT not in item or float(item[EXPIRES_AT]["N"]) > now


def is_marker(item: Mapping[str, Any] | None) -> bool:
    """Whether what is stored only says that the item has another home now."""
    return item is not None and MOVED_TO in item


def moved_to(mark: Mapping[str, Any]) -> int:
    """The shard count under which a mark's item has its home."""
    return int(mark[MOVED_TO]["N"])


def refusal(
    failed: ConditionFailedError, *, name: str, now: int, if_match: str | None
) -> NotFoundError | AlreadyExistsError | RevisionMismatchError:
    """What the caller of a failed write is told, from the item that stood in its way.

    Args:
        failed: the failed condition.
        name: how the item is named in messages.
        now: in epoch seconds.
        if_match: the revision the caller named.
    """
    current = failed.item if is_live(failed.item, now) else None
    if if_match is not None:
        return mismatch(name, revision_in(current) if current else None)
    if current is None:
        return NotFoundError(f"{name} does not exist")
    return exists_already(name)


def exists_already(name: str) -> AlreadyExistsError:
    """The error of a create whose key has a live item."""
    return AlreadyExistsError(f"{name} exists already")


def mismatch(name: str, revision: str | None) -> RevisionMismatchError:
    """The error of a write that names another revision than the stored one; None if there is no live item."""
    state = "does not exist" if revision is None else f"is at revision {revision}"
    return RevisionMismatchError(f"{name} {state}; read it again before changing it", current=revision)
