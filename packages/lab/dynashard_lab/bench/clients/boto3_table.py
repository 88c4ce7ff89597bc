"""boto3's Table: dictionaries of Python values in and out, numbers as `Decimal`."""

from functools import cached_property
from typing import Any

import boto3
from boto3.dynamodb.conditions import Key
from botocore.config import Config

from dynashard_lab.bench import stored
from dynashard_lab.bench.clients.threads import THREADS, Threads

_ITEM = stored.plain(stored.user_item(0, 1))
_UPDATE = {name: stored.UPDATE[name] for name in ("UpdateExpression", "ConditionExpression", "ReturnValues")}
_UPDATED = {f":{name}": value for name, value in stored.CHANGED.items()}
_ATTACHED = stored.key_of(stored.plain({"PK": {"S": stored.partition_of(0)}, "SK": {"S": stored.ATTACHED}}))
_OPTIONS = {name: stored.PUT[name] for name in ("ConditionExpression", "ReturnValues", "ReturnConsumedCapacity")}


class Boto3Table:
    """The resource of a table."""

    loop = None

    def __init__(self, url: str, shards: int) -> None:
        self._shards, self._threads = shards, Threads()
        self._resource: Any = boto3.resource(
            "dynamodb",
            region_name=stored.REGION,
            endpoint_url=url,
            aws_access_key_id=stored.KEYS[0],
            aws_secret_access_key=stored.KEYS[1],
            config=Config(max_pool_connections=THREADS),
        )
        self._table = self._resource.Table(stored.TABLE)

    @cached_property
    def _writes(self) -> dict[str, Any]:
        return {stored.TABLE: [{"PutRequest": {"Item": stored.plain(item)}} for item in stored.batch(stored.BATCH)]}

    @cached_property
    def _keys(self) -> dict[str, Any]:
        return {stored.TABLE: {"Keys": [stored.key_of(stored.plain(item)) for item in stored.batch(stored.PAGE)]}}

    def get(self) -> Any:
        return self._table.get_item(Key=stored.key_of(_ITEM), ReturnConsumedCapacity="TOTAL").get("Item")

    def put(self) -> Any:
        return self._table.put_item(Item=_ITEM, **_OPTIONS).get("Attributes")

    def attached(self) -> Any:
        return self._table.get_item(Key=_ATTACHED, ReturnConsumedCapacity="TOTAL").get("Item")

    def update(self) -> Any:
        updated = self._table.update_item(
            Key=stored.key_of(_ITEM), ExpressionAttributeValues=_UPDATED, ReturnConsumedCapacity="TOTAL", **_UPDATE
        )
        return updated.get("Attributes")

    def batch_write(self) -> int:
        return stored.BATCH - len(self._resource.batch_write_item(RequestItems=self._writes)["UnprocessedItems"])

    def batch_get(self) -> Any:
        return self._resource.batch_get_item(RequestItems=self._keys)["Responses"][stored.TABLE]

    def page(self) -> Any:
        return self._query(0, Limit=stored.PAGE)["Items"]

    def index(self) -> Any:
        condition = Key(f"{stored.INDEX}PK").eq(stored.entries_of(0))
        answer = self._table.query(
            IndexName=stored.INDEX,
            KeyConditionExpression=condition,
            Limit=stored.PAGE,
            ReturnConsumedCapacity="TOTAL",
        )
        return answer["Items"]

    def three_fields(self) -> Any:
        return self._query(0, Limit=stored.PAGE, ProjectionExpression=", ".join(stored.FIELDS))["Items"]

    def fan_out(self) -> int:
        return self._threads.total(lambda shard: len(self._query(shard)["Items"]), self._shards)

    def scan(self) -> int:
        return sum(self._count(shard) for shard in range(self._shards))

    def close(self) -> None:
        self._threads.close()
        self._resource.meta.client.close()

    def _query(self, shard: int, **options: Any) -> dict[str, Any]:
        condition = Key("PK").eq(stored.partition_of(shard))
        answer: dict[str, Any] = self._table.query(
            KeyConditionExpression=condition, ReturnConsumedCapacity="TOTAL", **options
        )
        return answer

    def _count(self, shard: int) -> int:
        page = self._query(shard)
        count = len(page["Items"])
        while "LastEvaluatedKey" in page:
            page = self._query(shard, ExclusiveStartKey=page["LastEvaluatedKey"])
            count += len(page["Items"])
        return count
