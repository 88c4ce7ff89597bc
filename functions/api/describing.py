"""The pieces an OpenAPI document is made of."""

from collections.abc import Sequence
from typing import Any, Final

from functions.api.bodies import JSON
from functions.api.parameters import DEFAULT_LIMIT, MAX_LIMIT
from functions.api.problems import CONTENT_TYPE

Schema = dict[str, Any]
Operation = dict[str, Any]

REF: Final = "#/components/schemas/"
REFUSALS: Final = {
    "400": "Bad JSON, header, path, query string or cursor.",
    "401": "No verified token.",
    "403": "The token names no tenant.",
    "404": "No such item.",
    "406": "The answer is too large, unless it comes compressed.",
    "409": "The item exists, or other requests are in the way.",
    "412": "If-Match or If-None-Match does not hold.",
    "413": "The body or the item is too large.",
    "415": "The body's media type is not understood.",
    "422": "Fields or query parameters are not accepted.",
    "429": "Throttled: come back after Retry-After.",
    "503": "The database cannot be reached: come back after Retry-After.",
}
_EVERYWHERE: Final = ("400", "401", "403", "422", "429", "503")

TEXT: Final[Schema] = {"type": "string"}
SEVERAL: Final[Schema] = {"anyOf": [TEXT, {"type": "array", "items": TEXT}]}
"""A field that chooses a logical partition: given several times, it chooses several, which are listed as one."""
_ORDERS: Final[Schema] = {"type": "string", "enum": ["round_robin", "ordered", "shard"], "default": "round_robin"}
_LIMIT: Final[Schema] = {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT}


def ref(name: str) -> Schema:
    """A reference to a schema of the document."""
    return {"$ref": REF + name}


def refused(*more: str) -> Schema:
    """The answers with a problem: those of every route, and more."""
    return {status: {"$ref": f"#/components/responses/{status}"} for status in sorted({*_EVERYWHERE, *more})}


def problem(status: str) -> Schema:
    """The answer with a problem of this status."""
    answer: Schema = {
        "description": REFUSALS[status],
        "content": {CONTENT_TYPE: {"schema": ref("Problem")}},
    }
    if status in {"429", "503"}:
        answer["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."}}
    return answer


def answer(text: str, schema: str) -> Schema:
    """An answer with a document."""
    return {"description": text, "content": {JSON: {"schema": ref(schema)}}}


def operation(name: str, summary: str, tag: str, answers: Schema, *, more: Sequence[str] = ()) -> Operation:
    """An operation.

    Args:
        name: its id, such as `listUser`.
        summary: what it does.
        tag: its heading.
        answers: by status, those that are no problem.
        more: statuses of problems besides those of every route.
    """
    responses = {**answers, **refused(*more)}
    return {"operationId": name, "summary": summary, "tags": [tag], "parameters": [], "responses": responses}


def query(name: str, schema: Schema, text: str, *, required: bool = False) -> Schema:
    """A query parameter."""
    parameter: Schema = {"name": name, "in": "query", "schema": schema, "description": text}
    return {**parameter, "required": True} if required else parameter


def header(name: str, text: str) -> Schema:
    """A request header."""
    return {"name": name, "in": "header", "schema": TEXT, "description": text}


def body(schema: str, *media_types: str) -> Schema:
    """A request body."""
    return {"required": True, "content": {media_type: {"schema": ref(schema)} for media_type in media_types}}


def page(schema: str) -> Schema:
    """An answer with a page."""
    link = {"Link": {"schema": TEXT, "description": 'The next page, rel="next".'}}
    return {**answer("A page; it may be short.", schema), "headers": link}


def page_of(item: Schema) -> Schema:
    """The schema of a page of such items."""
    cursor = {"type": ["string", "null"], "description": "Continues the listing; null ends it."}
    return {
        "type": "object",
        "required": ["items", "cursor"],
        "properties": {"items": {"type": "array", "items": item}, "cursor": cursor},
    }


def page_parameters() -> list[Schema]:
    """The query parameters of every listing."""
    directions = {"type": "string", "enum": ["asc", "desc"], "default": "asc"}
    return [
        query("limit", _LIMIT, "Items a page."),
        query("order", _ORDERS, "round_robin is the cheapest; ordered is by sort key over all shards."),
        query("direction", directions, "By sort key."),
        query("prefix", TEXT, "Sort keys that start with this."),
        query("from", TEXT, "Sort keys from this on, inclusive."),
        query("to", TEXT, "Sort keys before this, exclusive."),
        query("cursor", TEXT, "The cursor of the page before, with the same query."),
    ]
