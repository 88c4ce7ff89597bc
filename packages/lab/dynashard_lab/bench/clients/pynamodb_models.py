"""pynamodb's models, written as its documentation recommends.

Timestamps are text attributes, so that the model can read the items of the layer. This saves pynamodb the parsing.
"""

from functools import cached_property
from typing import Any

from pynamodb.attributes import NumberAttribute, UnicodeAttribute
from pynamodb.indexes import AllProjection, GlobalSecondaryIndex
from pynamodb.models import Model

from dynashard_lab.bench import stored
from dynashard_lab.bench.clients.threads import THREADS, Threads


def model_at(url: str) -> Any:
    """Return the model of a user, bound to a server."""

    class ByDepartment(GlobalSecondaryIndex[Any]):
        class Meta:
            index_name = stored.INDEX
            projection = AllProjection()

        GSI2PK = UnicodeAttribute(hash_key=True)
        GSI2SK = UnicodeAttribute(range_key=True)

    class PeerUser(Model):
        class Meta:
            table_name = stored.TABLE
            region = stored.REGION
            host = url
            aws_access_key_id = stored.KEYS[0]
            aws_secret_access_key = stored.KEYS[1]
            max_pool_connections = THREADS

        PK = UnicodeAttribute(hash_key=True)
        SK = UnicodeAttribute(range_key=True)
        tenant_id = UnicodeAttribute()
        id = UnicodeAttribute()
        email = UnicodeAttribute()
        display_name = UnicodeAttribute()
        manager_id = UnicodeAttribute()
        department = UnicodeAttribute()
        status = UnicodeAttribute()
        title = UnicodeAttribute()
        phone = UnicodeAttribute()
        logins = NumberAttribute()
        created_at = UnicodeAttribute()
        updated_at = UnicodeAttribute()
        ExpiresAt = NumberAttribute()
        Type = UnicodeAttribute()
        Rev = UnicodeAttribute()
        MovedTo = UnicodeAttribute(null=True)
        GSI1PK = UnicodeAttribute()
        GSI1SK = UnicodeAttribute()
        GSI2PK = UnicodeAttribute()
        GSI2SK = UnicodeAttribute()
        GSI3PK = UnicodeAttribute()
        GSI3SK = UnicodeAttribute()
        by_department = ByDepartment()

    return PeerUser


class PynamodbModels:
    """Models through pynamodb, which cannot return old values."""

    loop = None

    def __init__(self, url: str, shards: int) -> None:
        self._shards, self._threads, self._model = shards, Threads(), model_at(url)

    @cached_property
    def _item(self) -> Any:
        return self._model(**stored.plain(stored.user_item(0, 1)))

    @cached_property
    def _batch(self) -> list[Any]:
        return [self._model(**stored.plain(item)) for item in stored.batch(stored.BATCH)]

    @cached_property
    def _keys(self) -> list[tuple[str, str]]:
        return [(item["PK"]["S"], item["SK"]["S"]) for item in stored.batch(stored.PAGE)]

    def get(self) -> Any:
        key = stored.GET["Key"]
        return self._model.get(key["PK"]["S"], key["SK"]["S"])

    def put(self) -> Any:
        self._item.save(self._model.MovedTo.does_not_exist())
        return self._item

    def update(self) -> Any:
        model = self._model
        actions = [getattr(model, name).set(value) for name, value in stored.CHANGED.items()]
        self._item.update(actions, condition=model.PK.exists() & model.MovedTo.does_not_exist())
        return self._item

    def batch_write(self) -> int:
        with self._model.batch_write() as writing:
            for item in self._batch:
                writing.save(item)
        return len(self._batch)

    def batch_get(self) -> Any:
        return list(self._model.batch_get(self._keys))

    def page(self) -> Any:
        return list(self._model.query(stored.partition_of(0), limit=stored.PAGE))

    def index(self) -> Any:
        return list(self._model.by_department.query(stored.entries_of(0), limit=stored.PAGE))

    def three_fields(self) -> Any:
        found = self._model.query(stored.partition_of(0), limit=stored.PAGE, attributes_to_get=list(stored.FIELDS))
        return list(found)

    def fan_out(self) -> int:
        return self._threads.total(lambda shard: len(list(self._model.query(stored.partition_of(shard)))), self._shards)

    def scan(self) -> int:
        return sum(1 for shard in range(self._shards) for _ in self._model.query(stored.partition_of(shard)))

    def close(self) -> None:
        self._threads.close()
