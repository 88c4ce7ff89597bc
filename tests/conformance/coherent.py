"""Hooks of Schemathesis that make generated requests coherent if JSON Schema cannot express which values fit together.

Only requests that are meant to be valid are changed, and only by rules that a description in the document states. Rules
that the schema of a single parameter or field can express are not applied here.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final
from uuid import uuid4

import schemathesis
from ksuid import Ksuid

_RANGE: Final = ("prefix", "from", "to")
_KEYS: Final = "A range of keys of "
_MOST: Final = 120
_FREE: Final = {"type", "minLength", "maxLength", "title", "description", "examples"}
"""What the schema of a field has that takes any short text."""
_AT: Final = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

Described = Mapping[str, str]
"""The descriptions of query parameters, by name."""


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Make a request coherent. Schemathesis calls this before each request."""
    del context, kwargs
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    if case.headers:
        _make_headers_coherent(case.headers, {each.name: each.definition for each in case.operation.headers})
    if case.method == "GET":
        described = _described(case.operation)
        case.query = dict(case.query or {})
        _make_query_coherent(case.query, described)
    if case.path_parameters and "at" in case.path_parameters:
        # Pings of the present time are accepted. The schema of a date-time cannot limit its year.
        case.path_parameters["at"] = _AT
    if case.path_parameters and case.operation.path.endswith("/notifications/{id}"):
        # An id of a time in the future is refused, and most texts of its pattern are one.
        case.path_parameters["id"] = str(Ksuid())
    for body in case.body if isinstance(case.body, list) else [case.body]:
        if isinstance(body, dict):
            _make_body_coherent(body, case.path_parameters or {})
            if "op" in body and "path" in body:
                _make_patch_coherent(body, _text_of(case.operation))
            if case.method in {"PUT", "PATCH"}:
                # The number of an item never changes.
                body.pop("number", None)


@schemathesis.check
def refused_outcomes(context: Any, response: Any, case: Any) -> None:
    """Check that a batch that the schema does not allow is refused, or that an outcome is.

    Wrong items and keys are outcomes, says the description of a batch, so `negative_data_rejection` accepts 200.
    """
    del context
    body = case.meta and case.meta.components.get("body")
    if (
        case.operation.path.endswith("/batch")
        and body
        and body.mode.is_negative
        and response.status_code == HTTPStatus.OK
    ):
        outcomes = response.json()["outcomes"]
        assert not all(each["ok"] for each in outcomes), f"A batch was done that is not allowed: {outcomes}"


def _described(operation: Any) -> Described:
    shared = operation.schema.raw_schema["components"]["parameters"]
    given = operation.definition.raw.get("parameters", ())
    parameters = [shared[each["$ref"].rpartition("/")[2]] if "$ref" in each else each for each in given]
    return {each["name"]: each.get("description", "") for each in parameters}


def _text_of(operation: Any) -> str | None:
    """Return a field that a patch may set to any short text; None if the patched item has none."""
    schema = operation.definition.raw["requestBody"]["content"]["application/merge-patch+json"]["schema"]
    name = schema["$ref"].rpartition("/")[2]
    fields = operation.schema.raw_schema["components"]["schemas"][name]["properties"].items()
    return next((field for field, each in fields if each.get("type") == "string" and each.keys() <= _FREE), None)


def _make_patch_coherent(operation: dict[str, Any], field: str | None) -> None:
    """Let an operation of a JSON Patch change a field that may be set. A field that is required is not removed."""
    if field is None or operation["op"] in ("remove", "test"):
        operation |= {"op": "test", "value": None}
    else:
        operation |= {"path": f"/{field}", "from": f"/{field}", "value": "changed"}


def _make_headers_coherent(headers: Any, described: Mapping[str, Any]) -> None:
    if "Idempotency-Key" in headers:
        # Generated keys repeat, and a repeated key with another request is refused.
        headers["Idempotency-Key"] = uuid4().hex
    for name in list(headers):
        pattern = described.get(name, {}).get("schema", {}).get("pattern")
        if pattern and not re.search(pattern, headers[name]):
            # The coverage phase ignores the patterns of headers.
            del headers[name]


