"""The pieces an OpenAPI document is made of, and what an entity is called in its sentences."""

import re
from collections.abc import Mapping, Sequence
from inspect import cleandoc
from typing import Any, Final, NamedTuple

from pydantic import BaseModel

from dynashard.reads.limits import DEFAULT_LIMIT, MAX_LIMIT, MAX_PARTITIONS
from dynashard_serving.api.problems import CONTENT_TYPE
from dynashard_serving.api.response import JSON, UNDECODABLE
from dynashard_serving.idempotency import MAX_KEY_LENGTH

Schema = dict[str, Any]
Operation = dict[str, Any]

_WORDS: Final = re.compile(r"[A-Z][a-z0-9]*|[A-Z]+(?![a-z])")
REF: Final = "#/components/schemas/"
REFUSALS: Final = {
    "400": "The JSON, a header, the path, the query string or the cursor is malformed.",
    "401": "The request has no valid token.",
    "403": "The token names no tenant, or its scopes and claims do not allow this.",
    "404": "There is no such item.",
    "406": "The answer is too large: ask for less, or with attachments accept it compressed.",
    "409": "The item exists, or other requests are in the way.",
    "412": "If-Match or If-None-Match does not hold.",
    "413": "The body or the item is too large.",
    "415": "The media type of the body is not supported.",
    "422": "Fields or query parameters are not accepted.",
    "429": "Throttled: try again after Retry-After.",
    "431": "The request line and the headers are too large.",
    "503": "The database cannot be reached, the backend is overloaded, or the outcome is unknown: see `code`.",
}
_EVERYWHERE: Final = ("400", "401", "403", "422", "429", "431", "503")
_RETRY_AFTER: Final[Schema] = {"schema": {"type": "integer", "minimum": 0}, "description": "Seconds."}

TEXT: Final[Schema] = {"type": "string"}
_SORT_KEY: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": 1024}
_CURSOR: Final[Schema] = {"type": "string", "pattern": "^[A-Za-z0-9_.=-]+$"}
_TAG_LIST: Final[Schema] = {"type": "string", "pattern": r'^(\*|(W/)?"[!#-~]*"( *, *(W/)?"[!#-~]*")*)$'}
_ORDERS: Final[Schema] = {"type": "string", "enum": ["round_robin", "ordered", "shard"], "default": "round_robin"}
_LIMIT: Final[Schema] = {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT}

ETAG: Final[Schema] = {"schema": {"type": "string", "pattern": '^"[!#-~]+"$'}, "description": "The revision, quoted."}
PREFERENCE_APPLIED: Final[Schema] = {
    "schema": {"type": "string"},
    "description": "The preference that was followed; absent if none was.",
}
NOT_MODIFIED: Final[Schema] = {
    "description": "Not modified: the item is at the revision of If-None-Match.",
    "headers": {"ETag": ETAG},
}
LOCATION: Final[Schema] = {"schema": {"type": "string"}, "description": "The path of the item."}


def ref(name: str) -> Schema:
    """A reference to a schema of the document."""
    return {"$ref": REF + name}


def refused(*more: str) -> Schema:
    """The answers with a problem: those of every route, and more."""
    return {status: {"$ref": f"#/components/responses/{status}"} for status in sorted({*_EVERYWHERE, *more})}


def problem(status: str) -> Schema:
    """The answer with a problem of this status."""
    content = {} if status == "431" else {CONTENT_TYPE: {"schema": ref("Problem")}}
    if status in {"401", "429", "431"}:
        # The gateway refuses these before the function sees them, in a format of its own.
        content[JSON] = {"schema": ref("GatewayRefusal")}
    described: Schema = {"description": REFUSALS[status], "content": content}
    if status == "401":
        described["headers"] = {"WWW-Authenticate": {"schema": TEXT, "description": "How to authenticate."}}
    if status == "403":
        text = "The missing scope, if `code` is insufficient_scope (RFC 6750)."
        described["headers"] = {"WWW-Authenticate": {"schema": TEXT, "description": text}}
    if status in {"429", "503"}:
        described["headers"] = {"Retry-After": _RETRY_AFTER}
    return described


def answer(text: str, schema: str) -> Schema:
    """An answer with a document."""
    return {"description": text, "content": {JSON: {"schema": ref(schema)}}}


class Described(NamedTuple):
    """The paths of a declaration in the document, and the schemas that they refer to."""

    paths: Mapping[str, Schema]
    schemas: Mapping[str, Schema]


def operation(name: str, summary: str, tag: str, text: str, answers: Schema, *, more: Sequence[str] = ()) -> Operation:
    """An operation.

    Args:
        name: its id, such as `listUser`.
        summary: what it does, in a few words.
        tag: its heading.
        text: what it does, in sentences.
        answers: by status, those of success.
        more: statuses of problems besides those of every route.
    """
    responses = {**answers, **refused(*more)}
    return {
        "operationId": name,
        "summary": summary,
        "description": text,
        "tags": [tag],
        "parameters": [],
        "responses": responses,
    }


def query(name: str, schema: Schema, text: str, *, required: bool = False) -> Schema:
    """A query parameter."""
    parameter: Schema = {"name": name, "in": "query", "schema": schema, "description": text}
    return {**parameter, "required": True} if required else parameter


def parameters_of(model: type[BaseModel]) -> list[Schema]:
    """Return the query parameters that a model describes."""
    schema = model.model_json_schema()
    required, models = schema.get("required", []), schema.get("$defs", {})
    found = []
    for name, value in schema["properties"].items():
        whole = _written_out(value, models)
        shape = {key: part for key, part in whole.items() if key not in {"title", "description"}}
        found.append(query(name, shape, whole.get("description", ""), required=name in required))
    return found


