"""Bodies: strict JSON, merge patch, validation."""

import base64
import gzip
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from dynashard.errors import FieldError, ValidationFailedError
from dynashard_serving.api.body import body_of, parse_json
from dynashard_serving.api.problems import ProblemError
from dynashard_serving.documents import merge_patch, refuse_changed, refuse_read_only, validated, with_fixed, written
from dynashard_serving.limits import MAX_DEPTH

pytestmark = pytest.mark.unit

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(10**30), max_value=10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=20,
)


@given(JSON_VALUES)
def test_json_is_parsed_without_loss(value: Any) -> None:
    assert parse_json(json.dumps(value).encode()) == value
    assert parse_json(json.dumps(value, ensure_ascii=False).encode()) == value


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "line 1, column 1"),
        (b"{", "line 1, column 2"),
        (b'{"a": 1} x', "Extra data"),
        (b'{"a": 1, "b": 2, "a": 3}', "'a' appears twice"),
        (b'[{"x": {"a": 1, "a": 1}}]', "appears twice"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "-Infinity"),
        (b'{"a": 1e999}', "too large"),
        (b'{"a": ' + b"9" * 5000 + b"}", "digits"),
        (b'"\xff"', "UTF-8 at byte 1"),
        (b'\xff\xfe{"', "UTF-8"),
        (b'{"a": "\\ud800"}', "surrogate"),
        (b'{"\\udc00": 1}', "surrogate"),
        (b"[" * 100_000, "nested"),
        (b"[" * 40 + b"]" * 40, "nested"),
        (b'{"a": ' * 500 + b"1" + b"}" * 500, "nested"),
        (b"{'a': 1}", "not valid JSON"),
        (b'{"a": 01}', "not valid JSON"),
        (b'{"a": "\n"}', "not valid JSON"),
    ],
)
def test_bad_json_is_refused_with_its_reason(raw: bytes, reason: str) -> None:
    with pytest.raises(ProblemError, match=reason) as refused:
        parse_json(raw)

    assert (refused.value.status, refused.value.code) == (400, "malformed_body")


def test_nesting_is_accepted_up_to_the_limit_of_dynamodb() -> None:
    raw = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH

    assert isinstance(parse_json(raw), list)


@given(st.binary())
def test_every_body_is_either_read_or_refused(raw: bytes) -> None:
    with suppress(ProblemError):
        parse_json(raw)


@pytest.mark.parametrize(
    ("target", "patch", "merged"),
    [
        # RFC 7396, appendix A.
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch_passes_the_examples_of_its_rfc(target: Any, patch: Any, merged: Any) -> None:
    before = json.dumps(target)

    assert merge_patch(target, patch) == merged
    assert json.dumps(target) == before


class Line(BaseModel):
    text: str


class Letter(BaseModel, extra="forbid"):
    to: str
    pages: int
    lines: list[Line] = []


def _refusal(document: dict[str, Any]) -> list[FieldError]:
    with pytest.raises(ValidationFailedError) as refused:
        validated(Letter, document)
    assert refused.value.status == 422
    return list(refused.value.errors)


def test_every_wrong_field_is_named_with_its_path() -> None:
    errors = _refusal({"pages": "many", "lines": [{"text": "a"}, {"text": 1}], "seal": "wax"})

    assert {error.field: error.code for error in errors} == {
        "to": "missing",
        "pages": "int_type",
        "lines.1.text": "string_type",
        "seal": "extra_forbidden",
    }


def test_a_refusal_does_not_repeat_the_request() -> None:
    errors = _refusal({"to": "x", "pages": "secret-number"})

    assert "secret" not in str(errors)


def test_read_only_fields_are_refused_by_name() -> None:
    with pytest.raises(ValidationFailedError) as refused:
        refuse_read_only({"to": "x", "pages": 1}, {"pages", "stamp"})

    assert [(error.field, error.code) for error in refused.value.errors] == [("pages", "read_only")]


def test_fixed_fields_are_added_and_cannot_be_overwritten() -> None:
    assert with_fixed({"to": "x"}, {"to": "y", "pages": 1}) == {"to": "x", "pages": 1}


def test_different_values_of_fixed_fields_are_refused() -> None:
    letter = validated(Letter, {"to": "x", "pages": 1})

    refuse_changed(letter, {"to": "x"})
    with pytest.raises(ValidationFailedError) as refused:
        refuse_changed(letter, {"to": "y", "pages": 1})

    assert [(error.field, error.code) for error in refused.value.errors] == [("to", "immutable")]


def test_integers_of_any_size_are_written() -> None:
    assert written({"a": 10**30}) == '{"a":1000000000000000000000000000000}'


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "application/gzip"},
        {"content-type": "Application/Gzip; charset=binary"},
        {"content-type": "application/json", "content-encoding": "gzip"},
        {"content-type": "application/json", "content-encoding": "X-Gzip"},
    ],
)
def test_a_compressed_body_is_known_by_its_type_or_its_coding(headers: dict[str, str]) -> None:
    packed = {"body": base64.b64encode(gzip.compress(b"{}")).decode(), "isBase64Encoded": True}

    assert body_of(packed, headers) == b"{}"
