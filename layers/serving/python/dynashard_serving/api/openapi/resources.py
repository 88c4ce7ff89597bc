"""The operations of a resource in the OpenAPI document."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, Final

from dynashard.entity import WriteGuarantee
from dynashard_serving.api.body import JSON_PATCH, MERGE_PATCH
from dynashard_serving.api.copy_wait import MOST_SECONDS
from dynashard_serving.api.deferred_writes import PREFERENCE, WRITES, transacted
from dynashard_serving.api.headers import HANDLING, MINIMAL, RETURN
from dynashard_serving.api.item_reads import INCLUDE
from dynashard_serving.api.openapi.examples import Examples
from dynashard_serving.api.openapi.many import (
    batch_operation,
    count_operation,
    operator_parameters,
    within,
)
from dynashard_serving.api.openapi.parts import (
    CONSISTENT,
    ETAG,
    IDEMPOTENCY_KEY,
    IF_MATCH,
    IF_NONE_MATCH,
    LOCATION,
    NOT_MODIFIED,
    PREFERENCE_APPLIED,
    REF,
    STRICT,
    Operation,
    Schema,
    answer,
    body,
    key_text,
    names_of,
    one,
    operation,
    page,
    page_parameters,
    plural,
    prefer,
    query,
    ref,
    sentence,
    several,
)
from dynashard_serving.api.openapi.schemas import refused_by_address, refused_by_keys, text_without
from dynashard_serving.api.openapi.security import may_write_unread, secured, secured_batch
from dynashard_serving.api.queued_creates import MOST_ITEMS
from dynashard_serving.api.resource import Resource
from dynashard_serving.api.response import JSON
from dynashard_serving.exposure import COUNT_PARAMETERS
from dynashard_serving.operation_records import Operation as Record
from dynashard_serving.operations.served import Served

_OF_KEYS: Final = ("pattern", "minLength")
"""What keys and addresses demand of their texts."""
_CHANGES: Final = ("404", "409", "412", "413", "415")


def paths_of(resource: Resource, examples: Examples, *, recorded: bool, copied: bool) -> dict[str, Any]:
    """Return the paths of a resource.

    Args:
        resource: the resource.
        examples: of its items.
        recorded: whether the API serves the records of deferred writes.
        copied: whether its items have materialized copies.
    """
    served = resource.served
    of_all = {"list": ("get", _list), "create": ("post", _create)}
    of_one = {"get": ("get", _read), "put": ("put", _put), "update": ("patch", _patch), "delete": ("delete", _delete)}
    found: dict[str, Any] = {}
    if served.serves("count"):
        found[resource.counts] = {
            "get": secured(count_operation(served, _choosing(served, examples)), served.exposed.access, "list")
        }
    if served.serves("batch"):
        found[resource.batches] = {"post": secured_batch(batch_operation(served, examples), served.exposed.access)}
    for path, operations in ((resource.root, of_all), (resource.template, of_one)):
        methods = {
            method: secured(
                _with_preferences(served, name, describe(served, examples), recorded=recorded, copied=copied),
                served.exposed.access,
                name,
            )
            for name, (method, describe) in operations.items()
            if name in served.exposed.operations
        }
        if methods:
            found[path] = methods
    if resource.template in found:
        parameters = [_path_parameter(served, name, examples) for name in served.address]
        found[resource.template] = {"parameters": parameters, **found[resource.template]}
    return dict(within(served.exposed.quota, found))


def _with_preferences(served: Served, name: str, described: Operation, *, recorded: bool, copied: bool) -> Operation:
    """The operation with what its caller may prefer: a write guarantee, to wait for copies, not to wait for a write."""
    if name == "get" and copied:
        text = f"answer when the copies of the item are current, or after that many seconds, at most {MOST_SECONDS}."
        described["parameters"].append(prefer({"wait=5": text}))
        described["responses"]["200"]["headers"]["Preference-Applied"] = PREFERENCE_APPLIED
    if served.exposed.queued and name == "create":
        return _queued(described)
    if name not in WRITES:
        return described
    preferences = {f"{HANDLING}={_levels(served)}": "the write guarantee; see docs/promises.md."}
    if name != "delete":
        preferences[f"{RETURN}={MINIMAL}"] = "answer without the item."
        described["responses"] = _with_minimal(
            described["responses"], hidden=may_write_unread(served.exposed.access, name)
        )
    if recorded and transacted(served):
        preferences[PREFERENCE] = "answer 202, and do it soon."
        headers = {
            "Location": {
                "schema": {"type": "string"},
                "description": "The path of the operation's record, which has its outcome.",
            },
            "Preference-Applied": PREFERENCE_APPLIED,
        }
        accepted = {**answer(f"Accepted with `Prefer: {PREFERENCE}`.", Record.__name__), "headers": headers}
        described["responses"] = dict(sorted({"202": accepted, **described["responses"]}.items()))
    for status in ("200", "201", "204"):
        if status in described["responses"]:
            described["responses"][status].setdefault("headers", {})["Preference-Applied"] = PREFERENCE_APPLIED
    described["parameters"] = [*described["parameters"], prefer(preferences)]
    return described


def _with_minimal(responses: Schema, *, hidden: bool) -> Schema:
    """The answers to a write, and those without the item: a create has the same status for both.

    The item is also `hidden` from a caller who may not read it, if there can be one.
    """
    if "201" in responses:
        reasons = f"the request has `Prefer: {RETURN}={MINIMAL}`" + (", or its caller may not read the item" * hidden)
        responses["201"]["description"] += f" Without a body if {reasons}."
    if "200" in responses:
        text = f"Done, with `Prefer: {RETURN}={MINIMAL}`" + (", or by a caller who may not read the item" * hidden)
        responses = {**responses, "204": {"description": f"{text}.", "headers": {"ETag": ETAG}}}
    return dict(sorted(responses.items()))


def _levels(served: Served) -> str:
    levels = [level for level in WriteGuarantee if level is not WriteGuarantee.EXACTLY_ONCE or transacted(served)]
    return "|".join(levels)


def _queued(described: Operation) -> Operation:
    content = described["requestBody"]["content"][JSON]
    listed = {"type": "array", "minItems": 1, "maxItems": MOST_ITEMS, "items": content["schema"]}
    content["schema"] = {"anyOf": [content["schema"], listed]}
    described["responses"] = {"202": answer("All items are on the queue.", "Accepted"), **described["responses"]}
    described["responses"].pop("201")
    described["parameters"] = []
    described["description"] += f" Takes one item, or a list of at most {MOST_ITEMS}. They are stored soon after."
    return described


def _operation(
    served: Served, verb: str, headline: tuple[str, str], answers: Schema, more: Sequence[str] = ()
) -> Operation:
    summary, text = headline
    return operation(f"{verb}{served.entity.__name__}", summary, served.exposed.heading, text, answers, more=more)


def _answer(served: Served, text: str, *, location: bool = False) -> Schema:
    headers = {"ETag": ETAG, "Location": LOCATION} if location else {"ETag": ETAG}
    return {**answer(text, served.entity.__name__), "headers": headers}


def _create(served: Served, examples: Examples) -> Operation:
    text = f"Creates {one(served.entity)}. {sentence(served.entity)}"
    answers = {"201": _answer(served, "Created.", location=True)}
    described = _operation(served, "create", (f"Create {one(served.entity)}", text), answers, ("409", "413", "415"))
    described["parameters"] = [IDEMPOTENCY_KEY]
    described["requestBody"] = _body(examples, served, "Create", JSON)
    return described


def _read(served: Served, examples: Examples) -> Operation:
    del examples
    name = served.entity.__name__
    item = _answer(served, "The item; a part of it if `fields` is given.")
    item["content"][JSON]["schema"] = {"anyOf": [ref(name), ref(f"{name}Part")]}
    answers = {"200": item, "304": NOT_MODIFIED}
    refused = ("404", "406", "412") if served.definition.attachments else ("404", "412")
    text = f"Reads {one(served.entity)} by its key."
    described = _operation(served, "get", (f"Read {one(served.entity)}", text), answers, refused)
    described["parameters"] = [*_include(served), _fields(served), CONSISTENT, IF_MATCH, IF_NONE_MATCH]
    return described


def _include(served: Served) -> list[Schema]:
    names = list(served.definition.attachments)
    text = f"Fields that are only sent on request, separated by commas: {', '.join(names)}."
    return [query(INCLUDE, names_of(names), text)] if names else []


def _put(served: Served, examples: Examples) -> Operation:
    answers = {"200": _answer(served, "Replaced."), "201": _answer(served, "Created.", location=True)}
    text = (
        f"Replaces {one(served.entity)}, or creates it if there is none. Use `If-Match` to replace a known revision, "
        "and `If-None-Match: *` to create only."
    )
    described = _operation(served, "put", (f"Replace or create {one(served.entity)}", text), answers, _CHANGES)
    described["parameters"] = [IF_MATCH, IF_NONE_MATCH]
    described["requestBody"] = _body(examples, served, "Replace", JSON)
    return described


def _patch(served: Served, examples: Examples) -> Operation:
    answers = {"200": _answer(served, "Changed.")}
    text = (
        "Changes the fields that the body names (JSON Merge Patch, RFC 7396; null resets a field to its default), or "
        "does the operations that it lists (JSON Patch, RFC 6902)."
    )
    described = _operation(served, "patch", (f"Change {one(served.entity)}", text), answers, _CHANGES)
    described["parameters"] = [IF_MATCH, IF_NONE_MATCH]
    described["requestBody"] = _body(examples, served, "Patch", MERGE_PATCH, JSON)
    described["requestBody"]["content"][JSON_PATCH] = {"schema": ref("JsonPatch"), "example": []}
    return described


def _delete(served: Served, examples: Examples) -> Operation:
    del examples
    answers = {"204": {"description": "Deleted."}}
    text = f"Deletes {one(served.entity)}."
    described = _operation(served, "delete", (f"Delete {one(served.entity)}", text), answers, ("404", "409", "412"))
    described["parameters"] = [IF_MATCH, IF_NONE_MATCH]
    return described


def _body(examples: Examples, served: Served, kind: str, *media_types: str) -> Schema:
    return body(f"{served.entity.__name__}{kind}", *media_types, example=examples.accepted(served, kind))


def _list(served: Served, examples: Examples) -> Operation:
    name, nouns = served.entity.__name__, plural(served.exposed.path)
    text = f"Lists the tenant's {nouns}."
    if partition := served.partition_fields(None):
        text = f"Lists the {nouns} of one {' and '.join(partition)}, or of several."
    if served.indexes:
        text += f" An index lists them by other fields: {_by_index(served)}."
    described = _operation(served, "list", (f"List {nouns}", text), {"200": page(f"{name}Page")})
    described["parameters"] = [*_listing_parameters(served), *_fields_chosen(served, examples)]
    return described


def _choosing(served: Served, examples: Examples) -> list[Schema]:
    """The parameters of a count: those of a listing that choose items."""
    taken = [each for each in _listing_parameters(served) if each["name"] in COUNT_PARAMETERS]
    return [*taken, *_fields_chosen(served, examples)]


def _fields_chosen(served: Served, examples: Examples) -> list[Schema]:
    """The parameters that are fields, plain ones first."""
    return [
        *_field_parameters(served, examples),
        *operator_parameters(served, lambda name: _operand(served, name, examples)),
    ]


def _by_index(served: Served) -> str:
    return "; ".join(
        f"`{name}` by {', '.join([*served.partition_fields(name), *served.sort_fields(name)])}"
        for name in served.indexes
    )


def _listing_parameters(served: Served) -> list[Schema]:
    parameters = [*page_parameters(), _fields(served), CONSISTENT, STRICT]
    if served.indexes:
        names = {"type": "string", "enum": list(served.indexes)}
        parameters.append(query("index", names, f"The index to list: {_by_index(served)}."))
    if served.exposed.distinct:
        names = {"type": "string", "enum": list(served.exposed.distinct)}
        parameters.append(query("distinct", names, "Over several partitions: show each value of this field once."))
    return parameters


def _fields(served: Served) -> Schema:
    names = [name for name in served.entity.model_fields if name not in served.definition.attachments]
    return query("fields", names_of(names), f"Only these fields, separated by commas: {', '.join(names)}.")


def _field_parameters(served: Served, examples: Examples) -> list[Schema]:
    partition = served.partition_fields(None)
    uses: dict[str, list[str]] = {name: ["a partition field of the table"] for name in partition}
    for name in served.sort_fields(None):
        uses.setdefault(name, []).append("a sort field of the table")
    for name in served.exposed.filters:
        if _is_text(_query_schema(served, name, examples), examples):
            uses.setdefault(name, []).append("a filter")
    repeatable = set(partition)
    for index in served.indexes:
        repeatable.update(served.partition_fields(index))
        for name in served.partition_fields(index):
            uses.setdefault(name, []).append(f"a partition field of {index}")
        for name in served.sort_fields(index):
            uses.setdefault(name, []).append(f"a sort field of {index}")
    required = set() if served.indexes else set(partition)
    return [
        query(
            name,
            several(_query_schema(served, name, examples))
            if name in repeatable
            else _query_schema(served, name, examples),
            f"Equal to this: {', '.join(how)}.",
            required=name in required,
        )
        for name, how in uses.items()
    ]


def _path_parameter(served: Served, name: str, examples: Examples) -> Schema:
    description = served.entity.model_fields[name].description or f"The {name} of {one(served.entity)}."
    schema = _field_schema(served, name, examples)
    parameter = {"name": name, "in": "path", "required": True, "schema": schema, "description": description}
    example = examples.document(f"{served.entity.__name__}Create").get(name)
    return parameter if example is None else {**parameter, "example": example}


def _query_schema(served: Served, name: str, examples: Examples) -> Schema:
    """Return the schema of a field's value in a query, which carries any text that a key can carry."""
    schema = _field_schema(served, name, examples)
    by_keys, by_address = refused_by_keys(served.definition, name), refused_by_address(served, name)
    if by_address and schema.get("pattern") == text_without(by_keys + by_address):
        del schema["pattern"]
        if by_keys:
            schema["pattern"] = text_without(by_keys)
    return schema


