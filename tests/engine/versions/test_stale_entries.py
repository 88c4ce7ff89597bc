"""Index entries of a newer version, after an older one has changed fields in their keys."""

from typing import Any

import pytest

from dynashard.reads import Order
from dynashard.transport import Transport
from tests.api_caller import TENANT
from tests.engine.versions.two_versions import NewTask, OldTask, Version

pytestmark = pytest.mark.engine

KEY = {"tenant_id": TENANT, "id": "1"}


@pytest.fixture
def old(transport: Transport, table: str) -> Version:
    return Version(OldTask, transport, table)


@pytest.fixture
def new(transport: Transport, table: str) -> Version:
    return Version(NewTask, transport, table)


def owned(version: Version, owner: str, **more: Any) -> list[Any]:
    return version.tasks.list({"tenant_id": TENANT, "owner": owner}, index="by_owner", **more).items


def test_an_entry_that_contradicts_its_item_is_left_out_until_it_is_written(old: Version, new: Version) -> None:
    new.tasks.create(NewTask(**KEY, title="a", owner="ann"))
    new.tasks.create(NewTask(**{**KEY, "id": "2"}, title="b", owner="ann"))

    old.tasks.update(KEY, set={"owner": "eve"})

    for order in Order:
        assert [item.id for item in owned(new, "ann", order=order)] == ["2"]
        assert [item["id"] for item in owned(new, "ann", order=order, fields=["id"])] == ["2"]
    assert owned(new, "eve") == []
    new.tasks.update(KEY, set={"color": "red", "owner": "eve"})
    assert [item.id for item in owned(new, "eve")] == ["1"]


def test_an_entry_whose_sort_key_is_stale_is_left_out(old: Version, new: Version) -> None:
    new.tasks.create(NewTask(**KEY, title="a", owner="ann"))

    old.tasks.put(OldTask(**KEY, title="b", owner="ann"))

    assert owned(new, "ann") == []


def test_entries_of_adopted_items_are_listed_as_they_stand(new: Version, transport: Transport, table: str) -> None:
    new.tasks.create(NewTask(**KEY, title="a", owner="ann"))
    [item] = transport.call("Scan", {"TableName": table})["Items"]
    adopted = {name: value for name, value in item.items() if name not in ("Type", "Rev")}
    transport.call("PutItem", {"TableName": table, "Item": {**adopted, "owner": {"S": "Ann"}}})

    assert [item.id for item in owned(new, "ann")] == ["1"]
