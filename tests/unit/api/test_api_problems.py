"""Every error as a problem document."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dynashard import errors
from dynashard.errors import FieldError, ValidationFailedError
from dynashard_serving.api.problems import HTTP_CODES, ProblemError, problem_of
from dynashard_serving.operations.permits import InsufficientScopeError, NotPermittedError

pytestmark = pytest.mark.unit

ERRORS_PAGE = Path(__file__).parents[3] / "docs" / "errors.md"


def _tree(root: type[errors.DynashardError]) -> Iterator[type[errors.DynashardError]]:
    yield root
    for child in root.__subclasses__():
        if child.__module__.startswith(errors.__name__):
            yield from _tree(child)


def _documented(section: str) -> dict[str, int]:
    text = ERRORS_PAGE.read_text(encoding="utf-8").partition(f"## {section}\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    return {cells[0].strip("`"): int(cells[1]) for cells in rows if cells[0].startswith("`")}


def test_every_code_of_the_layer_has_a_line_in_the_documentation() -> None:
    assert _documented("Of the layer") == {error.code: error.status for error in _tree(errors.DynashardError)}


def test_every_code_of_http_has_a_line_in_the_documentation() -> None:
    assert _documented("Of HTTP") == HTTP_CODES


def test_every_code_of_access_rules_has_a_line_in_the_documentation() -> None:
    assert _documented("Of access rules") == {
        error.code: error.status for error in (NotPermittedError, InsufficientScopeError)
    }


def test_a_missing_scope_is_named_in_the_challenge() -> None:
    refusal, headers = problem_of(InsufficientScopeError("list of a needs the scope a or b.", ["a", "b"]))

    assert headers == {"WWW-Authenticate": 'Bearer error="insufficient_scope", scope="a"'}
    assert (refusal.status, refusal.details) == (403, {"scopes": ["a", "b"]})


def test_a_problem_has_the_members_of_its_rfc() -> None:
    problem, headers = problem_of(ProblemError("no_such_route", "Nothing here.", headers={"X": "y"}))

    assert problem.problem("r-1") == {
        "type": "urn:dynashard:problem:no_such_route",
        "title": "Not Found",
        "status": 404,
        "detail": "Nothing here.",
        "code": "no_such_route",
        "request_id": "r-1",
    }
    assert headers == {"X": "y"}


def test_field_errors_are_listed() -> None:
    problem, _ = problem_of(
        ValidationFailedError(FieldError("a.b", "No.", "bad"), FieldError("", "No object.", "object_type"))
    )

    assert problem.problem("r-1")["errors"] == [
        {"field": "a.b", "message": "No.", "code": "bad"},
        {"field": "", "message": "No object.", "code": "object_type"},
    ]


def test_refused_key_names_its_field() -> None:
    problem, _ = problem_of(errors.InvalidKeyError("id may not contain ':'", field="id"))

    assert (problem.status, problem.code) == (422, "invalid_key")
    assert problem.errors == (FieldError("id", "id may not contain ':'", "invalid_key"),)
    assert "details" not in problem.problem("r-1")


def test_a_throttle_has_a_retry_after_header() -> None:
    reasons = [errors.ThrottleReason("TableWriteKeyRangeThroughputExceeded", "arn:aws:dynamodb:x:123456789012:table/t")]
    error = errors.KeyRangeThrottledError("Hot.", operation="PutItem", aws_code="X", reasons=reasons, retry_after=7)

    problem, headers = problem_of(error)

    assert (problem.status, headers) == (429, {"Retry-After": "7"})
    assert "123456789012" not in str(problem.problem("r-1"))


@pytest.mark.parametrize(
    "error",
    [
        errors.UndecodableItemError("at user.v1.User:abc:3: field x"),
        errors.EngineError("AccessDenied for arn:aws:iam::123456789012:role/x"),
        errors.ConfigurationError("CURSOR_KEYS"),
        ValueError("secret"),
    ],
)
def test_internal_errors_reveal_no_details(error: Exception) -> None:
    problem, _ = problem_of(error)

    assert problem.status >= 500
    assert str(error) not in str(problem.problem("r-1"))