def _make_query_coherent(query: dict[str, Any], described: Described) -> None:
    # Only an answer contains a valid cursor.
    query.pop("cursor", None)
    if "prefix" in query:
        query.pop("from", None)
        query.pop("to", None)
    if "level" in query:
        query["from"], query["to"] = "2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z"
    elif "from" in query and "to" in query:
        query["from"], query["to"] = sorted([str(query["from"]), str(query["to"]) + "~"])
    _complete(query)
    _fit_index(query, described)
    _fit_operators(query, described)
    if "index" not in query:
        # Copies of one item are only listed together in an index.
        query.pop("distinct", None)
    if "at" in query:
        query["at"] = _AT
    narrowing = [name for name, text in described.items() if "sort field of" in text or "what is below it" in text]
    if any(name in query for name in narrowing):
        for each in _RANGE:
            query.pop(each, None)
    if sum(len(value) if isinstance(value, list) else 1 for value in query.values()) > _MOST:
        query |= {name: value[:1] for name, value in query.items() if isinstance(value, list)}


def _complete(query: dict[str, Any]) -> None:
    """Add the parameters that other parameters require."""
    if query.get("order") == "newest":
        query.setdefault("type", "User")
    if "distinct" in query:
        query["order"] = "ordered"
    if query.get("level", "month") != "month":
        query |= {"series": "example", "episode": "example"}
    elif "level" in query:
        # Only plays of an episode are summed up by shorter times.
        query.pop("episode", None)
    # A field of a key requires the fields before it.
    if "schedule_id" in query:
        query.setdefault("team_id", "example")
    if "since" in query or "incident_id" in query:
        query.setdefault("state", "OPEN")
    if "incident_id" in query:
        query.setdefault("since", _AT)


def _fit_index(query: dict[str, Any], described: Described) -> None:
    """Keep the fields of the named index. Without its partition fields, list the table."""
    index = query.get("index")
    needed = [name for name, text in described.items() if f"partition field of {index}" in text]
    if index is not None and any(name not in query for name in needed):
        del query["index"]
        index = None
    if index is not None:
        # An index cannot be read consistently.
        query.pop("consistent", None)
    place = index or "the table"
    for name, text in described.items():
        if not text.startswith("Equal to this"):
            continue
        if f"partition field of {place}" in text:
            query.setdefault(name, 2026 if name == "year" else "/example" if name == "path" else "example")
        elif name in query and f"sort field of {place}" not in text and "a filter" not in text:
            del query[name]
        elif isinstance(query.get(name), list):
            # Only a partition field may be given several times.
            query[name] = query[name][0]


def _fit_operators(query: dict[str, Any], described: Described) -> None:
    """Keep the operators that the listed place takes."""
    place = query.get("index", "the table")
    of_index = re.search(rf"`{place}` by ([a-z_, ]+)", described.get("index", ""))
    fields = of_index[1].split(", ") if of_index else list(described)
    sort = [name for name in fields if f"sort field of {place}" in described.get(name, "")]
    for name in [name for name in query if "[" in name]:
        field, text = name.partition("[")[0], described[name]
        before = sort[: sort.index(field)] if field in sort else sort
        _, ranged, places = text.rstrip(".").partition(_KEYS)
        open_before = any(each not in query or any(other.startswith(f"{each}[") for other in query) for each in before)
        unfit = place not in places.split(", ") or field in query or open_before
        if f"partition field of {place}" in described.get(field, "") or (ranged and unfit):
            del query[name]


def _make_body_coherent(body: dict[str, Any], path: Mapping[str, Any]) -> None:
    if "published_at" in body:
        # The year of an article must be that of its publication.
        body.pop("year", None)
        year = int(path.get("year", 2026))
        body["published_at"] = f"{year:04d}-06-01T00:00:00Z"
    if "at" in body:
        # Pings of the last days are accepted.
        body["at"] = datetime.now(UTC).isoformat()
        body.pop("expires_at", None)
    if "accessed_at" in body:
        # A schema of a date-time cannot say that it is past.
        body["accessed_at"] = datetime.now(UTC).isoformat()
    if "time_zone" in body:
        # A zone of the IANA database.
        body["time_zone"] = "Europe/Berlin"
    for each in body.get("layers") or ():
        # Times of rotas are from 2000 to 2199.
        each["starts_at"], each["ends_at"] = "2026-11-21T08:00:00Z", None
    if "amount" in body:
        # Sums of many large amounts have more than 38 digits.
        body["amount"] = min(body["amount"], 10**6)
    if "channel" in body and "id" in body:
        body["id"] = str(Ksuid())
    if body.get("expires_at") is not None:
        # An item that has expired cannot be stored.
        body["expires_at"] = "2099-01-01T00:00:00Z"
    if "ends_at" in body or "starts_at" in body:
        body["starts_at"], body["ends_at"] = "2026-11-21T08:00:00Z", "2026-11-21T16:00:00Z"
