"""pydynox's models, waiting and awaited: a core in Rust under classes of Python.

Timestamps are text attributes, as in pynamodb's model.
"""

import logging
from functools import cached_property
from typing import Any

from pydynox import BatchWriter, DynamoDBClient, Model, ModelConfig, SyncBatchWriter
from pydynox.attributes import NumberAttribute, StringAttribute
from pydynox.indexes import GlobalSecondaryIndex

from dynashard_lab.bench import stored
from dynashard_lab.bench.clients.awaiting import Awaiting
from dynashard_lab.bench.clients.threads import Threads

_KEY = stored.key_of(stored.plain(stored.user_item(0, 1)))


def connected(url: str) -> Any:
    """Return pydynox's client of a server."""
    # On a busy machine it warns of each request that took more than 100 ms.
    logging.getLogger("pydynox").setLevel(logging.ERROR)
    return DynamoDBClient(region=stored.REGION, endpoint_url=url, access_key=stored.KEYS[0], secret_key=stored.KEYS[1])


def model_on(client: Any) -> Any:
    """Return the model of a user, bound to a client."""

    class PeerUser(Model):
        model_config = ModelConfig(table=stored.TABLE, client=client)
        PK = StringAttribute(partition_key=True)
        SK = StringAttribute(sort_key=True)
        tenant_id = StringAttribute()
        id = StringAttribute()
        email = StringAttribute()
        display_name = StringAttribute()
        manager_id = StringAttribute()
        department = StringAttribute()
        status = StringAttribute()
        title = StringAttribute()
        phone = StringAttribute()
        logins = NumberAttribute()
        created_at = StringAttribute()
        updated_at = StringAttribute()
        ExpiresAt = NumberAttribute()
        Type = StringAttribute()
        Rev = StringAttribute()
        MovedTo = StringAttribute()
        GSI1PK = StringAttribute()
        GSI1SK = StringAttribute()
        GSI2PK = StringAttribute()
        GSI2SK = StringAttribute()
        GSI3PK = StringAttribute()
        GSI3SK = StringAttribute()
        by_department = GlobalSecondaryIndex(stored.INDEX, partition_key="GSI2PK", sort_key="GSI2SK")

    return PeerUser


class _Made:
    """A model, and what is written through it."""

    def __init__(self, url: str) -> None:
        self.client = connected(url)
        self.model = model_on(self.client)

    @cached_property
    def item(self) -> Any:
        return self.model(**stored.plain(stored.user_item(0, 1)))

    @cached_property
    def batch(self) -> list[Any]:
        return [self.model(**stored.plain(item)) for item in stored.batch(stored.BATCH)]

    @cached_property
    def keys(self) -> list[dict[str, Any]]:
        return [stored.key_of(stored.plain(item)) for item in stored.batch(stored.PAGE)]


class PydynoxModels:
    """Models that wait. They cannot return old values."""

    loop = None

    def __init__(self, url: str, shards: int) -> None:
        self._made, self._shards, self._threads = _Made(url), shards, Threads()
        self._model = self._made.model

    def get(self) -> Any:
        return self._model.sync_get(**_KEY)

    def put(self) -> Any:
        self._made.item.sync_save(condition=self._model.MovedTo.not_exists(), full_replace=True)
        return self._made.item

    def update(self) -> Any:
        model = self._model
        self._made.item.sync_update(condition=model.PK.exists() & model.MovedTo.not_exists(), **stored.CHANGED)
        return self._made.item

    def batch_write(self) -> int:
        with SyncBatchWriter(self._made.client, stored.TABLE) as writing:
            for item in self._made.batch:
                writing.put(item.to_dict())
        return len(self._made.batch)

    def batch_get(self) -> Any:
        return self._model.sync_batch_get(self._made.keys)

    def page(self) -> Any:
        return list(self._model.sync_query(stored.partition_of(0), limit=stored.PAGE))

    def index(self) -> Any:
        return list(self._model.by_department.sync_query(GSI2PK=stored.entries_of(0), limit=stored.PAGE))

    def three_fields(self) -> Any:
        found = self._model.sync_query(
            stored.partition_of(0), limit=stored.PAGE, fields=list(stored.FIELDS), as_dict=True
        )
        return list(found)

    def fan_out(self) -> int:
        return self._threads.total(self._count, self._shards)

    def scan(self) -> int:
        return sum(self._count(shard) for shard in range(self._shards))

    def close(self) -> None:
        self._threads.close()

    def _count(self, shard: int) -> int:
        return sum(1 for _ in self._model.sync_query(stored.partition_of(shard)))


class PydynoxModelsAsync(Awaiting):
    """Models that are awaited."""

    def __init__(self, url: str, shards: int) -> None:
        super().__init__(shards)
        self._made = _Made(url)
        self._model = self._made.model

    async def get(self) -> Any:
        return await self._model.get(**_KEY)

    async def put(self) -> Any:
        await self._made.item.save(condition=self._model.MovedTo.not_exists(), full_replace=True)
        return self._made.item

    async def update(self) -> Any:
        model = self._model
        await self._made.item.update(condition=model.PK.exists() & model.MovedTo.not_exists(), **stored.CHANGED)
        return self._made.item

    async def batch_write(self) -> int:
        async with BatchWriter(self._made.client, stored.TABLE) as writing:
            for item in self._made.batch:
                writing.put(item.to_dict())
        return len(self._made.batch)

    async def batch_get(self) -> Any:
        return await self._model.batch_get(self._made.keys)

    async def page(self) -> Any:
        return [item async for item in self._model.query(stored.partition_of(0), limit=stored.PAGE)]

    async def index(self) -> Any:
        found = self._model.by_department.query(GSI2PK=stored.entries_of(0), limit=stored.PAGE)
        return [item async for item in found]

    async def three_fields(self) -> Any:
        found = self._model.query(stored.partition_of(0), limit=stored.PAGE, fields=list(stored.FIELDS), as_dict=True)
        return [item async for item in found]

    async def fan_out(self) -> int:
        return await self.total(self._count)

    async def scan(self) -> int:
        return sum([await self._count(shard) for shard in range(self.shards)])

    async def _count(self, shard: int) -> int:
        count = 0
        async for _ in self._model.query(stored.partition_of(shard)):
            count += 1
        return count
