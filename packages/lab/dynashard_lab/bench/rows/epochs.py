"""What a read by key costs where counts depend on the time of keys: the layer alone, on answers that are there at once.

Beside a request the difference would be lost, so the transport sends none.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from dynashard import Dynashard, Entity, Key, LeasedTopology, Registry, Shards, new_id
from dynashard.key_time import KSUID
from dynashard.runtime import SYSTEM
from dynashard.testing.one_by_one import OneByOne
from dynashard.topology import Epoch, EpochState
from dynashard.topology.records import encode, first_record
from dynashard.transport.interface import Resend, Wire
from dynashard_lab.bench.clients.layer import CURSOR_KEYS
from dynashard_lab.bench.measure import Here, Limit, Row
from dynashard_lab.bench.stored import TABLE, TENANT, TOPOLOGY

NAME: Final = "ping.v1.Ping"
SHARDS: Final = 16
EPOCHS: Final = (1, 5, 64)
"""A history has room for 64."""
SAME: Final = 1.03
_DAY: Final = 86_400.0
_LEASE: Final = 3_600.0


def rows() -> Iterator[Row]:
    """Yield the get of an item of the newest epoch."""
    contenders = [Here("calculated", _get("calculated", 1))]
    contenders += [Here(_label(epochs), _get("epochs", epochs)) for epochs in EPOCHS]
    limits = {_label(epochs): Limit(SAME) for epochs in EPOCHS}
    yield Row("get an item, the layer alone, by epochs", contenders, repeat=2_000, limits=limits, items=1)


def _label(epochs: int) -> str:
    return "1 epoch" if epochs == 1 else f"{epochs} epochs"


class _Answers(OneByOne):
    """Answers every read with the same item, and every read of the topology with the same record."""

    def __init__(self, record: Wire, item: Wire) -> None:
        self._record = {"Responses": {TOPOLOGY: [record]}}
        self._item = {"Item": item}

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        """See `Transport.call`."""
        del request, resend
        return self._item if operation == "GetItem" else self._record


def _get(placement: str, epochs: int) -> Callable[[], object]:
    """Return a get under a record with so many epochs, the newest of which has `SHARDS` shards."""

    class Ping(
        Entity,
        name=NAME,
        key=Key(partition="{tenant_id}", sort="{id}"),
        shards=Shards(SHARDS, placement=placement),
        registry=Registry(),
    ):
        tenant_id: str
        id: str = new_id()

    now = SYSTEM.clock()
    record = first_record(NAME, SHARDS, now=now, lease=_LEASE)
    if epochs > 1:
        begins = ["", *(KSUID.first(now - _DAY * (epochs - number)) for number in range(1, epochs))]
        counts = [*(1 + number % 8 for number in range(1, epochs)), SHARDS]
        history = (Epoch(*each, EpochState.CONFIRMED) for each in zip(begins, counts, strict=True))
        record = replace(record, epochs=tuple(history))
    key = {"tenant_id": TENANT, "id": KSUID.first(now - _DAY / 2)}
    stored = {"PK": f"{NAME}:{TENANT}:0", "SK": key["id"], "Type": NAME, "Rev": "r", **key}
    transport = _Answers(encode(record), {name: {"S": text} for name, text in stored.items()})
    topology = LeasedTopology(transport, TOPOLOGY, lease=_LEASE)
    pings = Dynashard(transport, table=TABLE, cursor_keys=CURSOR_KEYS, topology=topology).collection(Ping)
    return lambda: pings.get(key)