def _operand(served: Served, name: str, examples: Examples) -> Schema | None:
    """Return the schema of a value that a field is compared with; None if a query cannot carry it.

    A filter compares with values that the field accepts, even those that no key can carry. The bound of a range of keys
    need not be such a value if it is a text. Where no text comes before it in a key, it is not empty if the field may
    not be.
    """
    schema = _query_schema(served, name, examples)
    if not _is_text(schema, examples):
        return None
    own = served.entity.model_json_schema()["properties"][name]
    declared = {key for choice in (own, *own.get("anyOf", [])) for key in choice}
    if name in served.exposed.filters:
        return {key: value for key, value in schema.items() if key not in _OF_KEYS or key in declared}
    if schema.get("type") != "string" or "format" in schema:
        return schema
    sorts = (served.definition.sort, *(index.sort for index in served.indexes.values()))
    first = {getattr(part, "name", None) for sort in sorts for part in sort.parts[:1]}
    return key_text() if name in first and {*_OF_KEYS} & declared else {"type": "string"}


def _is_text(schema: Schema, examples: Examples) -> bool:
    """Whether a query can carry a value of a schema: a list, an object or null has no text there."""
    if "$ref" in schema:
        return _is_text(examples.schemas[schema["$ref"].removeprefix(REF)], examples)
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return any(_is_text(each, examples) for each in choices)
    return schema.get("type") not in {"array", "object", "null"}


def _field_schema(served: Served, name: str, examples: Examples) -> Schema:
    """Return the schema of a field's value in a path or a query: it is never null and has no annotations."""
    name_of_create = f"{served.entity.__name__}Create"
    described = examples.schemas.get(name_of_create, examples.schemas[served.entity.__name__])["properties"]
    schema = deepcopy(described.get(name) or examples.schemas[served.entity.__name__]["properties"][name])
    choices = [part for part in schema.get("anyOf", []) if part != {"type": "null"}]
    if len(choices) == 1:
        schema = choices[0]
    if "$ref" in schema:
        return ref(schema["$ref"].rpartition("/")[2])
    shown = {"type", "format", "enum", "const", "pattern", "minLength", "maxLength", "minimum", "maximum", "anyOf"}
    found = {word: value for word, value in schema.items() if word in shown}
    return {**key_text(), **found} if found.get("type", "string") == "string" and "enum" not in found else found
