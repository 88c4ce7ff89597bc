"""The events of the fuzzer reach every operation of every resource that is served."""

from random import Random
from typing import Any

import pytest
from pydantic import ValidationError

from dynashard_checks.fuzz import Draw
from dynashard_serving.domain import declared
from dynashard_serving.operations.served import NEEDS

pytestmark = pytest.mark.unit


def drawn() -> list[dict[str, Any]]:
    events = [Draw(Random(f"1 {number}")).event() for number in range(3000)]
    return [event for event in events if isinstance(event, dict)]


def fits(event: dict[str, Any]) -> bool:
    """Whether the item of an event fits its entity."""
    [entity] = [each.entity for each in declared().entities if each.path == event["entity"]]
    try:
        entity.model_validate({**event.get("item", {}), "tenant_id": "fuzz"})
    except (ValidationError, TypeError):
        return False
    return True


def test_events_are_of_all_operations_and_of_all_resources() -> None:
    events = drawn()

    operations, entities = ({str(event.get(member)) for event in events} for member in ("operation", "entity"))

    assert operations >= NEEDS.keys()
    assert entities >= {each.path for each in declared().entities if each.operations}


def test_some_items_of_every_resource_fit() -> None:
    writes = [event for event in drawn() if event.get("operation") in ("create", "put")]
    paths = {each.path for each in declared().entities if "create" in each.operations}

    fitting = {event["entity"] for event in writes if str(event.get("entity")) in paths and fits(event)}

    assert fitting == paths
