"""The transports without the layer: dictionaries of the wire in and out, on a server that answers at once."""

from collections.abc import Iterator
from typing import Any, Final

from botocore import xform_name
from botocore.session import Session

from dynashard.transport import Call, Transport, connect
from dynashard_lab.bench import stored
from dynashard_lab.bench.clients.floor import Connection, request_of
from dynashard_lab.bench.clients.interface import FLOOR, RAW
from dynashard_lab.bench.measure import Here, Row
from dynashard_lab.bench.world import World, canned_process

SDK: Final = "transport on botocore"
DIRECT: Final = "direct transport"
_REQUESTS: Final = (
    ("GetItem", stored.GET, 50),
    ("PutItem", stored.PUT, 50),
    (f"Query of {stored.PAGE}", stored.PAGE_QUERY, 8),
    (f"BatchWriteItem of {stored.BATCH}", stored.batch_write(), 8),
    (f"BatchGetItem of {stored.PAGE}", stored.batch_get(), 8),
)


def rows(world: World) -> Iterator[Row]:
    """Yield the rows of single requests and of a fan-out over shards."""
    del world
    keys: dict[str, Any] = {"access_key": stored.KEYS[0], "secret_key": stored.KEYS[1]}
    with canned_process() as url:
        raw = _raw(url)
        transports: dict[str, Transport] = {
            SDK: connect(url, stored.REGION, transport="botocore", **keys),
            DIRECT: connect(url, stored.REGION, **keys),
        }
        floor = Connection(url)
        for name, request, repeat in _REQUESTS:
            yield _row((name, request, repeat), raw, transports, floor)
        yield _fan_out(raw, transports)
        for transport in transports.values():
            transport.close()
        floor.socket.close()
        raw.close()


def _raw(url: str) -> Any:
    return Session().create_client(
        "dynamodb",
        region_name=stored.REGION,
        endpoint_url=url,
        aws_access_key_id=stored.KEYS[0],
        aws_secret_access_key=stored.KEYS[1],
    )


def _row(work: tuple[str, dict[str, Any], int], raw: Any, transports: dict[str, Transport], floor: Connection) -> Row:
    name, request, repeat = work
    operation = name.partition(" ")[0]
    method, prepared = getattr(raw, xform_name(operation)), request_of(operation, request)

    def ours(label: str, transport: Transport) -> Here:
        return Here(label, lambda: transport.call(operation, request))

    def least() -> None:
        floor.send(prepared)
        while not floor.receive():
            pass

    contenders = [
        Here(RAW, lambda: method(**request)),
        *(ours(*each) for each in transports.items()),
        Here(FLOOR, least),
    ]
    return Row(name, contenders, repeat=repeat)


def _fan_out(raw: Any, transports: dict[str, Transport]) -> Row:
    calls = [Call("Query", stored.query_of(shard)) for shard in range(stored.SHARDS)]

    def ours(label: str, transport: Transport) -> Here:
        return Here(label, lambda: transport.call_all(calls))

    def one_by_one() -> None:
        for call in calls:
            raw.query(**call.request)

    contenders = [Here(f"{RAW}, one by one", one_by_one), *(ours(*each) for each in transports.items())]
    return Row(f"{stored.SHARDS} Queries at once", contenders, repeat=2)
