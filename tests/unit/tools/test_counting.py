"""Numbers with their nouns."""

import pytest

from dynashard_tools.counting import plural

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 items are"), (1, "1 item is"), (2, "2 items are"), (12_345, "12,345 items are")]
)
def test_one_is_singular_and_all_other_numbers_are_plural(number: int, text: str) -> None:
    assert plural(number, "item is", "items are") == text
    assert plural(number, "item") == text.removesuffix(" is").removesuffix(" are")