def _written_out(part: Any, models: Mapping[str, Schema]) -> Any:
    """Return a schema with the enums that it refers to. No text of a query is a model that contains itself."""
    if isinstance(part, list):
        return [_written_out(each, models) for each in part]
    if not isinstance(part, dict):
        return part
    found = {key: _written_out(value, models) for key, value in part.items() if key != "$ref"}
    if "$ref" not in part:
        return found
    name = part["$ref"].rpartition("/")[2]
    others = {other: model for other, model in models.items() if other != name}
    return {**_written_out(models.get(name, {}), others), **found}


def header(name: str, text: str, schema: Schema = TEXT) -> Schema:
    """A request header."""
    return {"name": name, "in": "header", "schema": schema, "description": text}


def several(item: Schema) -> Schema:
    """A field that chooses a logical partition. Given several times, it chooses several, which are listed as one."""
    return {"anyOf": [item, {"type": "array", "items": item, "minItems": 1, "maxItems": MAX_PARTITIONS}]}


def key_text() -> Schema:
    """The schema of a value in a path, or of one that chooses a logical partition."""
    return {"type": "string", "minLength": 1}


def names_of(names: Sequence[str]) -> Schema:
    """A list of these names, separated by commas."""
    choice = "|".join(names)
    return {"type": "string", "pattern": f"^({choice})(,({choice}))*$"}


def body(schema: str, *media_types: str, example: Any = None) -> Schema:
    """A request body."""
    content: Schema = {"schema": ref(schema)}
    if example is not None:
        content["example"] = example
    return {"required": True, "content": {media_type: dict(content) for media_type in media_types}}


def answer_of_many(text: str, schema: str, headers: Schema | None = None) -> Schema:
    """An answer with a document that is made of many stored items, and perhaps without some of them."""
    left_out = "How many stored items the answer leaves out because they do not fit their declaration, if any."
    number = {"schema": {"type": "integer", "minimum": 1}, "description": left_out}
    return {**answer(text, schema), "headers": {**(headers or {}), UNDECODABLE: number}}


def page(schema: str) -> Schema:
    """An answer with a page."""
    link = {"Link": {"schema": TEXT, "description": 'The next page, rel="next".'}}
    return answer_of_many("A page. It may be short; only a null cursor ends the listing.", schema, link)


def nullable(schema: Mapping[str, Any]) -> Schema:
    """Return the schema of a value that may also be null."""
    if {"type": "null"} in schema.get("anyOf", []):
        return dict(schema)
    return {"anyOf": [dict(schema), {"type": "null"}]}


def page_of(item: Schema) -> Schema:
    """The schema of a page of such items."""
    cursor = {"type": ["string", "null"], "description": "Continues the listing; null ends it."}
    lacking = "The listed index is still being built, or its items upgraded, so it may lack some. Absent otherwise."
    incomplete = {"type": "boolean", "const": True, "description": lacking}
    items = {"type": "array", "items": item, "maxItems": MAX_LIMIT}
    return {
        "type": "object",
        "required": ["items", "cursor"],
        "properties": {"items": items, "cursor": cursor, "incomplete": incomplete},
        "additionalProperties": False,
    }


def page_parameters() -> list[Schema]:
    """The query parameters of every listing."""
    directions = {"type": "string", "enum": ["asc", "desc"], "default": "asc"}
    return [
        query("limit", _LIMIT, "The most items on a page."),
        query("order", _ORDERS, "`round_robin` is the cheapest; `ordered` is by sort key over all shards."),
        query("direction", directions, "The direction of the sort keys."),
        query("prefix", _SORT_KEY, "Only sort keys that begin with this."),
        query("from", _SORT_KEY, "Only sort keys from this one on, inclusive."),
        query("to", _SORT_KEY, "Only sort keys before this one, exclusive."),
        query("cursor", _CURSOR, "The cursor of the previous page, with the same query."),
    ]


def prefer(meanings: Mapping[str, str]) -> Schema:
    """The header of RFC 7240, with what each preference means that is understood; others are ignored."""
    return header("Prefer", " ".join(f"`{preference}`: {meaning}" for preference, meaning in meanings.items()))


CONSISTENT: Final[Schema] = query(
    "consistent",
    {"type": "boolean", "default": False},
    "See every write that was acknowledged before, at twice the read units.",
)
STRICT: Final[Schema] = query(
    "strict",
    {"type": "boolean", "default": False},
    "Refuse (500 `undecodable_item`) instead of leaving out stored items that do not fit their declaration.",
)
IF_MATCH: Final = header("If-Match", "Only if the item is at one of these revisions: quoted tags, or `*`.", _TAG_LIST)
IF_NONE_MATCH: Final = header(
    "If-None-Match", "Only if the item is at none of these revisions; `*` for no item.", _TAG_LIST
)
IDEMPOTENCY_KEY: Final = header(
    "Idempotency-Key",
    "A request with the same key gets the first answer again, for 24 hours.",
    {"type": "string", "minLength": 1, "maxLength": MAX_KEY_LENGTH, "pattern": "^[ -~]+$"},
)


def singular(model: type[Any]) -> str:
    """The noun for one item, from the class name: `ContactMethod` is `contact method`."""
    return " ".join(word.lower() for word in _WORDS.findall(model.__name__)) or model.__name__


def one(model: type[Any]) -> str:
    """The noun for one item, with its indefinite article."""
    noun = singular(model)
    return f"{'an' if noun[0] in 'aeio' else 'a'} {noun}"


def plural(path: str) -> str:
    """The noun for several items, from the path that serves them."""
    return path.replace("-", " ")


def sentence(model: type[Any]) -> str:
    """The first paragraph of the class's docstring, on one line."""
    return " ".join(cleandoc(model.__doc__ or "").partition("\n\n")[0].split())
