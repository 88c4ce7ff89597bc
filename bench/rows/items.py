"""Single items and batches, as entities through the repository, on the local engine."""

from collections.abc import Iterator
from typing import Any, Final

from bench.measure import Contender, Row
from bench.peer import peer_item, peer_model
from bench.users import User, user
from bench.world import TABLE, World
from dynashard import Collection

RAW: Final = "botocore, typed dictionaries"
OURS: Final = "repository, entities"
PEER: Final = "pynamodb, models"
BATCH: Final = 25
ELSEWHERE: Final = "pynamodb:acme"


def rows(world: World) -> Iterator[Row]:
    """Yield get, put and create of one item, and a batch of 25 puts. The raw client stores the same bytes."""
    raw, transport, model = world.raw(), world.transport(), peer_model(world)
    users = world.db(transport).collection(User)
    stored = users.create(user(1))
    key = {"tenant_id": stored.tenant_id, "id": stored.id}
    wire = _wire(raw, stored)
    place = {name: wire[name] for name in ("PK", "SK")}
    peer = peer_item(model, wire, partition=ELSEWHERE)
    peer.save()

    yield Row(
        "get an item",
        [
            Contender(RAW, lambda: raw.get_item(TableName=TABLE, Key=place)["Item"]),
            Contender(OURS, lambda: users.get(key)),
            Contender(PEER, lambda: model.get(ELSEWHERE, stored.id)),
        ],
        repeat=60,
        limits={OURS: 1.0},
    )
    yield Row(
        "put an item that was read before",
        [
            Contender(RAW, lambda: raw.put_item(TableName=TABLE, Item=wire)),
            Contender(OURS, lambda: users.replace(stored)),
            Contender(PEER, peer.save),
        ],
        repeat=60,
        limits={OURS: 1.0},
    )
    yield _create(raw, users, wire)
    yield _batch(raw, users, model, wire)
    transport.close()
    raw.close()


def _wire(raw: Any, stored: User) -> dict[str, Any]:
    """Return the stored item, read through its index."""
    found: dict[str, Any] = raw.query(
        TableName=TABLE,
        IndexName="GSI1",
        KeyConditionExpression="GSI1PK = :pk AND GSI1SK = :sk",
        ExpressionAttributeValues={":pk": {"S": f"user.v1.User:{stored.tenant_id}"}, ":sk": {"S": stored.email}},
    )["Items"][0]
    return found


def _create(raw: Any, users: Collection[User], wire: dict[str, Any]) -> Row:
    numbers = iter(range(1000, 10**9))

    def create_raw() -> None:
        sort = {"S": f"raw{next(numbers)}"}
        raw.put_item(TableName=TABLE, Item={**wire, "SK": sort}, ConditionExpression="attribute_not_exists(PK)")

    return Row(
        "create an item under a condition",
        [Contender(RAW, create_raw), Contender(OURS, lambda: users.create(user(next(numbers))))],
        repeat=60,
    )


def _batch(raw: Any, users: Collection[User], model: Any, wire: dict[str, Any]) -> Row:
    items = [user(number) for number in range(BATCH)]
    wires = [{**wire, "SK": {"S": item.id}} for item in items]
    puts = {"RequestItems": {TABLE: [{"PutRequest": {"Item": each}} for each in wires]}}
    peers = [peer_item(model, each, partition=ELSEWHERE) for each in wires]

    def save_peers() -> None:
        with model.batch_write() as batch:
            for peer in peers:
                batch.save(peer)

    return Row(
        f"put a batch of {BATCH}",
        [
            Contender(RAW, lambda: raw.batch_write_item(**puts)),
            Contender(OURS, lambda: users.batch_write(put=items)),
            Contender(PEER, save_peers),
        ],
        repeat=10,
    )
