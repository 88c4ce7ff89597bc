"""The direct transport against botocore's client, on a server that answers at once: only the client's CPU counts."""

from collections.abc import Iterator
from typing import Any, Final

from botocore import xform_name

from bench.canned import SHARDS
from bench.measure import Contender, Row
from bench.world import KEYS, REGION, World, canned_process
from dynashard.transport import Call, Transport
from dynashard_direct import connect

RAW: Final = "botocore low-level client"
SDK: Final = "transport on botocore"
DIRECT: Final = "direct transport"
_KEY: Final = {"PK": {"S": "user.v1.User:acme:0"}, "SK": {"S": "2Xk000000000000000000000001"}}
_ITEM: Final = {**_KEY, **{f"field_{number}": {"S": "a value of some length"} for number in range(12)}}


def _query(shard: int) -> dict[str, Any]:
    return {
        "TableName": "bench-table",
        "KeyConditionExpression": "PK = :pk",
        "ExpressionAttributeValues": {":pk": {"S": f"user.v1.User:acme:{shard}"}},
    }


def rows(where: World) -> Iterator[Row]:
    """Yield the rows of single requests and of a fan-out over shards."""
    requests = (
        ("GetItem", {"TableName": "bench-table", "Key": _KEY}, 100),
        ("PutItem", {"TableName": "bench-table", "Item": _ITEM}, 100),
        ("Query", _query(3), 15),
    )
    with canned_process(delay_ms=0.0) as url:
        raw, sdk = where.raw(url), where.transport(url)
        direct = connect(url, REGION, access_key=KEYS[0], secret_key=KEYS[1])
        for operation, request, repeat in requests:
            yield _row(operation, request, repeat, raw, (SDK, sdk), (DIRECT, direct))
        calls = [Call("Query", _query(shard)) for shard in range(SHARDS)]
        yield Row(
            f"{SHARDS} Queries at once",
            [
                Contender(RAW, lambda: [raw.query(**call.request) for call in calls]),
                Contender(SDK, lambda: sdk.call_all(calls)),
                Contender(DIRECT, lambda: direct.call_all(calls)),
            ],
            repeat=2,
        )
        direct.close()
        sdk.close()
        raw.close()


def _row(operation: str, request: dict[str, Any], repeat: int, raw: Any, *ours: tuple[str, Transport]) -> Row:
    method = getattr(raw, xform_name(operation))

    def contender(name: str, transport: Transport) -> Contender:
        return Contender(name, lambda: transport.call(operation, dict(request)))

    contenders = [Contender(RAW, lambda: method(**request)), *(contender(*each) for each in ours)]
    return Row(operation, contenders, repeat=repeat)
