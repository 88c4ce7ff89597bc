"""pydynox's client without models, waiting and awaited: dictionaries of Python values in and out."""

from functools import cached_property
from typing import Any

from dynashard_lab.bench import stored
from dynashard_lab.bench.clients.awaiting import Awaiting
from dynashard_lab.bench.clients.pydynox_models import connected
from dynashard_lab.bench.clients.threads import Threads

_ITEM = stored.plain(stored.user_item(0, 1))
_PUT: dict[str, Any] = {
    "condition_expression": stored.UNMOVED,
    "return_values": "ALL_OLD",
    "return_values_on_condition_check_failure": True,
}

_UPDATE: dict[str, Any] = {
    "update_expression": stored.UPDATE["UpdateExpression"],
    "condition_expression": stored.UPDATE["ConditionExpression"],
    "expression_attribute_values": {f":{name}": value for name, value in stored.CHANGED.items()},
    "return_values": "ALL_NEW",
}
_ATTACHED = {"PK": stored.partition_of(0), "SK": stored.ATTACHED}
_INDEX: dict[str, Any] = {
    "table": stored.TABLE,
    "key_condition_expression": f"{stored.INDEX}PK = :pk",
    "expression_attribute_values": {":pk": stored.entries_of(0)},
    "index_name": stored.INDEX,
    "limit": stored.PAGE,
}


def _query(shard: int) -> dict[str, Any]:
    return {
        "table": stored.TABLE,
        "key_condition_expression": "PK = :pk",
        "expression_attribute_values": {":pk": stored.partition_of(shard)},
    }


class _Prepared:
    """What is written and read."""

    @cached_property
    def batch(self) -> list[Any]:
        return [stored.plain(item) for item in stored.batch(stored.BATCH)]

    @cached_property
    def keys(self) -> list[dict[str, Any]]:
        return [stored.key_of(stored.plain(item)) for item in stored.batch(stored.PAGE)]


class PydynoxDictionaries:
    """The client, waiting."""

    loop = None

    def __init__(self, url: str, shards: int) -> None:
        self._client, self._shards, self._prepared, self._threads = connected(url), shards, _Prepared(), Threads()

    def get(self) -> Any:
        return self._client.sync_get_item(stored.TABLE, stored.key_of(_ITEM))

    def put(self) -> Any:
        return self._client.sync_put_item(stored.TABLE, _ITEM, **_PUT)

    def attached(self) -> Any:
        return self._client.sync_get_item(stored.TABLE, _ATTACHED)

    def update(self) -> Any:
        return self._client.sync_update_item(stored.TABLE, stored.key_of(_ITEM), **_UPDATE)

    def batch_write(self) -> int:
        self._client.sync_batch_write(stored.TABLE, put_items=self._prepared.batch)
        return stored.BATCH

    def batch_get(self) -> Any:
        return self._client.sync_batch_get(stored.TABLE, self._prepared.keys)

    def page(self) -> Any:
        return list(self._client.sync_query(**_query(0), limit=stored.PAGE))

    def index(self) -> Any:
        return list(self._client.sync_query(**_INDEX))

    def three_fields(self) -> Any:
        fields = ", ".join(stored.FIELDS)
        return list(self._client.sync_query(**_query(0), limit=stored.PAGE, projection_expression=fields))

    def fan_out(self) -> int:
        return self._threads.total(self._count, self._shards)

    def scan(self) -> int:
        return sum(self._count(shard) for shard in range(self._shards))

    def close(self) -> None:
        self._threads.close()

    def _count(self, shard: int) -> int:
        return sum(1 for _ in self._client.sync_query(**_query(shard)))


class PydynoxDictionariesAsync(Awaiting):
    """The client, awaited."""

    def __init__(self, url: str, shards: int) -> None:
        super().__init__(shards)
        self._client, self._prepared = connected(url), _Prepared()

    async def get(self) -> Any:
        return await self._client.get_item(stored.TABLE, stored.key_of(_ITEM))

    async def put(self) -> Any:
        return await self._client.put_item(stored.TABLE, _ITEM, **_PUT)

    async def attached(self) -> Any:
        return await self._client.get_item(stored.TABLE, _ATTACHED)

    async def update(self) -> Any:
        return await self._client.update_item(stored.TABLE, stored.key_of(_ITEM), **_UPDATE)

    async def batch_write(self) -> int:
        await self._client.batch_write(stored.TABLE, put_items=self._prepared.batch)
        return stored.BATCH

    async def batch_get(self) -> Any:
        return await self._client.batch_get(stored.TABLE, self._prepared.keys)

    async def page(self) -> Any:
        return [item async for item in self._client.query(**_query(0), limit=stored.PAGE)]

    async def index(self) -> Any:
        return [item async for item in self._client.query(**_INDEX)]

    async def three_fields(self) -> Any:
        fields = ", ".join(stored.FIELDS)
        found = self._client.query(**_query(0), limit=stored.PAGE, projection_expression=fields)
        return [item async for item in found]

    async def fan_out(self) -> int:
        return await self.total(self._count)

    async def scan(self) -> int:
        return sum([await self._count(shard) for shard in range(self.shards)])

    async def _count(self, shard: int) -> int:
        count = 0
        async for _ in self._client.query(**_query(shard)):
            count += 1
        return count
