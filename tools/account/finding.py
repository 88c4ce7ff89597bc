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


@dataclass(frozen=True, slots=True)
class Beginnings:
    """How the stored partition keys of an account begin."""

    whole: frozenset[str]
    """Keys that say nothing more."""
    divided: tuple[str, ...]
    """What goes before the rest of a key, with the character that ends the account's name."""

    def fit(self, key: str) -> bool:
        """Whether a stored partition key is the account's."""
        return key in self.whole or key.startswith(self.divided)


def beginnings(tenant: str) -> Beginnings:
    """How the stored partition keys of an account begin.

    Raises:
        CommandError: the name is none of an account; or the keys of an entity do not tell whose they are.
    """
    if not tenant or DEFAULT_SEPARATOR in tenant:
        raise CommandError(f"{tenant!r} names no account: a name is not empty and has no {DEFAULT_SEPARATOR!r}")
    whole: set[str] = set()
    divided: set[str] = set()
    for entity in map(definition, models()):
        start = f"{entity.prefix}{entity.separator}{tenant}" if entity.prefix else tenant
        whole.add(start)
        divided.add(f"{start}{_divider(entity)}")
        divided.update(f"{entity.name}~{name}:{tenant}{_divider(entity)}" for name in entity.detached)
    return Beginnings(frozenset(whole), tuple(sorted(divided)))


def _divider(entity: EntityDefinition[Any]) -> str:
    """What ends the account in an entity's keys, which no account's name holds that has such keys."""
    [first, *rest] = entity.partition.parts
    divider = str(rest[0])[:1] if rest else entity.separator
    if isinstance(first, TemplateField) and first.name == TENANT and divider in (DEFAULT_SEPARATOR, first.after[:1]):
        return divider
    raise CommandError(f"the keys of {entity.name} do not tell where {TENANT} ends: look after its items yourself")


def stored_keys(backend: Backend, tenant: str, scanned: Scanned) -> Iterator[Sequence[Wire]]:
    """The keys and types of all that is stored of an account, whatever it is: live, expired, moved, or a piece.

    Cost: 1 read unit for every 4 KB of the whole table.
    """
    mine = beginnings(tenant)
    request = {
        "ConsistentRead": True,
        "FilterExpression": f"contains({PK}, :tenant)",
        "ProjectionExpression": f"{PK}, {SK}, #type",
        "ExpressionAttributeNames": {"#type": TYPE},
        "ExpressionAttributeValues": {":tenant": {"S": tenant}},
    }
    for items in _pages(backend, request, scanned):
        yield [item for item in items if mine.fit(item[PK]["S"])]


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
