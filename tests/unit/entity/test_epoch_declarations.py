"""Which entities may be placed by epochs: those whose sort keys begin with their time."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Annotated, Any
from uuid import UUID

import pytest
from pydantic import Field

from dynashard import Entity, Key, Registry, Shards, definition, new_id
from dynashard.entity import EntityDefinition, Ulid
from dynashard.errors import DeclarationError
from tests.declaring import new_class

pytestmark = pytest.mark.unit


def declared(
    sort: str, fields: Mapping[str, Any], *, registry: Registry | None = None, name: str = "time.v1.Thing"
) -> EntityDefinition[Any]:
    """Declare an entity with this sort key and these fields, annotated or with a default."""
    annotations = {field: kind[0] if isinstance(kind, tuple) else kind for field, kind in fields.items()}
    defaults = {field: kind[1] for field, kind in fields.items() if isinstance(kind, tuple)}
    body = {"__annotations__": {"tenant": str, **annotations}, "__module__": __name__, **defaults}
    made = new_class(
        "Thing",
        body,
        name=name,
        key=Key("{tenant}", sort, prefix="time"),
        shards=Shards(start=1, max=8, placement="epochs"),
        registry=Registry() if registry is None else registry,
    )
    return definition(made)


@pytest.mark.parametrize(
    ("sort", "fields", "form"),
    [
        ("{id}", {"id": (str, new_id())}, "KSUID"),
        ("{id}#{n:03d}", {"id": (Annotated[str, Field(max_length=27)], new_id()), "n": int}, "KSUID"),
        ("{id}", {"id": Ulid}, "ULID"),
        ("{id}", {"id": UUID}, "UUIDv7"),
        ("{at}#{id}", {"at": datetime, "id": str}, "moment"),
        ("{at:%Y%m%dT%H%M%SZ}#{id}", {"at": datetime, "id": str}, "moment as %Y%m%dT%H%M%SZ"),
    ],
)
def test_a_sort_key_that_begins_with_its_time_is_accepted(sort: str, fields: Mapping[str, Any], form: str) -> None:
    entity = declared(sort, fields)

    assert entity.time is not None
    assert entity.time.name == form


@pytest.mark.parametrize(
    ("sort", "fields", "problem"),
    [
        ("{id}", {"id": str}, "begins with id, which carries no time"),
        ("{n:012d}", {"n": int}, "begins with n, which carries no time"),
        ("{day}#{id}", {"day": date, "id": str}, "begins with day, which carries no time"),
        ("event#{at}", {"at": datetime}, "begins with the text 'event#'"),
        ("{at:%Y-%m-%d}#{id}", {"at": datetime, "id": str}, "its texts do not distinguish seconds"),
        ("{at:%d.%m.%Y}#{id}", {"at": datetime, "id": str}, "its texts do not sort by time"),
        ("{name}#{id}", {"name": str, "id": (str, new_id())}, "begins with name, which carries no time"),
    ],
)
def test_another_sort_key_is_refused_with_the_entity_and_the_reason(
    sort: str, fields: Mapping[str, Any], problem: str
) -> None:
    with pytest.raises(DeclarationError) as refused:
        declared(sort, fields)

    assert str(refused.value).startswith("time.v1.Thing: has epochs placement")
    assert problem in str(refused.value)


def test_entities_of_one_partition_need_one_form_of_time() -> None:
    registry = Registry()
    declared("{at}#a#{id}", {"at": datetime, "id": str}, registry=registry)

    declared("{at}#b#{id}", {"at": datetime, "id": str}, registry=registry, name="time.v1.Other")
    with pytest.raises(DeclarationError, match="whose sort keys begin with another form of time"):
        declared("{id}", {"id": (str, new_id())}, registry=registry, name="time.v1.Third")


def test_calculated_entities_have_no_time() -> None:
    class Plain(Entity, name="time.v1.Plain", key=Key("{tenant}", "{id}"), shards=Shards(2), registry=Registry()):
        tenant: str
        id: str = new_id()

    assert definition(Plain).time is None
