"""Conditional headers: `If-Match` and `If-None-Match`."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynashard.errors import RevisionMismatchError
from dynashard_serving.api.headers import conditions_of, etag, preferences, tags_of
from dynashard_serving.api.problems import ProblemError
from dynashard_serving.operations.conditions import PreconditionFailedError, Revisions

pytestmark = pytest.mark.unit

TAGS = st.text(alphabet=[chr(code) for code in range(0x21, 0x7F) if chr(code) != '"'], max_size=10)


def test_revision_becomes_a_strong_tag() -> None:
    assert etag("abc") == {"ETag": '"abc"'}


@given(
    strong=st.sets(TAGS, max_size=25),
    weak=st.sets(TAGS, max_size=25),
    separator=st.sampled_from([",", ", ", " ,\t", ",,"]),
)
def test_a_list_of_tags_is_parsed_without_loss(strong: set[str], weak: set[str], separator: str) -> None:
    written = [*(f'"{tag}"' for tag in strong), *(f'W/"{tag}"' for tag in weak)]
    if not written:
        return

    tags = tags_of("If-Match", separator.join(written))

    assert tags == Revisions(anything=False, strong=frozenset(strong), weak=frozenset(weak))


def test_a_star_matches_any_item() -> None:
    assert tags_of("If-Match", " * ") == Revisions(anything=True)


@pytest.mark.parametrize("value", ["", ",", "abc", '"abc', 'w/"abc"', '"a" "b"', '*, "a"', '"a"b', "W/", '"a\nb"'])
def test_an_invalid_header_is_refused(value: str) -> None:
    with pytest.raises(ProblemError) as refused:
        tags_of("If-Match", value)

    assert refused.value.code == "malformed_header"


@given(st.text())
def test_every_value_is_either_read_or_refused(value: str) -> None:
    with suppress(ProblemError):
        tags = tags_of("If-Match", value)
        assert tags.anything or tags.strong or tags.weak


@pytest.mark.parametrize(
    ("header", "revision", "holds"),
    [
        ('"a"', "a", True),
        ('"a"', "b", False),
        ('"a"', None, False),
        ('W/"a"', "a", False),
        ('"b", "a"', "a", True),
        ("*", "a", True),
        ("*", None, False),
    ],
)
def test_if_match_compares_strongly(header: str, revision: str | None, holds: bool) -> None:  # noqa: FBT001
    assert conditions_of({"if-match": header}).match(revision) is holds


@pytest.mark.parametrize(
    ("header", "revision", "holds"),
    [
        ('"a"', "a", False),
        ('W/"a"', "a", False),
        ('"a"', "b", True),
        ("*", "a", False),
        ("*", None, True),
        ('"a"', None, True),
    ],
)
def test_if_none_match_compares_weakly(header: str, revision: str | None, holds: bool) -> None:  # noqa: FBT001
    assert conditions_of({"if-none-match": header}).none_match(revision) is holds


def test_a_failed_precondition_names_its_header() -> None:
    with pytest.raises(RevisionMismatchError):
        conditions_of({"if-match": '"a"'}).demand("b")
    with pytest.raises(PreconditionFailedError) as refused:
        conditions_of({"if-none-match": "*"}).demand("b")

    assert refused.value.code == "precondition_failed"


def test_only_a_single_strong_tag_becomes_a_condition_of_the_write() -> None:
    def single(**headers: str) -> str | None:
        return conditions_of({name.replace("_", "-"): value for name, value in headers.items()}).single_revision

    assert single(if_match='"a"') == "a"
    assert single(if_match='"a", "b"') is None
    assert single(if_match='W/"a"') is None
    assert single(if_match="*") is None
    assert single(if_match='"a"', if_none_match='"b"') is None


@pytest.mark.parametrize(
    ("sent", "found"),
    [
        ("return=minimal, respond-async", [("return", "minimal"), ("respond-async", "")]),
        ('Return = "minimal" ; a=b,,wait=5', [("return", "minimal"), ("wait", "5")]),
        ('foo="a, return=minimal", wait=1', [("foo", "a, return=minimal"), ("wait", "1")]),
        ('foo="a\\", return=minimal", wait=1', [("foo", 'a\\", return=minimal'), ("wait", "1")]),
        ('foo="a, return=minimal', [("foo", "a, return=minimal")]),
        ("", []),
    ],
)
def test_a_comma_within_quotes_does_not_begin_another_preference(sent: str, found: list[tuple[str, str]]) -> None:
    assert list(preferences({"prefer": sent})) == found
