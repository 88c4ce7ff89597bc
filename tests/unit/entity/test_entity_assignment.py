"""Validation of single fields, and of sums if a field requires it."""

from decimal import Decimal
from typing import Annotated, Any, Literal, NewType, Optional

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from dynashard import Entity, EntityDefinition, Key, Registry, definition
from dynashard.errors import InvalidValueError
from dynashard.repository.updates import added_to, check_updates

pytestmark = pytest.mark.unit

Positive = Annotated[int, Field(gt=0)]
Steps = NewType("Steps", int)


class Node(BaseModel, extra="forbid"):
    label: str
    inner: list["Node"] = []


class Everything(Entity, name="everything", key=Key("{tenant}"), registry=Registry()):
    model_config = ConfigDict(str_strip_whitespace=True)

    tenant: str
    tree: Node | None = None
    parent: Optional["Everything"] = None
    plain: int = 0
    ratio: float = 0.0
    price: Decimal | None = None
    bounded: int = Field(0, le=10)
    positive: Positive | None = None
    step: Steps = Steps(0)
    chosen: Literal[1, 2] = 1
    doubled: int = 0
    tags: set[str] = Field(default_factory=set)
    few: Annotated[set[str], Field(max_length=2)] = Field(default_factory=set)

    @field_validator("doubled")
    @classmethod
    def double(cls, value: int, info: ValidationInfo) -> int:
        return value if info.data else value * 2

    @model_validator(mode="after")
    def consistent(self) -> "Everything":
        if self.plain > self.bounded:
            raise ValueError("plain is above bounded")
        return self


@pytest.fixture
def entity() -> EntityDefinition[Everything]:
    return definition(Everything)


@pytest.mark.parametrize(
    ("field", "given", "checked"),
    [
        ("tenant", " abc ", "abc"),
        ("plain", "5", 5),
        ("plain", 99, 99),
        ("doubled", 4, 8),
        ("tree", {"label": "a", "inner": [{"label": "b"}]}, Node(label="a", inner=[Node(label="b")])),
        ("parent", None, None),
        ("price", "1.10", Decimal("1.10")),
        ("few", ["a"], {"a"}),
    ],
)
def test_a_field_is_validated_by_itself(
    entity: EntityDefinition[Everything], field: str, given: Any, checked: Any
) -> None:
    assert entity.assignment.check(field, given) == checked


@pytest.mark.parametrize(
    ("field", "given"),
    [("bounded", 11), ("positive", 0), ("tree", {"inner": []}), ("few", {"a", "b", "c"}), ("plain", None)],
)
def test_a_value_of_a_wrong_type_is_refused(entity: EntityDefinition[Everything], field: str, given: Any) -> None:
    with pytest.raises(InvalidValueError, match=f"^{field}: ") as refused:
        entity.assignment.check(field, given)

    assert refused.value.field == field


def test_the_whole_item_is_validated(entity: EntityDefinition[Everything]) -> None:
    entity.assignment.check_whole({"tenant": "a", "plain": 5, "bounded": 5})

    with pytest.raises(InvalidValueError, match="plain is above bounded") as refused:
        entity.assignment.check_whole({"tenant": "a", "plain": 6, "bounded": 5})
    assert refused.value.field is None
    with pytest.raises(InvalidValueError, match="bounded: Input should be less than or equal to 10") as field:
        entity.assignment.check_whole({"tenant": "a", "bounded": 50})
    assert field.value.field == "bounded"


@pytest.mark.parametrize("field", ["plain", "ratio", "price", "tags"])
def test_sum_of_values_of_a_free_field_needs_no_check(entity: EntityDefinition[Everything], field: str) -> None:
    assert entity.assignment.bounded(field) is False


@pytest.mark.parametrize("field", ["bounded", "positive", "step", "chosen", "doubled", "few"])
def test_sum_of_values_of_a_narrowed_field_needs_a_check(entity: EntityDefinition[Everything], field: str) -> None:
    assert entity.assignment.bounded(field) is True


@pytest.mark.parametrize(
    ("field", "given", "added"),
    [
        ("plain", 3, 3),
        ("step", -3, -3),
        ("ratio", Decimal("0.5"), 0.5),
        ("ratio", 2, 2),
        ("price", 0.1, Decimal("0.1")),
        ("price", 3, Decimal(3)),
        ("tags", frozenset({"a"}), {"a"}),
    ],
)
def test_an_added_value_has_the_type_of_its_field(
    entity: EntityDefinition[Everything], field: str, given: Any, added: Any
) -> None:
    changes = check_updates(entity, {}, remove=(), add={field: given})

    assert changes.add == {field: added}
    assert type(changes.add[field]) is type(added)


