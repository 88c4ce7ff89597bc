"""aiodynamo on aiohttp, which its documentation recommends: dictionaries of Python values in and out."""

from functools import cached_property
from typing import Any

from aiodynamo.client import Client
from aiodynamo.credentials import Key, StaticCredentials
from aiodynamo.expressions import F, HashKey
from aiodynamo.http.aiohttp import AIOHTTP
from aiodynamo.models import BatchGetRequest, BatchWriteRequest, ReturnValues
from aiohttp import ClientSession
from yarl import URL

from dynashard_lab.bench import stored
from dynashard_lab.bench.clients.awaiting import Awaiting

_ATTACHED = {"PK": stored.partition_of(0), "SK": stored.ATTACHED}
_ITEM = stored.plain(stored.user_item(0, 1))


class Aiodynamo(Awaiting):
    """The client, which is only awaited."""

    def __init__(self, url: str, shards: int) -> None:
        super().__init__(shards)
        self._session = self.loop.run_until_complete(_session())
        self._client: Any = Client(
            AIOHTTP(self._session), StaticCredentials(Key(*stored.KEYS)), stored.REGION, URL(url)
        )

    @cached_property
    def _writes(self) -> Any:
        return BatchWriteRequest(items_to_put=[stored.plain(item) for item in stored.batch(stored.BATCH)])

    @cached_property
    def _keys(self) -> Any:
        return BatchGetRequest(keys=[stored.key_of(stored.plain(item)) for item in stored.batch(stored.PAGE)])

    async def get(self) -> Any:
        return await self._client.get_item(stored.TABLE, stored.key_of(_ITEM))

    async def put(self) -> Any:
        unmoved = F("MovedTo").does_not_exist()
        return await self._client.put_item(stored.TABLE, _ITEM, return_values=ReturnValues.all_old, condition=unmoved)

    async def attached(self) -> Any:
        return await self._client.get_item(stored.TABLE, _ATTACHED)

    async def update(self) -> Any:
        name, at, revision = (F(name).set(value) for name, value in stored.CHANGED.items())
        return await self._client.update_item(
            stored.TABLE,
            stored.key_of(_ITEM),
            name & at & revision,
            return_values=ReturnValues.all_new,
            condition=F("PK").exists() & F("MovedTo").does_not_exist(),
        )

    async def batch_write(self) -> int:
        return stored.BATCH - len(await self._client.batch_write({stored.TABLE: self._writes}))

    async def batch_get(self) -> Any:
        return (await self._client.batch_get({stored.TABLE: self._keys})).items[stored.TABLE]

    async def page(self) -> Any:
        return (await self._query(0, limit=stored.PAGE)).items

    async def index(self) -> Any:
        entries = HashKey(f"{stored.INDEX}PK", stored.entries_of(0))
        found = await self._client.query_single_page(stored.TABLE, entries, index=stored.INDEX, limit=stored.PAGE)
        return found.items

    async def three_fields(self) -> Any:
        first, second, third = (F(name) for name in stored.FIELDS)
        return (await self._query(0, limit=stored.PAGE, projection=first & second & third)).items

    async def fan_out(self) -> int:
        return await self.total(self._count)

    async def scan(self) -> int:
        return sum([await self._count(shard) for shard in range(self.shards)])

    def close(self) -> None:
        self.loop.run_until_complete(self._session.close())
        super().close()

    def _query(self, shard: int, **options: Any) -> Any:
        return self._client.query_single_page(stored.TABLE, HashKey("PK", stored.partition_of(shard)), **options)

    async def _count(self, shard: int) -> int:
        page = await self._query(shard)
        count = len(page.items)
        while page.last_evaluated_key:
            page = await self._query(shard, start_key=page.last_evaluated_key)
            count += len(page.items)
        return count


async def _session() -> Any:
    return ClientSession()
