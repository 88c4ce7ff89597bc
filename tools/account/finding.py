"""Which stored items are an account's: by one reading of the table, several parts at a time.

An account's items are in many logical partitions, some of which only the items themselves tell: one a user, one
an incident, one a day. Each of their keys begins with the account, so that a stored key alone tells whose it is.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dynashard import EntityDefinition, Patience, definition
from dynashard.entity.declaration import DEFAULT_SEPARATOR
from dynashard.errors import ThrottledError
from dynashard.hosting.documents import TENANT
from dynashard.keys import TemplateField
from dynashard.repository.conditions import is_live
from dynashard.schema import EXPIRES_AT, MOVED_TO, PK, SK, TYPE
from dynashard.transport.interface import Call, Wire
from tools.connection import Backend
from tools.entities import models
from tools.failure import CommandError

SEGMENTS: Final = 8

Scanned = Callable[[int], None]
"""Told how many more stored items were looked at."""


@dataclass(frozen=True, slots=True)
class Partition:
    """A logical partition of an account: of which entity, and its fields."""

    entity: EntityDefinition[Any]
    fields: Mapping[str, Any]


def beginnings(tenant: str) -> tuple[str, ...]:
    """How the stored partition keys of an account begin; a key is one of these, or one and a colon and more.

    Raises:
        CommandError: the name is none of an account; or an entity's partitions do not begin with the account.
    """
    if not tenant or DEFAULT_SEPARATOR in tenant:
        raise CommandError(f"{tenant!r} names no account: a name is not empty and has no {DEFAULT_SEPARATOR!r}")
    found: list[str] = []
    for entity in map(definition, models()):
        [first, *rest] = entity.partition.parts
        parted = not rest or str(rest[0]).startswith(DEFAULT_SEPARATOR)
        if not (isinstance(first, TemplateField) and first.name == TENANT and parted):
            raise CommandError(f"the partitions of {entity.name} do not begin with {TENANT}: look after them yourself")
        found.append(f"{entity.prefix}{entity.separator}{tenant}" if entity.prefix else tenant)
        found += [f"{entity.name}~{name}{DEFAULT_SEPARATOR}{tenant}" for name in entity.detached]
    return tuple(dict.fromkeys(found))


def stored_keys(backend: Backend, tenant: str, scanned: Scanned) -> Iterator[Sequence[Wire]]:
    """The keys and types of all that is stored of an account, whatever it is: live, expired, moved, or a piece.

    Cost: 1 read unit for every 4 KB of the whole table.
    """
    starts = beginnings(tenant)
    exact, below = frozenset(starts), tuple(f"{start}{DEFAULT_SEPARATOR}" for start in starts)
    request = {
        "ConsistentRead": True,
        "FilterExpression": f"contains({PK}, :tenant)",
        "ProjectionExpression": f"{PK}, {SK}, #type",
        "ExpressionAttributeNames": {"#type": TYPE},
        "ExpressionAttributeValues": {":tenant": {"S": tenant}},
    }
    for items in _pages(backend, request, scanned):
        yield [item for item in items if item[PK]["S"] in exact or item[PK]["S"].startswith(below)]


def partitions(backend: Backend, tenant: str, now: float, scanned: Scanned) -> list[Partition]:
    """The logical partitions that hold live items of an account, in the order of the domain's entities.

    Cost: 1 read unit for every 4 KB of the whole table.
    """
    entities = {entity.name: entity for entity in map(definition, models())}
    wanted = dict.fromkeys(name for entity in entities.values() for name in entity.partition_fields)
    names = {f"#f{at}": name for at, name in enumerate(wanted)}
    request = {
        "ConsistentRead": True,
        "FilterExpression": f"#tenant = :tenant AND attribute_not_exists({MOVED_TO})",
        "ProjectionExpression": ", ".join((PK, SK, EXPIRES_AT, "#type", *names)),
        "ExpressionAttributeNames": {"#type": TYPE, "#tenant": TENANT, **names},
        "ExpressionAttributeValues": {":tenant": {"S": tenant}},
    }
    found: dict[tuple[str, str], Partition] = {}
    for items in _pages(backend, request, scanned):
        for item in items:
            entity = entities.get(item.get(TYPE, {}).get("S", ""))
            if entity is None or not is_live(item, int(now)):
                continue
            fields = entity.decode_fields(item, entity.partition_fields)
            found.setdefault((entity.name, entity.logical_partition(fields)), Partition(entity, fields))
    order = list(entities)
    return sorted(found.values(), key=lambda each: (order.index(each.entity.name), str(each.fields)))


def _pages(backend: Backend, request: Mapping[str, Any], scanned: Scanned) -> Iterator[list[Wire]]:
    begins: dict[int, Mapping[str, Any]] = {part: {} for part in range(SEGMENTS)}
    asked = {"TableName": backend.table, "TotalSegments": SEGMENTS, **request}
    while begins:
        calls = [Call("Scan", {**asked, "Segment": part, **begin}) for part, begin in begins.items()]
        for part, answer in zip(list(begins), _patiently(backend, calls), strict=True):
            scanned(int(answer.get("ScannedCount", 0)))
            yield answer["Items"]
            if "LastEvaluatedKey" in answer:
                begins[part] = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}
            else:
                del begins[part]


def _patiently(backend: Backend, calls: Sequence[Call]) -> list[Wire]:
    pauses = Patience().pauses()
    while True:
        try:
            return backend.transport.call_all(calls, concurrency=SEGMENTS)
        except ThrottledError:
            if next(pauses, None) is None:
                raise
