"""Which lists of an item are as they are stored: those that nothing between the entity and the list may change."""

from collections.abc import Sequence
from dataclasses import field
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, RootModel, field_validator, model_validator
from pydantic.dataclasses import dataclass
from typing_extensions import TypedDict

from dynashard import Entity, Key, Registry, definition
from dynashard.entity.stored_lists import NONE, StoredLists

pytestmark = pytest.mark.unit


class Window(BaseModel, extra="forbid"):
    days: int


class Layer(BaseModel, extra="forbid"):
    windows: list[Window]
    users: list[str]


class Checked(Layer, extra="forbid"):
    """What holds windows may sort them; it stays at its place."""

    @model_validator(mode="after")
    def _checked(self) -> "Checked":
        return self


class Sorting(Layer, extra="forbid"):
    def model_post_init(self, _: Any) -> None:
        self.windows.sort(key=lambda window: window.days)


class Tree(BaseModel, extra="forbid"):
    below: "list[Tree]"


class Shape(TypedDict):
    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]
    windows: list[Window]


@dataclass(config=ConfigDict(extra="forbid"))
class Encoded:
    windows: list[Window] = field(default_factory=list)


class Plan(Entity, name="unit.v1.StoredLists", key=Key("{tenant_id}", "{id}"), registry=Registry()):
    tenant_id: str
    id: str
    layers: list[Layer]
    some: list[Layer] | None
    bounded: Annotated[list[Window], Field(max_length=5)]
    by_name: dict[str, Layer]
    nested: list[list[Window]]
    gaps: list[Window | None]
    pair: tuple[Window, Window]
    line: tuple[Window, ...]
    mixed: tuple[int, Window]
    numbers: list[list[int]]
    checked: list[Checked]
    sorting: list[Sorting]
    one_sorting: Sorting | None
    shape: Shape | None
    either: list[Window | Layer]
    root: RootModel[list[Window]] | None
    trees: list[Tree]
    texts: list[str]
    several: Sequence[Window]
    encoded: Encoded | None
    sorted_by_type: Annotated[list[Window], AfterValidator(lambda given: given[::-1])]
    sorted_by_field: list[Window]

    @field_validator("sorted_by_field")
    @classmethod
    def _sorted(cls, given: list[Window]) -> list[Window]:
        return given[::-1]


WINDOWS = StoredLists(items=NONE)
WITH_WINDOWS = StoredLists({"windows": WINDOWS})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("layers", StoredLists(items=WITH_WINDOWS)),
        ("some", StoredLists(items=WITH_WINDOWS)),
        ("bounded", WINDOWS),
        ("by_name", StoredLists(values=WITH_WINDOWS)),
        ("nested", StoredLists(items=WINDOWS)),
        ("gaps", WINDOWS),
        ("pair", WINDOWS),
        ("line", WINDOWS),
        ("mixed", NONE),
        ("numbers", NONE),
        ("checked", WINDOWS),
        ("sorting", WINDOWS),
        ("one_sorting", NONE),
        ("shape", WITH_WINDOWS),
        ("either", WINDOWS),
        ("root", WINDOWS),
        ("trees", StoredLists(items=StoredLists({"below": StoredLists(items=NONE)}))),
        ("texts", NONE),
        ("several", NONE),
        ("encoded", NONE),
        ("sorted_by_type", NONE),
        ("sorted_by_field", NONE),
        ("unknown", NONE),
    ],
)
def test_a_list_is_as_it_is_stored_unless_something_may_change_it(name: str, expected: StoredLists) -> None:
    assert definition(Plan).stored_lists.of(name) == expected


def test_no_list_is_as_it_is_stored_if_a_validator_of_the_whole_may_change_it() -> None:
    class Whole(Entity, name="unit.v1.WholeLists", key=Key("{tenant_id}", "{id}"), registry=Registry()):
        tenant_id: str
        id: str
        layers: list[Layer]

        @model_validator(mode="after")
        def _checked(self) -> "Whole":
            return self

    assert definition(Whole).stored_lists == NONE
