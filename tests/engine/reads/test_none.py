"""Fields that are None although that is not their default, so that DynamoDB's null is stored."""

from typing import Any

import pytest
from pydantic import field_validator

from dynashard import Dynashard, Entity, Index, Key, Registry
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from tests.engine.reads.listing_world import CURSOR_KEYS

pytestmark = pytest.mark.engine


class Seat(
    Entity,
    name="none.v1.Seat",
    key=Key("{tenant}", "{id}"),
    indexes=[Index("GSI1", "by_row", partition="{tenant}", sort="{row:03d}")],
    registry=Registry(),
):
    tenant: str = "abc"
    id: str
    row: int = 1
    guest: int | None
    host: int | None = 7
    note: str | None = None
    name: str = "n"

    @field_validator("id", mode="before")
    @classmethod
    def _stripped(cls, value: Any) -> Any:
        return value.strip()


@pytest.fixture(scope="module")
def seats(transport: Transport, create_table: Any) -> Any:
    db = Dynashard(transport, table=create_table(), topology=DeclaredTopology(), cursor_keys=CURSOR_KEYS)
    seats = db.collection(Seat)
    seats.batch_write([Seat(id="1", guest=None, host=None), Seat(id="2", guest=0, host=0, note="")])
    return seats


@pytest.mark.parametrize("index", [None, "by_row"])
@pytest.mark.parametrize("field", ["guest", "host", "note"])
def test_none_is_no_value_whether_it_is_stored_or_not(seats: Any, field: str, index: str | None) -> None:
    def found(*, exists: bool) -> list[str]:
        return [each.id for each in seats.items(tenant="abc", index=index, filters={field: {"exists": exists}})]

    assert found(exists=True) == ["2"]
    assert found(exists=False) == ["1"]
    assert seats.count(tenant="abc", index=index, filters=[(field, "exists", False), ("name", "exists", True)]) == 1


def test_an_update_to_none_does_not_ask_the_validators_of_other_fields(seats: Any) -> None:
    seats.create(id="3", guest=3)

    assert seats.update("3", tenant="abc", guest=None).guest is None
    seats.delete("3", tenant="abc")
