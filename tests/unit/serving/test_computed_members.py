"""What models inside of an item compute, in documents that nobody reads. Others: see `test_api_derived_values`."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, computed_field

from dynashard import Entity, Key, Registry
from dynashard_serving.computed_members import without_computed

pytestmark = pytest.mark.unit


class Either(BaseModel, extra="forbid"):
    kind: Literal["either"] = "either"
    inner: "Condition | None" = None

    @computed_field
    def cost(self) -> int:
        """One more than inside."""
        return 1


class All(BaseModel, extra="forbid"):
    kind: Literal["all"] = "all"
    inner: "Condition | None" = None


class Not(BaseModel, extra="forbid"):
    kind: Literal["not"] = "not"
    inner: "Condition | None" = None


Condition = Annotated[Either | All | Not, Field(discriminator="kind")]


class Rule(Entity, name="computed.v1.Rule", key=Key("{tenant_id}", "{id}"), registry=Registry()):
    tenant_id: str
    id: str
    when: Condition = Not()


def nested(kind: str, levels: int, **more: Any) -> dict[str, Any]:
    document: dict[str, Any] = {"kind": kind, **more}
    for _ in range(levels - 1):
        document = {"kind": kind, "inner": document, **more}
    return document


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", ["either", "another"])
def test_the_work_does_not_double_with_each_level_of_models_that_hold_one_another(kind: str) -> None:
    given = without_computed(Rule, {"id": "1", "when": nested(kind, 30, cost=1)})

    assert given == {"id": "1", "when": nested(kind, 30)}


@pytest.mark.parametrize(
    "when", [None, 7, "either", [], [[{}]], {"kind": ["either"]}, {"kind": None, "inner": [{"x": 1}]}]
)
def test_what_is_of_another_type_stays_as_it_is(when: Any) -> None:
    assert without_computed(Rule, {"when": when}) == {"when": when}
