"""The size of an answer by the rules of Lambda."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynashard.reads import Page
from dynashard.transport.interface import Consumed
from dynashard_serving.documents import written
from dynashard_serving.limits import MAX_ANSWER_BYTES
from dynashard_serving.operations.pages import answer_bytes, page_that_fits

pytestmark = pytest.mark.unit

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES)
def test_an_answer_has_the_bytes_of_its_text_as_a_json_string(document: object) -> None:
    text = written(document)

    assert answer_bytes(text) == len(json.dumps(text, ensure_ascii=False).encode()) - len('""')


def test_a_page_is_shortened_until_it_fits_with_its_cursor() -> None:
    limits: list[int] = []

    def read(limit: int) -> Page[str]:
        limits.append(limit)
        assert len(limits) < 20, "it reads the same page again and again"
        return Page(["x" * 100_000] * min(200, limit), "c" * 300_000, Consumed(), 1)

    answer = page_that_fits(read, {"limit": 1000}, lambda items: written(items).encode())

    assert answer_bytes(answer.text) <= MAX_ANSWER_BYTES
    assert limits == sorted(set(limits), reverse=True)
    assert limits[-1] >= 50
