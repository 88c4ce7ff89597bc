"""The library creates the tables that the stacks and the local stack create."""

import pytest

from dynashard.tables import ITEMS, TOPOLOGY, TableSchema
from dynashard_local.engine.tables import table_plans
from dynashard_local.template import committed

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("name", "schema"), [("Table", ITEMS), ("Topology", TOPOLOGY)])
def test_a_table_of_the_library_is_that_of_the_template(name: str, schema: TableSchema) -> None:
    [plan] = [plan for plan in table_plans(committed()) if plan.name.endswith(f"-{name}")]

    ours = schema.request(plan.name)

    assert ordered(ours) == ordered(plan.create)
    assert schema.expires_at == plan.ttl_attribute


def ordered(request: object) -> object:
    """Return a request without the order of its lists, which means nothing to DynamoDB."""
    if isinstance(request, dict):
        return {name: ordered(value) for name, value in request.items()}
    return sorted(map(ordered, request), key=str) if isinstance(request, list | tuple) else request
