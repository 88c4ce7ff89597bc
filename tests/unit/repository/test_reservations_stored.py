"""What is reserved for a stored item goes by what is stored, not by what readers get of it."""

from datetime import UTC, datetime
from typing import Annotated, Self

import pytest
from pydantic import Field, model_validator

from dynashard import Entity, Key, Registry, Retention, definition
from dynashard.repository.reservations import expiry_of, fields_stored
from dynashard.schema import EXPIRES_AT

pytestmark = pytest.mark.unit


class Judged(
    Entity,
    name="reserved.v1.Judged",
    key=Key("{tenant}", "{id}"),
    expires="expires_at",
    unique="mail",
    registry=Registry(),
):
    """An entity whose validator sees all fields, so only the whole item shows what is reserved for it."""

    tenant: str
    id: str
    at: datetime
    mail: str
    expires_at: Annotated[datetime | None, Retention("at", months=12), Field(validate_default=True)] = None

    @model_validator(mode="after")
    def judged(self) -> Self:
        return self


def test_a_reservation_expires_as_its_item_is_stored_also_under_a_shorter_retention() -> None:
    entity, longer = definition(Judged), datetime(2128, 9, 1, tzinfo=UTC)
    item = Judged(tenant="abc", id="1", at=datetime(2126, 8, 15, tzinfo=UTC), mail="ada@x.org")
    key = entity.key_of(item)
    wire = {
        "PK": {"S": key.partition},
        "SK": {"S": key.sort},
        **entity.encode({**item.__dict__, "expires_at": longer}),
    }

    assert entity.decode(wire).expires_at == datetime(2127, 9, 1, tzinfo=UTC)
    assert expiry_of(entity, fields_stored(entity, wire)) == wire[EXPIRES_AT]
