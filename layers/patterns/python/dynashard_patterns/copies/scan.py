"""All items of an entity, in whatever logical partition: a Scan of the table, several segments at a time."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from dynashard.entity import EntityDefinition
from dynashard.repository.conditions import is_live
from dynashard.repository.store import Store
from dynashard.schema import EXPIRES_AT, MOVED_TO, PK, SK, TYPE
from dynashard.transport.interface import Wire
from dynashard.transport.paging import pages
from dynashard.transport.paging import segments as scan_segments

SEGMENTS: Final = 4


def rows(
    store: Store, entity: EntityDefinition[Any], fields: Sequence[str], *, segments: int = SEGMENTS
) -> Iterator[dict[str, Any]]:
    """Some fields of every live item of an entity.

    Raises:
        ThrottledError: throttling outlasted the retry policy.

    Cost: a consistent read of the whole table, of all entities.
    """
    calls = scan_segments(_request(store, entity, fields), segments)
    for answer in pages(store.transport, *calls, pauses=store.retry_policy.pauses):
        for item in answer["Items"]:
            if is_live(item, store.now()):
                yield entity.decode_fields(item, fields)


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
