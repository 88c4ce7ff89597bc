"""A retention that a release changes: what is stored keeps its expiry until the whole item is written again."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any

import pytest
from pydantic import Field

from dynashard import Dynashard, Entity, Key, Registry, Retention, declared_counts
from dynashard.transport import Transport, metered
from tests.recording import RecordingTransport

pytestmark = [pytest.mark.engine, pytest.mark.one_face]

AT = datetime(2126, 8, 15, tzinfo=UTC)
LATER = datetime(2999, 1, 1, tzinfo=UTC)
KEY = {"tenant": "abc", "id": "1"}


def kept(months: int) -> Any:
    """Return the class of one release."""

    class Kept(Entity, name="retained.v1.Kept", key=Key("{tenant}", "{id}"), expires="expires_at", registry=Registry()):
        tenant: str
        id: str
        at: datetime
        note: str = ""
        expires_at: Annotated[datetime | None, Retention("at", months=months), Field(validate_default=True)] = None

    return Kept


def test_a_patch_keeps_the_stored_expiry_and_a_put_counts_it_again(
    wire: Transport, create_table: Callable[[], str]
) -> None:
    table, longer, shorter = create_table(), kept(24), kept(12)
    db = Dynashard(
        wire, table=table, cursor_keys=["a key that signs cursors"], topology=declared_counts(topology_table=None)
    )

    def stored() -> datetime:
        [item] = wire.call("Scan", {"TableName": table, "ConsistentRead": True})["Items"]
        return datetime.fromtimestamp(int(item["ExpiresAt"]["N"]), UTC)

    db.collection(longer).create(longer(**KEY, at=AT))
    items = db.collection(shorter)

    assert items.get(KEY).expires_at == datetime(2127, 9, 1, tzinfo=UTC)
    items.update(KEY, set={"note": "changed"})
    assert stored() == datetime(2128, 9, 1, tzinfo=UTC)
    items.put(items.get(KEY))
    assert stored() == datetime(2127, 9, 1, tzinfo=UTC)
    db.collection(longer).put(db.collection(longer).get(KEY))
    assert stored() == datetime(2127, 9, 1, tzinfo=UTC)


def named(months: int) -> Any:
    """Return the class with a unique value of one release."""

    class Named(
        Entity,
        name="retained.v1.Named",
        key=Key("{tenant}", "{id}"),
        expires="expires_at",
        unique="mail",
        registry=Registry(),
    ):
        tenant: str
        id: str
        at: datetime
        mail: str
        expires_at: Annotated[datetime | None, Retention("at", months=months), Field(validate_default=True)] = None

    return Named


@pytest.mark.parametrize("over", [False, True], ids=["put", "put over"])
def test_a_put_over_an_item_that_was_read_counts_its_expiry_again(
    wire: Transport, create_table: Callable[[], str], *, over: bool
) -> None:
    table, longer, shorter = create_table(), named(24), named(12)
    db = Dynashard(
        wire, table=table, cursor_keys=["a key that signs cursors"], topology=declared_counts(topology_table=None)
    )
    db.collection(longer).create(longer(**KEY, at=AT, mail="ada@x.org"))
    items = db.collection(shorter)
    read = items.get(KEY)

    items.put(read.model_copy(update={"mail": "eve@x.org"}), over=read if over else None)

    rows = wire.call("Scan", {"TableName": table, "ConsistentRead": True})["Items"]
    assert [row["ExpiresAt"]["N"] for row in rows] == [f"{datetime(2127, 9, 1, tzinfo=UTC).timestamp():.0f}"] * 2


def test_a_put_over_an_item_that_was_read_removes_its_expiry(wire: Transport, create_table: Callable[[], str]) -> None:
    class Ending(Entity, name="retained.v1.Ending", key=Key("{id}"), expires="until", registry=Registry()):
        id: str
        until: datetime | None = None

    table = create_table()
    items = Dynashard(
        wire, table=table, cursor_keys=["a key that signs cursors"], topology=declared_counts(topology_table=None)
    ).collection(Ending)
    read = items.create(Ending(id="1", until=LATER))

    items.put(read.model_copy(update={"until": None}), over=read)

    [row] = wire.call("Scan", {"TableName": table, "ConsistentRead": True})["Items"]
    assert "ExpiresAt" not in row


def test_a_unique_value_stays_reserved_for_as_long_as_its_item_is_stored(
    wire: Transport, create_table: Callable[[], str]
) -> None:
    table, longer, shorter = create_table(), named(24), named(12)
    db = Dynashard(
        wire, table=table, cursor_keys=["a key that signs cursors"], topology=declared_counts(topology_table=None)
    )

    def expiries() -> set[str]:
        return {
            row["ExpiresAt"]["N"] for row in wire.call("Scan", {"TableName": table, "ConsistentRead": True})["Items"]
        }

    db.collection(longer).create(longer(**KEY, at=AT, mail="ada@x.org"))
    [stored] = expiries()
    items = db.collection(shorter)

    assert items.update(KEY, set={"mail": "eve@x.org"}).expires_at == datetime(2127, 9, 1, tzinfo=UTC)
    assert expiries() == {stored}
    items.update(KEY, set={"expires_at": LATER})
    assert expiries() == {f"{datetime(2127, 9, 1, tzinfo=UTC).timestamp():.0f}"}


def test_an_expiry_costs_nothing_and_is_counted_again_by_a_get_and_a_put(
    wire: Transport, create_table: Callable[[], str]
) -> None:
    shorter, recording = kept(12), RecordingTransport(wire)
    items = Dynashard(
        recording,
        table=create_table(),
        cursor_keys=["a key that signs cursors"],
        topology=declared_counts(topology_table=None),
    ).collection(shorter)

    with metered() as created:
        items.create(shorter(**KEY, at=AT))
    with metered() as again:
        items.put(items.get(KEY))

    assert recording.operations == ["PutItem", "GetItem", "UpdateItem"]
    assert (created.consumed.read_units, created.consumed.write_units) == (0, 1)
    assert (again.consumed.read_units, again.consumed.write_units) == (0.5, 1)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("handling", ["plain", "guarded", "exactly-once"])
@pytest.mark.parametrize(
    "change",
    [
        {"set": {"expires_at": datetime(2999, 1, 1, tzinfo=UTC)}},
        {"set": {"expires_at": None}},
        {"remove": ["expires_at"]},
    ],
    ids=["later", "never", "removed"],
)
def test_no_update_keeps_an_item_longer_than_its_retention(
    wire: Transport, create_table: Callable[[], str], change: dict[str, Any], handling: str
) -> None:
    table, model = create_table(), kept(12)
    items = Dynashard(
        wire, table=table, cursor_keys=["a key that signs cursors"], topology=declared_counts(topology_table=None)
    ).collection(model)
    earlier, last = datetime(2126, 9, 1, tzinfo=UTC), datetime(2127, 9, 1, tzinfo=UTC)
    items.create(model(**KEY, at=AT, expires_at=earlier))

    updated = items.update(KEY, **change, handling=handling)

    [stored] = wire.call("Scan", {"TableName": table, "ConsistentRead": True})["Items"]
    assert stored["ExpiresAt"] == {"N": str(int(last.timestamp()))}
    assert updated.expires_at == items.get(KEY).expires_at == last
