"""Judges what is stored under the keys of an entity before anything about it is compared or repaired."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from dynashard.entity import EntityDefinition, Undecodable, judged, marked_count, marker_problem, unrevised_problem
from dynashard.repository.conditions import is_live, is_marker
from dynashard.resharding.scope import Family
from dynashard.schema import INDEX_SLOTS, MOVED_TO, PK, SK, TYPE, index_pk, index_sk
from dynashard.transport.interface import Wire
from dynashard_tools.verify.findings import Finding, Kind, unreadable
from dynashard_tools.verify.stored import key_text

_BARE: Final = frozenset((PK, SK, MOVED_TO, *(name(slot) for slot in INDEX_SLOTS for name in (index_pk, index_sk))))
"""What a marker without a type may have."""


class Judged(NamedTuple):
    """The entity of a stored item or marker, None if nothing of it may be compared; and what is wrong with it."""

    entity: EntityDefinition[Any] | None
    findings: tuple[Finding, ...] = ()


def judge(family: Family, item: Wire, now: int) -> Judged:
    """Judge a stored item or marker of a family."""
    member = family.member_of(item)
    if is_marker(item):
        foreign = _foreign(family, member, item)
        return Judged(None, (foreign,)) if foreign else _marker(member or family.members[0], item)
    if not is_live(item, now):
        return Judged(member)
    findings = tuple(_item(family, member, item))
    return Judged(None if findings else member, findings)


def _marker(entity: EntityDefinition[Any], item: Wire) -> Judged:
    count = marked_count(item)
    problem = marker_problem(item)
    if count is not None and entity.rule.powers_of_two and count & (count - 1):
        problem = f"it points to {count} shards, which is not a power of two"
    if problem is None:
        return Judged(entity)
    detail = f"{problem}: remove the row if nothing needs it"
    return Judged(None, (Finding(Kind.DAMAGED_MARKER, key_text(item), detail),))


def _foreign(family: Family, member: EntityDefinition[Any] | None, item: Wire) -> Finding | None:
    """Return what shows that another program has written a row that looks like a marker.

    A marker has what its item had, or its keys alone if a create has left it.
    """
    if TYPE in item:
        if member is not None:
            return None
        return Finding(Kind.UNREADABLE, key_text(item), _unknown_type(item))
    if family.adopts or item.keys() <= _BARE:
        return None
    detail = f"it has {MOVED_TO} and fields, but no {TYPE}: remove the row if nothing needs it"
    return Finding(Kind.UNREVISED, key_text(item), detail)


def _unknown_type(item: Wire) -> str:
    return f"{TYPE} is {item.get(TYPE)}, which no entity of its keys has"


def _item(family: Family, member: EntityDefinition[Any] | None, item: Wire) -> Iterator[Finding]:
    """What is wrong with a live item, so that it may not be touched."""
    if member is None:
        yield Finding(Kind.UNREADABLE, key_text(item), _unknown_type(item))
        return
    verdict = judged(member.decode, item)
    if isinstance(verdict, Undecodable):
        yield unreadable(verdict)
    elif not family.adopts and (problem := unrevised_problem(item)):
        yield Finding(Kind.UNREVISED, key_text(item), problem)
