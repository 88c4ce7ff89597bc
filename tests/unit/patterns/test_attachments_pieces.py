"""Which stored rows are parts of an entity's attachments, whether or not their fields are declared any more."""

from typing import Final

import pytest

from dynashard import definition
from dynashard_patterns.attachments.pieces import field_of
from tests.beats import Beat

pytestmark = pytest.mark.unit

NAME: Final = definition(Beat).name


@pytest.mark.parametrize(
    ("kind", "place", "field"),
    [
        (f"{NAME}~body", f"{NAME}~body:abc:1", "body"),
        # Of another entity, of a reservation, of an item, and of another program.
        ("gone.v1.Gone~body", "gone.v1.Gone~body:abc:1", None),
        (f"{NAME}~mail~", f"{NAME}~mail~:abc:1", None),
        (NAME, f"{NAME}:abc:0", None),
        (f"{NAME}~", f"{NAME}~:abc:1", None),
        (f"{NAME}~body", "session#123", None),
    ],
)
def test_a_part_of_an_attachment_has_its_type_and_its_place(kind: str, place: str, field: str | None) -> None:
    assert field_of(definition(Beat), {"Type": {"S": kind}, "PK": {"S": place}}) == field


def test_a_row_without_a_type_is_no_part_of_an_attachment() -> None:
    assert field_of(definition(Beat), {"PK": {"S": f"{NAME}~body:abc:1"}}) is None
