"""What concerns many items of a resource in the OpenAPI document: operators of filters, counts and batches."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from dynashard.reads.filters import MAX_MEMBERS
from dynashard_serving.api.openapi.examples import Examples
from dynashard_serving.api.openapi.parts import (
    IDEMPOTENCY_KEY,
    TEXT,
    Operation,
    Schema,
    answer,
    answer_of_many,
    nullable,
    operation,
    plural,
    query,
    ref,
)
from dynashard_serving.api.response import JSON
from dynashard_serving.documents import REVISION
from dynashard_serving.exposure import UP_TO, Quota
from dynashard_serving.limits import DEFAULT_COUNTED, MAX_COUNTED, MAX_MIXED, MAX_NAME_LENGTH, MAX_PATCH_OPERATIONS
from dynashard_serving.operations.mixed_batches import MEMBERS
from dynashard_serving.operations.served import Served

_MEANINGS: Final[Mapping[str, str]] = {
    "ne": "Not equal to this, or absent.",
    "in": "One of these, separated by commas. Repeat the parameter for values that have commas.",
    "gt": "Greater than this.",
    "gte": "This or greater.",
    "lt": "Less than this.",
    "lte": "This or less.",
    "prefix": "Begins with this.",
    "contains": "Contains this.",
    "exists": "Whether there is a value.",
}
_FAILURE: Final[Schema] = {
    "type": "object",
    "description": "A request of a batch that was not done.",
    "required": ["ok", "error"],
    "properties": {
        "ok": {"const": False},
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": {"type": "string", "description": "Stable; docs/errors.md lists them all."},
                "message": TEXT,
                "details": {"type": "object"},
                "errors": {"type": "array", "items": {"type": "object"}},
                "retry_after": {"type": "integer"},
            },
        },
    },
}
_COUNT: Final[Schema] = {
    "type": "object",
    "required": ["count", "exact"],
    "properties": {
        "count": {"type": "integer", "minimum": 0},
        "exact": {
            "type": "boolean",
            "description": "False if there are more, or if the request could read no further.",
        },
    },
    "additionalProperties": False,
}
_RATE_LIMIT: Final[Schema] = {
    "RateLimit-Policy": {"schema": TEXT, "description": "The quota of a tenant: `q` requests in `w` seconds."},
    "RateLimit": {"schema": TEXT, "description": "`r` requests are left, for `t` seconds."},
}
_POINTER: Final[Schema] = {
    "type": "string",
    "pattern": "^(/([^~]|~[01])*)?$",
    "maxLength": MAX_NAME_LENGTH,
    "description": "A JSON Pointer, such as /title.",
}
_PLACE: Final[Schema] = {
    **_POINTER,
    "pattern": "^/([^~]|~[01])*$",
    "description": "A JSON Pointer to a field that the caller may set, such as /title, or into it.",
}
_VALUE: Final[Schema] = {"description": "Any JSON."}


def _patching(*operations: str, **members: Schema) -> Schema:
    properties = {"op": {"enum": list(operations)}, **members}
    return {"type": "object", "required": list(properties), "properties": properties}


_JSON_PATCH: Final[Schema] = {
    "type": "array",
    "description": "A JSON Patch (RFC 6902). It is done as a whole, or not at all.",
    "maxItems": MAX_PATCH_OPERATIONS,
    "items": {
        "anyOf": [
            _patching("add", "replace", path=_PLACE, value=_VALUE),
            _patching("remove", path=_PLACE),
            _patching("copy", path=_PLACE, **{"from": _POINTER}),
            _patching("move", path=_PLACE, **{"from": _PLACE}),
            _patching("test", path=_POINTER, value=_VALUE),
        ]
    },
}


def within(quota: Quota | None, paths: Mapping[str, Schema]) -> Mapping[str, Schema]:
    """Return paths whose operations have the headers of their quota, if they have one, on what they answer."""
    if quota is not None:
        for described in (each for methods in paths.values() for each in methods.values() if isinstance(each, dict)):
            # Other resources may have the same answer.
            described["responses"] = {
                status: response
                if "$ref" in response
                else {**response, "headers": {**response.get("headers", {}), **_RATE_LIMIT}}
                for status, response in described["responses"].items()
            }
    return paths


def operator_parameters(served: Served, value_of: Callable[[str], Schema | None]) -> list[Schema]:
    """Return the query parameters with operators: of declared filters, and of the first sort fields of each listing.

    `value_of` returns the schema of what a field is compared with; None if a query cannot carry it.
    """
    words: dict[str, dict[str, str]] = {
        name: dict.fromkeys(served.operators(name), "") for name in served.exposed.filters
    }
    for index in (None, *served.indexes):
        for name, ranged in served.ranged_fields(index).items():
            where = "the table" if index is None else index
            for word in ranged:
                known = words.setdefault(name, {})
                known[word] = f"{known[word]}, {where}" if known.get(word) else f" A range of keys of {where}"
    return [
        query(f"{name}[{word}]", schema, _MEANINGS[word] + (f"{where}." if where else ""))
        for name, each in words.items()
        for word, where in each.items()
        if word != "eq" and (schema := _operand(word, value_of(name))) is not None
    ]


def shared_operators(paths: Mapping[str, Schema]) -> dict[str, Schema]:
    """Return the parameters with operators as components by name, and put references to them in their place.

    A listing and a count of an entity have the same ones, of which there are many.
    """
    shared: dict[str, Schema] = {}
    for methods in paths.values():
        for described in methods.values():
            if not isinstance(described, dict) or "parameters" not in described:
                continue
            entity = described["operationId"].removeprefix("list").removeprefix("count")
            for at, parameter in enumerate(described["parameters"]):
                if "[" in parameter["name"]:
                    name = f"{entity}.{parameter['name'].replace('[', '.').rstrip(']')}"
                    shared[name] = parameter
                    described["parameters"][at] = {"$ref": f"#/components/parameters/{name}"}
    return dict(sorted(shared.items()))


def _operand(word: str, value: Schema | None) -> Schema | None:
    if word == "exists":
        return {"type": "boolean"}
    if word in ("prefix", "contains"):
        return {"type": "string", "minLength": 1}
    if word == "in" and value is not None:
        return {"type": "array", "items": value, "minItems": 1, "maxItems": MAX_MEMBERS}
    return value


def count_operation(served: Served, choosing: list[Schema]) -> Operation:
    """Return the operation that counts items; `choosing` are the parameters that choose them."""
    nouns = plural(served.exposed.path)
    text = (
        f"Counts {nouns}, by the parameters that choose them in a listing. It reads what it counts, so it ends at a "
        "bound: `exact` says whether that was all."
    )
    counted = {"200": answer_of_many("The number.", "Count")}
    described = operation(f"count{served.entity.__name__}", f"Count {nouns}", served.exposed.heading, text, counted)
    bound = {"type": "integer", "minimum": 1, "maximum": MAX_COUNTED, "default": DEFAULT_COUNTED}
    described["parameters"] = [query(UP_TO, bound, "Count at most so many."), *choosing]
    return described


def batch_operation(served: Served, examples: Examples) -> Operation:
    """Return the operation that does a batch."""
    name, nouns = served.entity.__name__, plural(served.exposed.path)
    text = (
        f"Does up to {MAX_MIXED} requests for {nouns}, each by itself as if it had been sent alone, in no order and in "
        "no transaction. A wrong item or key is an outcome. A create without an `idempotency_key` has one from the "
        "header of the batch and its place."
    )
    done = {"200": answer("An outcome for each request, in their order.", f"{name}Outcomes")}
    headline = (f"Read and write {nouns} in a batch", served.exposed.heading)
    described = operation(f"batch{name}", *headline, text, done, more=("413", "415"))
    described["parameters"] = [IDEMPOTENCY_KEY]
    schema: Schema = {"schema": ref(f"{name}Batch")}
    if {"get", "create"} <= set(_operations(served)):
        schema["example"] = {"requests": [{"operation": "get", "key": _example_of(served, examples)}]}
    described["requestBody"] = {"required": True, "content": {JSON: schema}}
    return described


def _example_of(served: Served, examples: Examples) -> dict[str, Any]:
    """A key that is as good as that of the example of a create, if there is one."""
    key, item = (examples.document(f"{served.entity.__name__}{kind}") for kind in ("Key", "Create"))
    return {**key, **{name: item[name] for name in served.address if name in item}}


def schemas_of_many(served: Served, schemas: Mapping[str, Schema], settable: Schema) -> dict[str, Schema]:
    """Return the schemas of counts, batches and JSON Patches of an entity, whose other schemas are given.

    `settable` is what a caller may set of an item, which a batch may put even if the entity is served without `create`.
    """
    name = served.entity.__name__
    found: dict[str, Schema] = {"Count": _COUNT} if served.serves("count") else {}
    if "update" in served.exposed.operations:
        found["JsonPatch"] = _JSON_PATCH
    if not served.serves("batch"):
        return found
    parts = {
        "key": ref(f"{name}Key"),
        "item": ref(f"{name}Create") if f"{name}Create" in schemas else settable,
        "patch": {"anyOf": [ref(f"{name}Patch"), ref("JsonPatch")]},
        "consistent": {"type": "boolean"},
        "idempotency_key": IDEMPOTENCY_KEY["schema"],
        "if_match": TEXT,
        "if_none_match": TEXT,
    }
    requests = [_request(operation, parts) for operation in _operations(served)]
    item = {"anyOf": [ref(name), ref(f"{name}Revision")]}
    stored = {
        "type": "object",
        "required": ["item", "created"],
        "properties": {"item": item, "created": {"type": "boolean"}},
    }
    results = [*item["anyOf"], stored, {"type": "null"}]
    success = {
        "type": "object",
        "required": ["ok", "result"],
        "properties": {"ok": {"const": True}, "result": {"anyOf": results}},
    }
    found["Failure"] = _FAILURE
    found[f"{name}Key"] = _key(served, schemas[name])
    found[f"{name}Revision"] = _revision(served, schemas[name])
    found[f"{name}Batch"] = _listing_of("requests", requests[0] if len(requests) == 1 else {"oneOf": requests})
    found[f"{name}Outcomes"] = _listing_of("outcomes", {"anyOf": [success, ref("Failure")]})
    return found


def _operations(served: Served) -> list[str]:
    return [name for name in MEMBERS if name in served.exposed.operations]


def _key(served: Served, shown: Schema) -> Schema:
    known = shown["properties"]
    shape = {
        name: {k: v for k, v in known[name].items() if k not in ("default", "readOnly")} for name in served.address
    }
    return {"type": "object", "required": list(served.address), "properties": shape, "additionalProperties": False}


def _revision(served: Served, shown: Schema) -> Schema:
    """What is answered of a written item that its sender may not read, or for which the answer has no room."""
    shape = {name: shown["properties"][name] for name in (*served.definition.key_fields, REVISION)}
    return {
        "type": "object",
        "description": "The key and the revision, in place of an item that may not be read or does not fit the answer.",
        "required": [*served.key_fields, REVISION],
        "properties": shape,
        "additionalProperties": False,
    }


def _request(operation: str, parts: Mapping[str, Any]) -> Schema:
    members = {name: parts[name] for name in MEMBERS[operation]}
    needed = [name for name in members if name in ("key", "item", "patch")]
    others = {name: nullable(members[name]) for name in members if name not in needed}
    return {
        "type": "object",
        "required": ["operation", *needed],
        "properties": {"operation": {"const": operation}, **members, **others},
        "additionalProperties": False,
    }


def _listing_of(name: str, member: Schema) -> Schema:
    return {
        "type": "object",
        "required": [name],
        "properties": {name: {"type": "array", "minItems": 1, "maxItems": MAX_MIXED, "items": member}},
        "additionalProperties": False,
    }
