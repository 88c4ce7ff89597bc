"""All items of an entity, in whatever logical partition: a Scan of the table, several segments at a time."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from dynashard.entity import EntityDefinition
from dynashard.errors import ThrottledError
from dynashard.repository.conditions import is_live
from dynashard.repository.store import Store
from dynashard.schema import EXPIRES_AT, MOVED_TO, PK, SK, TYPE
from dynashard.transport.interface import Call, Wire

SEGMENTS: Final = 4


def rows(
    store: Store, entity: EntityDefinition[Any], fields: Sequence[str], *, segments: int = SEGMENTS
) -> Iterator[dict[str, Any]]:
    """Some fields of every live item of an entity.

    Args:
        store: the table.
        entity: the entity.
        fields: which fields.
        segments: how many parts of the table are read at a time. At most one answer of each is held in memory.

    Raises:
        ThrottledError: throttling outlasted the retry policy.

    Cost: a consistent read of the whole table, of all entities.
    """
    asked = _request(store, entity, fields)
    begins: dict[int, Wire | None] = dict.fromkeys(range(segments))
    while begins:
        parts = list(begins)
        calls = [
            Call("Scan", {**asked, "Segment": part, "TotalSegments": segments, **_begin(begins[part])})
            for part in parts
        ]
        for part, answer in zip(parts, _answers(store, calls), strict=True):
            for item in answer["Items"]:
                if is_live(item, store.now()):
                    yield entity.decode_fields(item, fields)
            begins[part] = answer.get("LastEvaluatedKey")
            if begins[part] is None:
                del begins[part]


def _request(store: Store, entity: EntityDefinition[Any], fields: Sequence[str]) -> Wire:
    named = dict.fromkeys([PK, SK, EXPIRES_AT, *entity.attributes_of(fields)])
    names = {f"#{at}": name for at, name in enumerate(named)}
    return {
        "TableName": store.table,
        "ConsistentRead": True,
        "FilterExpression": f"#type = :type AND attribute_not_exists({MOVED_TO})",
        "ProjectionExpression": ", ".join(names),
        "ExpressionAttributeNames": {**names, "#type": TYPE},
        "ExpressionAttributeValues": {":type": {"S": entity.name}},
    }


def _begin(key: Wire | None) -> Wire:
    return {} if key is None else {"ExclusiveStartKey": key}


def _answers(store: Store, calls: Sequence[Call]) -> list[Wire]:
    pauses = store.retry_policy.pauses()
    while True:
        try:
            return store.transport.call_all(calls, concurrency=len(calls))
        except ThrottledError:
            if next(pauses, None) is None:
                raise
