"""Botocore's low-level client with default settings: typed dictionaries in and out."""

from functools import cached_property
from typing import Any

from botocore.config import Config
from botocore.session import Session

from dynashard_lab.bench import stored
from dynashard_lab.bench.clients.threads import THREADS, Threads


class Botocore:
    """The baseline."""

    loop = None

    def __init__(self, url: str, shards: int) -> None:
        self._shards, self._threads = shards, Threads()
        self._client: Any = Session().create_client(
            "dynamodb",
            region_name=stored.REGION,
            endpoint_url=url,
            aws_access_key_id=stored.KEYS[0],
            aws_secret_access_key=stored.KEYS[1],
            config=Config(max_pool_connections=THREADS),
        )

    @cached_property
    def _writes(self) -> dict[str, Any]:
        return stored.batch_write()

    @cached_property
    def _keys(self) -> dict[str, Any]:
        return stored.batch_get()

    def get(self) -> Any:
        return self._client.get_item(**stored.GET).get("Item")

    def put(self) -> Any:
        return self._client.put_item(**stored.PUT).get("Attributes")

    def attached(self) -> Any:
        return self._client.get_item(**stored.ATTACHED_GET).get("Item")

    def update(self) -> Any:
        return self._client.update_item(**stored.UPDATE).get("Attributes")

    def batch_write(self) -> int:
        return stored.BATCH - len(self._client.batch_write_item(**self._writes)["UnprocessedItems"])

    def batch_get(self) -> Any:
        return self._client.batch_get_item(**self._keys)["Responses"][stored.TABLE]

    def page(self) -> Any:
        return self._client.query(**stored.PAGE_QUERY)["Items"]

    def index(self) -> Any:
        return self._client.query(**stored.INDEX_QUERY)["Items"]

    def three_fields(self) -> Any:
        return self._client.query(**stored.FIELDS_QUERY)["Items"]

    def fan_out(self) -> int:
        return self._threads.total(
            lambda shard: len(self._client.query(**stored.query_of(shard))["Items"]), self._shards
        )

    def scan(self) -> int:
        paginator = self._client.get_paginator("query")
        pages = (page for shard in range(self._shards) for page in paginator.paginate(**stored.query_of(shard)))
        return sum(len(page["Items"]) for page in pages)

    def close(self) -> None:
        self._threads.close()
        self._client.close()
