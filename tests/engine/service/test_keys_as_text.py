"""Keys of times, days and UUIDs that are given as texts, as JSON has them: every text of one value names one item."""

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from uuid import UUID, uuid4

import pytest

from dynashard import Collection, Delete, Dynashard, Entity, Index, InputError, Key, Registry, Update
from dynashard.transport import Transport

pytestmark = pytest.mark.engine

AT = datetime(2026, 11, 28, 12, tzinfo=UTC)
ID = UUID("12345678-1234-7234-8234-1234567890ab")


class Visit(
    Entity,
    name="astext.v1.Visit",
    key=Key("{site}:{day}", "{at}#{id}"),
    indexes=[Index("GSI1", "by_seen", partition="{site}:{seen}", sort="{id}")],
    registry=Registry(),
):
    site: str
    day: date
    at: datetime
    id: UUID
    seen: date | None = None
    note: str = ""


@pytest.fixture
def db(wire: Transport, local_table: str, topology_table: str) -> Dynashard:
    return Dynashard(wire, table=local_table, topology_table=topology_table, cursor_keys=["a secret of 16 bytes"])


@pytest.fixture
def visits(db: Dynashard) -> Collection[Visit]:
    return db.collection(Visit)


@pytest.fixture
def visit(visits: Collection[Visit]) -> Visit:
    return visits.create(Visit(site=uuid4().hex, day=AT.date(), at=AT, id=ID, seen=AT.date()))


TEXTS: list[dict[str, Any]] = [
    {"day": "2026-11-28", "at": "2026-11-28T12:00:00Z", "id": str(ID)},
    {"day": AT.date(), "at": "2026-11-28T13:00:00+01:00", "id": str(ID).upper()},
    {"day": datetime(2026, 11, 28, tzinfo=UTC), "at": "2026-11-28 12:00:00.000Z", "id": ID.hex},
    {"day": AT.date(), "at": AT.astimezone(timezone(timedelta(hours=5))), "id": f"{{{ID}}}"},
]


@pytest.mark.parametrize("texts", TEXTS)
def test_each_text_of_a_key_names_the_item(
    db: Dynashard, visits: Collection[Visit], visit: Visit, texts: dict[str, Any]
) -> None:
    key = {"site": visit.site, **texts}

    assert visits.get(key) == visits.get(**key) == visits.batch_get([key])[0] == visit
    assert visits.exists(key)
    assert visits.update(key, note="seen").note == "seen"
    db.transact(Update(Visit, key, set={"note": "twice"}))
    assert [each.note for each in visits.list(key)] == ["twice"]
    assert [each.note for each in visits.list([{"site": visit.site, "day": texts["day"]}])] == ["twice"]
    assert [each.note for each in visits.list(site=visit.site, seen=texts["day"])] == ["twice"]
    db.transact(Delete(Visit, key))
    assert visits.find(key, consistent=True) is None


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"day": AT}, "day: Datetimes provided to dates should have zero time"),
        ({"day": "yesterday"}, "day: Input should be a valid date"),
        ({"at": "noon"}, "at: Input should be a valid datetime"),
        ({"at": "2026-11-28T12:00:00"}, "at: a time in a key needs a time zone"),
        ({"at": None}, "at is None, which cannot be part of a key"),
        ({"id": "first"}, "id: Input should be a valid UUID"),
    ],
)
def test_a_value_that_no_key_can_have_is_refused(visits: Collection[Visit], wrong: dict[str, Any], reason: str) -> None:
    key = {"site": "oslo", "day": AT.date(), "at": AT, "id": ID, **wrong}

    for call in (visits.find, visits.list):
        with pytest.raises(InputError) as refused:
            call(key)
        assert reason in str(refused.value)
