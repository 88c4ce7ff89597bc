"""How large an answer is, as Lambda counts it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynashard.hosting.documents import written
from dynashard.hosting.pages import answer_bytes

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