@pytest.mark.parametrize(("field", "given"), [("plain", Decimal(1)), ("plain", 1.0), ("ratio", "1"), ("tree", 1)])
def test_a_sum_that_its_field_cannot_hold_is_refused(
    entity: EntityDefinition[Everything], field: str, given: Any
) -> None:
    with pytest.raises(InvalidValueError):
        check_updates(entity, {}, remove=(), add={field: given})


def test_a_recursive_entity_is_decoded(entity: EntityDefinition[Everything]) -> None:
    parent = Everything(tenant="b", tags={"x"}, few={"y"})

    decoded = entity.decode({"tenant": {"S": "a"}, "parent": {"M": entity.encode(parent.__dict__)}})

    assert decoded.parent is not None
    assert decoded.parent.tenant == "b"


@pytest.mark.parametrize(
    ("field", "value", "added"),
    [
        ("plain", 2, 2),
        ("ratio", Decimal("0.5"), 0.5),
        ("ratio", 0.5, 0.5),
        ("ratio", 2, 2),
        ("price", 0.1, Decimal("0.1")),
        ("price", 2, Decimal(2)),
        ("tags", {"a"}, {"a"}),
    ],
)
def test_what_is_added_has_a_type_whose_sum_the_field_can_hold(
    entity: EntityDefinition[Everything], field: str, value: Any, added: Any
) -> None:
    [(name, found)] = check_updates(entity, {}, remove=(), add={field: value}).add.items()

    assert (name, found, type(found)) == (field, added, type(added))


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        (None, 2, 2),
        (3, 2, 5),
        (None, Decimal("0.5"), Decimal("0.5")),
        (Decimal("1e27"), Decimal("0.5"), Decimal("1000000000000000000000000000.5")),
        (None, {"a"}, {"a"}),
        ({"b"}, {"a"}, {"a", "b"}),
    ],
)
def test_a_sum_begins_at_nothing_and_is_exact(before: Any, value: Any, after: Any) -> None:
    assert added_to(before, value) == after


def test_of_several_mistakes_in_a_value_the_first_is_named() -> None:
    with pytest.raises(InvalidValueError, match=r"^tree: Input should be a valid string$"):
        definition(Everything).assignment.check("tree", {"label": 1, "other": 2})


class Door(BaseModel, extra="forbid"):
    low: int
    high: int

    @field_validator("high")
    @classmethod
    def above(cls, high: int, info: ValidationInfo) -> int:
        if high < info.data["low"]:
            raise ValueError("high is below low")
        return high


class Following(Entity, name="following", key=Key("{id}"), registry=Registry()):
    id: str
    door: Door | None = None
    size: int = 0
    free: int = 0

    @field_validator("door", "size")
    @classmethod
    def of_id(cls, value: Any, info: ValidationInfo) -> Any:
        return value if info.data["id"] else None

    @field_validator("free", mode="plain")
    @classmethod
    def all_of_id(cls, value: Any, info: ValidationInfo) -> int:
        return int(value) + len(info.data["id"])


@pytest.mark.parametrize(
    ("field", "given", "found"),
    [("size", "7", 7), ("door", {"low": 1, "high": 2}, Door(low=1, high=2)), ("free", "7", "7"), ("free", 7, 7)],
)
def test_a_validator_that_misses_other_fields_is_left_out(field: str, given: Any, found: Any) -> None:
    assert definition(Following).assignment.check(field, given) == found


@pytest.mark.parametrize(("field", "given"), [("size", "x"), ("door", {"low": 2, "high": 1})])
def test_the_others_of_its_field_are_not(field: str, given: Any) -> None:
    with pytest.raises(InvalidValueError, match=field):
        definition(Following).assignment.check(field, given)


def test_a_value_that_was_stored_is_not_judged_by_other_fields(entity: EntityDefinition[Everything]) -> None:
    assert entity.assignment.check("doubled", 4, stored=True) == 4
    with pytest.raises(InvalidValueError, match="doubled"):
        entity.assignment.check("doubled", "x", stored=True)
