"""The operations of one resource, and of a listing of several, in the OpenAPI document."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, Final

from dynashard.entity import WriteGuarantee
from dynashard_serving.api.asynchronous import PREFERENCE
from dynashard_serving.api.attachments import INCLUDE
from dynashard_serving.api.bodies import MERGE_PATCH
from dynashard_serving.api.conditional import HANDLING, MINIMAL, RETURN
from dynashard_serving.api.deferred import WRITES, transacted
from dynashard_serving.api.describing import (
    CONSISTENT,
    ETAG,
    IDEMPOTENCY_KEY,
    IF_MATCH,
    IF_NONE_MATCH,
    LOCATION,
    PREFERENCE_APPLIED,
    STRICT,
    Operation,
    Schema,
    answer,
    body,
    names_of,
    operation,
    page,
    page_parameters,
    prefer,
    query,
    ref,
    several,
)
from dynashard_serving.api.examples import Examples
from dynashard_serving.api.family_listing import FamilyResource
from dynashard_serving.api.field_patterns import refused_by_address, refused_by_keys, without
from dynashard_serving.api.nouns import one, plural, sentence, singular
from dynashard_serving.api.queued import MOST_ITEMS
from dynashard_serving.api.resource import Resource
from dynashard_serving.api.responses import JSON
from dynashard_serving.api.waiting import MOST_SECONDS
from dynashard_serving.operation_records import Operation as Record

_CHANGES: Final = ("404", "409", "412", "413", "415")


def paths_of(resource: Resource, examples: Examples, *, recorded: bool, copied: bool) -> dict[str, Any]:
    """Return the paths of a resource.

    Args:
        resource: the resource.
        examples: of its items.
        recorded: whether the API serves the records of deferred writes.
        copied: whether its items have materialized copies.
    """
    of_all = {"list": ("get", _list), "create": ("post", _create)}
    of_one = {"get": ("get", _read), "put": ("put", _put), "update": ("patch", _patch), "delete": ("delete", _delete)}
    found: dict[str, Any] = {}
    for path, operations in ((resource.root, of_all), (resource.template, of_one)):
        served = {
            method: _with_preferences(resource, name, describe(resource, examples), recorded=recorded, copied=copied)
            for name, (method, describe) in operations.items()
            if name in resource.operations
        }
        if served:
            found[path] = served
    if resource.template in found:
        parameters = [_path_parameter(resource, name, examples) for name in resource.path_fields]
        found[resource.template] = {"parameters": parameters, **found[resource.template]}
    return found


def family_listing(family: FamilyResource) -> Operation:
    """The listing of entities that share their logical partitions."""
    first = family.members[0]
    names = [plural(f"{singular(each.entity)}s") for each in family.members]
    summary = f"List {', '.join(names[:-1])} and {names[-1]} together"
    text = "Lists items of several kinds that are stored together, in one listing; `type` names the kind of each."
    described = operation(
        f"list{family.schema.removesuffix('Page')}", summary, family.tag, text, {"200": page(family.schema)}
    )
    keys = [
        query(name, several(_key_text()), "Part of the key.", required=True) for name in first.partition_fields(None)
    ]
    nested = [query(name, _key_text(), "Only this one, and what is below it.") for name in family.nested]
    described["parameters"] = [*page_parameters(), CONSISTENT, STRICT, *keys, *nested]
    return described


def _with_preferences(
    resource: Resource, name: str, described: Operation, *, recorded: bool, copied: bool
) -> Operation:
    """The operation with what its caller may prefer: a level of care, to wait for copies, not to wait for a write."""
    if name == "get" and copied:
        text = f"answer when the copies of the item are current, or after that many seconds, at most {MOST_SECONDS}."
        described["parameters"].append(prefer({"wait=5": text}))
        described["responses"]["200"]["headers"]["Preference-Applied"] = PREFERENCE_APPLIED
    if resource.queued and name == "create":
        return _queued(described)
    if name not in WRITES:
        return described
    preferences = {f"{HANDLING}={_levels(resource)}": "the level of care; see docs/promises.md."}
    if name != "delete":
        preferences[f"{RETURN}={MINIMAL}"] = "answer without the item."
        described["responses"] = _with_minimal(described["responses"])
    if recorded and transacted(resource):
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


def _with_minimal(responses: Schema) -> Schema:
    """The answers to a write, and those to one whose caller prefers no item: a create has the same status for both."""
    if "201" in responses:
        responses["201"]["description"] += f" Without a body if the request has `Prefer: {RETURN}={MINIMAL}`."
    if "200" in responses:
        responses = {
            **responses,
            "204": {"description": f"Done, with `Prefer: {RETURN}={MINIMAL}`.", "headers": {"ETag": ETAG}},
        }
    return dict(sorted(responses.items()))


def _levels(resource: Resource) -> str:
    levels = [level for level in WriteGuarantee if level is not WriteGuarantee.EXACTLY_ONCE or transacted(resource)]
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
    resource: Resource, verb: str, headline: tuple[str, str], answers: Schema, more: Sequence[str] = ()
) -> Operation:
    summary, text = headline
    return operation(f"{verb}{resource.entity.__name__}", summary, resource.tag, text, answers, more=more)


def _answer(resource: Resource, text: str, *, location: bool = False) -> Schema:
    headers = {"ETag": ETAG, "Location": LOCATION} if location else {"ETag": ETAG}
    return {**answer(text, resource.entity.__name__), "headers": headers}


def _create(resource: Resource, examples: Examples) -> Operation:
    text = f"Creates {one(resource.entity)}. {sentence(resource.entity)}"
    answers = {"201": _answer(resource, "Created.", location=True)}
    described = _operation(resource, "create", (f"Create {one(resource.entity)}", text), answers, ("409", "413", "415"))
    described["parameters"] = [IDEMPOTENCY_KEY]
    described["requestBody"] = _body(examples, f"{resource.entity.__name__}Create", JSON)
    return described


def _read(resource: Resource, examples: Examples) -> Operation:
    del examples
    unchanged = {
        "description": "Not modified: the item is at the revision of If-None-Match.",
        "headers": {"ETag": ETAG},
    }
    name = resource.entity.__name__
    item = _answer(resource, "The item; a part of it if `fields` is given.")
    item["content"][JSON]["schema"] = {"anyOf": [ref(name), ref(f"{name}Part")]}
    answers = {"200": item, "304": unchanged}
    refused = ("404", "406", "412") if resource.definition.attachments else ("404", "412")
    text = f"Reads {one(resource.entity)} by its key."
    described = _operation(resource, "get", (f"Read {one(resource.entity)}", text), answers, refused)
    described["parameters"] = [*_include(resource), _fields(resource), CONSISTENT, IF_MATCH, IF_NONE_MATCH]
    return described


def _include(resource: Resource) -> list[Schema]:
    names = list(resource.definition.attachments)
    text = f"Fields that are only sent on request, separated by commas: {', '.join(names)}."
    return [query(INCLUDE, names_of(names), text)] if names else []


def _put(resource: Resource, examples: Examples) -> Operation:
    answers = {"200": _answer(resource, "Replaced."), "201": _answer(resource, "Created.", location=True)}
    text = (
        f"Replaces {one(resource.entity)}, or creates it if there is none. Use `If-Match` to replace a known revision, "
        "and `If-None-Match: *` to create only."
    )
    described = _operation(resource, "put", (f"Replace or create {one(resource.entity)}", text), answers, _CHANGES)
    described["parameters"] = [IF_MATCH, IF_NONE_MATCH]
    described["requestBody"] = _body(examples, f"{resource.entity.__name__}Replace", JSON)
    return described


def _patch(resource: Resource, examples: Examples) -> Operation:
    answers = {"200": _answer(resource, "Changed.")}
    text = "Changes the fields that the body names (JSON Merge Patch, RFC 7396). Null resets a field to its default."
    described = _operation(resource, "patch", (f"Change {one(resource.entity)}", text), answers, _CHANGES)
    described["parameters"] = [IF_MATCH, IF_NONE_MATCH]
    described["requestBody"] = _body(examples, f"{resource.entity.__name__}Patch", MERGE_PATCH, JSON)
    return described


def _delete(resource: Resource, examples: Examples) -> Operation:
    del examples
    answers = {"204": {"description": "Deleted."}}
    text = f"Deletes {one(resource.entity)}."
    described = _operation(resource, "delete", (f"Delete {one(resource.entity)}", text), answers, ("404", "409", "412"))
    described["parameters"] = [IF_MATCH, IF_NONE_MATCH]
    return described


def _body(examples: Examples, name: str, *media_types: str) -> Schema:
    return body(name, *media_types, example=examples.document(name))


def _list(resource: Resource, examples: Examples) -> Operation:
    name, nouns = resource.entity.__name__, plural(resource.path)
    text = f"Lists the tenant's {nouns}."
    if partition := resource.partition_fields(None):
        text = f"Lists the {nouns} of one {' and '.join(partition)}, or of several."
    if resource.indexes:
        text += f" An index lists them by other fields: {_by_index(resource)}."
    described = _operation(resource, "list", (f"List {nouns}", text), {"200": page(f"{name}Page")})
    described["parameters"] = [*_listing_parameters(resource), *_field_parameters(resource, examples)]
    return described


def _by_index(resource: Resource) -> str:
    return "; ".join(
        f"`{name}` by {', '.join([*resource.partition_fields(name), *resource.sort_fields(name)])}"
        for name in resource.indexes
    )


def _listing_parameters(resource: Resource) -> list[Schema]:
    parameters = [*page_parameters(), _fields(resource), CONSISTENT, STRICT]
    if resource.indexes:
        names = {"type": "string", "enum": list(resource.indexes)}
        parameters.append(query("index", names, f"The index to list: {_by_index(resource)}."))
    if resource.distinct:
        names = {"type": "string", "enum": list(resource.distinct)}
        parameters.append(query("distinct", names, "Over several partitions: show each value of this field once."))
    return parameters


def _fields(resource: Resource) -> Schema:
    names = [name for name in resource.entity.model_fields if name not in resource.definition.attachments]
    return query("fields", names_of(names), f"Only these fields, separated by commas: {', '.join(names)}.")


def _field_parameters(resource: Resource, examples: Examples) -> list[Schema]:
    partition = resource.partition_fields(None)
    uses: dict[str, list[str]] = {name: ["a partition field of the table"] for name in partition}
    for name in resource.sort_fields(None):
        uses.setdefault(name, []).append("a sort field of the table")
    for name in resource.filters:
        uses.setdefault(name, []).append("a filter")
    repeatable = set(partition)
    for index in resource.indexes:
        repeatable.update(resource.partition_fields(index))
        for name in resource.partition_fields(index):
            uses.setdefault(name, []).append(f"a partition field of {index}")
        for name in resource.sort_fields(index):
            uses.setdefault(name, []).append(f"a sort field of {index}")
    required = set() if resource.indexes else set(partition)
    return [
        query(
            name,
            several(_query_schema(resource, name, examples))
            if name in repeatable
            else _query_schema(resource, name, examples),
            f"Equal to this: {', '.join(how)}.",
            required=name in required,
        )
        for name, how in uses.items()
    ]


def _path_parameter(resource: Resource, name: str, examples: Examples) -> Schema:
    description = resource.entity.model_fields[name].description or f"The {name} of {one(resource.entity)}."
    schema = _field_schema(resource, name, examples)
    parameter = {"name": name, "in": "path", "required": True, "schema": schema, "description": description}
    example = examples.document(f"{resource.entity.__name__}Create").get(name)
    return parameter if example is None else {**parameter, "example": example}


def _query_schema(resource: Resource, name: str, examples: Examples) -> Schema:
    """Return the schema of a field's value in a query, which carries any text that a key can carry."""
    schema = _field_schema(resource, name, examples)
    by_keys, by_address = refused_by_keys(resource.definition, name), refused_by_address(resource, name)
    if by_address and schema.get("pattern") == without(by_keys + by_address):
        del schema["pattern"]
        if by_keys:
            schema["pattern"] = without(by_keys)
    return schema


def _field_schema(resource: Resource, name: str, examples: Examples) -> Schema:
    """Return the schema of a field's value in a path or a query: it is never null and has no annotations."""
    name_of_create = f"{resource.entity.__name__}Create"
    described = examples.schemas.get(name_of_create, examples.schemas[resource.entity.__name__])["properties"]
    schema = deepcopy(described.get(name) or examples.schemas[resource.entity.__name__]["properties"][name])
    choices = [part for part in schema.get("anyOf", []) if part != {"type": "null"}]
    if len(choices) == 1:
        schema = choices[0]
    if "$ref" in schema:
        return ref(schema["$ref"].rpartition("/")[2])
    shown = {"type", "format", "enum", "const", "pattern", "minLength", "maxLength", "minimum", "maximum", "anyOf"}
    found = {word: value for word, value in schema.items() if word in shown}
    return {**_key_text(), **found} if found.get("type", "string") == "string" and "enum" not in found else found


def _key_text() -> Schema:
    return {"type": "string", "minLength": 1}
