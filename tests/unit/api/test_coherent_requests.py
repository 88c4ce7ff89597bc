"""The hooks of the conformance test change generated requests only as the descriptions of the document ask for it."""

import json
from types import SimpleNamespace
from typing import Any, Final

import pytest
import schemathesis

from tests.conformance.coherent import before_call, refused_outcomes
from tests.markdown import ROOT

pytestmark = pytest.mark.unit

SCHEMA: Final = schemathesis.openapi.from_dict(json.loads((ROOT / "docs" / "openapi.json").read_text("utf-8")))


def case(method: str, path: str, *, positive: bool = True, **parts: Any) -> Any:
    """Return a generated request to an operation of the document."""
    mode = SimpleNamespace(is_positive=positive, is_negative=not positive)
    meta = SimpleNamespace(generation=SimpleNamespace(mode=mode), components={"body": SimpleNamespace(mode=mode)})
    given = {"headers": None, "query": None, "path_parameters": None, "body": None, **parts}
    return SimpleNamespace(method=method, operation=SCHEMA[path][method], meta=meta, **given)


def coherent(method: str, path: str, **parts: Any) -> Any:
    """Return the request as it is sent."""
    made = case(method, path, **parts)
    before_call(None, made, {})
    return made


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"limit": 5, "cursor": "x"}, {"limit": 5}),
        ({"prefix": "a", "from": "b", "to": "c"}, {"prefix": "a"}),
        ({"from": "b", "to": "a"}, {"from": "a~", "to": "b"}),
        ({"distinct": "email"}, {"order": "ordered"}),
        ({"index": "by_department"}, {}),
    ],
    ids=str,
)
def test_a_listing_is_asked_for_what_fits_together(given: dict[str, Any], sent: dict[str, Any]) -> None:
    assert coherent("GET", "/v1/users", query=given).query == sent


def test_a_request_that_is_meant_to_be_refused_stays_as_it_is() -> None:
    query = {"cursor": "x", "prefix": "a", "from": "b"}

    assert coherent("GET", "/v1/users", query=dict(query), positive=False).query == query


def test_each_request_has_a_key_of_its_own() -> None:
    headers = {"Idempotency-Key": "same"}

    first, second = (coherent("POST", "/v1/users", headers=dict(headers), body={}).headers for _ in range(2))

    assert first["Idempotency-Key"] != second["Idempotency-Key"]


@pytest.mark.parametrize(("operation", "value"), [("remove", None), ("test", None), ("replace", "changed")])
def test_a_json_patch_changes_only_what_may_be_set(operation: str, value: str | None) -> None:
    [done] = coherent("PATCH", "/v1/users/{id}", body=[{"op": operation, "path": "/zzz", "value": 1}]).body

    assert (done["op"], done["value"]) == ("test" if value is None else operation, value)
    assert (done["path"] == "/zzz") == (value is None)


def test_the_number_of_an_item_is_not_changed_and_an_item_is_not_expired() -> None:
    body = {"number": 7, "title": "x", "expires_at": "2001-01-01T00:00:00Z"}

    assert "number" not in coherent("PUT", "/v1/incidents/{id}", body=dict(body)).body
    created = coherent("POST", "/v1/incidents", body=dict(body)).body
    assert (created["number"], created["expires_at"]) == (7, "2099-01-01T00:00:00Z")


def test_a_wrong_batch_needs_an_outcome_that_is_refused() -> None:
    def answered(done: list[bool]) -> Any:
        return SimpleNamespace(status_code=200, json=lambda: {"outcomes": [{"ok": each} for each in done]})

    wrong = case("POST", "/v1/users/batch", positive=False)

    refused_outcomes(None, answered([True, False]), wrong)
    refused_outcomes(None, answered([True]), case("POST", "/v1/users/batch"))
    with pytest.raises(AssertionError, match="A batch was done that is not allowed"):
        refused_outcomes(None, answered([True, True]), wrong)
