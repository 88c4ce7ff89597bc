"""The layer on a transport: entities in and out, validated. `layer_direct` and `layer_sdk` choose the transport."""

from functools import cached_property
from typing import Any, Final

from dynashard import Collection, Dynashard, LeasedTopology
from dynashard.transport import Transport
from dynashard_lab.bench import stored
from dynashard_lab.bench.users import User, user, users_of

SETTINGS: dict[str, Any] = {
    "region": stored.REGION,
    "access_key": stored.KEYS[0],
    "secret_key": stored.KEYS[1],
    "max_connections": 64,
}
"""Of both transports."""
CURSOR_KEYS: Final = ("a secret of the benchmark",)


def opened(transport: Transport) -> Dynashard:
    """Return the layer on the table through `transport`, with leased counts as in a deployment."""
    topology = LeasedTopology(transport, stored.TOPOLOGY)
    return Dynashard(transport, table=stored.TABLE, cursor_keys=CURSOR_KEYS, topology=topology)


class Layer:
    """Collections of users on a transport, which is closed with it."""

    loop = None

    def __init__(self, transport: Transport, shards: int) -> None:
        self._transport, self._shards = transport, shards
        self._db = opened(transport)
        self._users: Collection[Any] = self._db.collection(User if shards == stored.SHARDS else users_of(shards))

    @cached_property
    def _with_attachments(self) -> Collection[Any]:
        from dynashard_lab.bench.attached import AttachedUser  # noqa: PLC0415 - no part of a cold start

        return self._db.collection(AttachedUser)

    @cached_property
    def _item(self) -> Any:
        return self._users.get(_key(1))

    @cached_property
    def _batch(self) -> list[Any]:
        return [user(number) for number in range(stored.BATCH)]

    @cached_property
    def _keys(self) -> list[dict[str, str]]:
        return [_key(number) for number in range(stored.PAGE)]

    def get(self) -> Any:
        return self._users.get(_key(1))

    def put(self) -> Any:
        return self._users.replace(self._item)

    def attached(self) -> Any:
        return self._with_attachments.get(_key_of(stored.ATTACHED))

    def update(self) -> Any:
        return self._users.update(_key(1), set={"display_name": stored.CHANGED["display_name"]})

    def batch_write(self) -> int:
        self._users.batch_write(put=self._batch, whole=True)
        return len(self._batch)

    def batch_get(self) -> Any:
        return self._users.batch_get(self._keys)

    def page(self) -> Any:
        return self._users.list({"tenant_id": stored.TENANT}, limit=stored.PAGE).items

    def index(self) -> Any:
        # The fields select the index.
        return self._users.list(tenant_id=stored.TENANT, department="engineering", limit=stored.PAGE).items

    def three_fields(self) -> Any:
        return self._users.list({"tenant_id": stored.TENANT}, limit=stored.PAGE, fields=stored.FIELDS).items

    def fan_out(self) -> int:
        return sum(1 for _ in self._users.scan({"tenant_id": stored.TENANT}, workers=min(self._shards, 64)))

    def scan(self) -> int:
        return sum(1 for _ in self._users.scan({"tenant_id": stored.TENANT}))

    def close(self) -> None:
        self._transport.close()


def _key(number: int) -> dict[str, str]:
    return _key_of(f"{stored.KSUID}{number:024d}")


def _key_of(identity: str) -> dict[str, str]:
    return {"tenant_id": stored.TENANT, "id": identity}
