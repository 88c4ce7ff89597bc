"""Growth by the size of items, 0.1 to 100 KB: the layer against botocore's low-level client, on the local engine."""

from collections.abc import Iterator
from typing import Any, Final

from botocore.session import Session

from dynashard import Collection
from dynashard.transport import connect
from dynashard_lab.bench.clients.interface import DIRECT, RAW
from dynashard_lab.bench.clients.layer import SETTINGS, opened
from dynashard_lab.bench.measure import Here, Limit, Row
from dynashard_lab.bench.rows.pages import wide
from dynashard_lab.bench.stored import KEYS, REGION, TABLE
from dynashard_lab.bench.world import World

TEXTS: Final = (100, 1_000, 10_000, 100_000)
"""Characters of the text of an item."""
_PAGE: Final = 10
_SHARDS: Final = 1


def rows(world: World) -> Iterator[Row]:
    """Yield get, put and a page of 10 for each size. The ratio must not grow with it."""
    transport = connect(world.engine_url, **SETTINGS)
    raw = Session().create_client(
        "dynamodb",
        region_name=REGION,
        endpoint_url=world.engine_url,
        aws_access_key_id=KEYS[0],
        aws_secret_access_key=KEYS[1],
    )
    model = wide(_SHARDS)
    records = opened(transport).collection(model)
    for text in TEXTS:
        items = [model(tenant_id=f"size{text}", id=f"{number:027d}", text="x" * text) for number in range(_PAGE)]
        records.batch_write(put=items)
        yield from _of_size(raw, records, items[0], text)
    transport.close()
    raw.close()


def _of_size(raw: Any, records: Collection[Any], item: Any, text: int) -> Iterator[Row]:
    partition = {"tenant_id": item.tenant_id}
    key, size = {**partition, "id": item.id}, f"{text / 1000:g} KB"
    query = {
        "TableName": TABLE,
        "KeyConditionExpression": "PK = :pk",
        "ExpressionAttributeValues": {":pk": {"S": f"wide{_SHARDS}.v1.Wide:{item.tenant_id}:0"}},
        "Limit": _PAGE,
    }
    wire = raw.query(**{**query, "Limit": 1})["Items"][0]
    stored = {name: wire[name] for name in ("PK", "SK")}
    for name, count, theirs, ours in (
        ("get an item", 1, lambda: raw.get_item(TableName=TABLE, Key=stored)["Item"], lambda: records.get(key)),
        (
            "put an item",
            1,
            lambda: raw.put_item(TableName=TABLE, Item=wire, ReturnValues="ALL_OLD")["Attributes"],
            lambda: records.replace(item),
        ),
        (
            f"list {_PAGE} items",
            _PAGE,
            lambda: raw.query(**query)["Items"],
            lambda: records.list(partition, limit=_PAGE).items,
        ),
    ):
        contenders = [Here(RAW, theirs), Here(DIRECT, ours)]
        yield Row(f"{name} of {size}", contenders, repeat=10, limits={DIRECT: Limit(1.0)}, items=count)
