"""What a domain declares besides entities, in the OpenAPI document: families, counters, edges, roll-ups, own reads."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel, create_model

from dynashard_patterns.edges import NODE
from dynashard_serving.api.edges import Counted, EdgePaths
from dynashard_serving.api.listings import FamilyResource
from dynashard_serving.api.openapi.counters import counters_described
from dynashard_serving.api.openapi.parts import (
    CONSISTENT,
    ETAG,
    IF_MATCH,
    IF_NONE_MATCH,
    NOT_MODIFIED,
    STRICT,
    Described,
    Operation,
    Schema,
    answer,
    answer_of_many,
    body,
    key_text,
    operation,
    page,
    page_of,
    page_parameters,
    parameters_of,
    plural,
    query,
    ref,
    sentence,
    several,
    singular,
)
from dynashard_serving.api.openapi.schemas import CONTROLS
from dynashard_serving.api.openapi.security import secured, secured_family, secured_item_read
from dynashard_serving.api.resource import PREFIX, Resource
from dynashard_serving.api.response import JSON
from dynashard_serving.declare import Endpoint, ItemRead, ServedCounter, ServedEdges, ServedRollUps, item_reads_of
from dynashard_serving.operations.computed import right_of
from dynashard_serving.operations.edges import EdgesWanted, NewEdge, Words
from dynashard_serving.operations.roll_ups import roll_ups_endpoint

_RIGHTS: Final = {"add": "create", "count": "list"}
"""The rights that operations of edges need, if they are called otherwise."""
_ADDRESSABLE: Final = NODE.replace("[^:]", rf"[^:?{CONTROLS}]")
"""A node that a URL can carry."""
_EXAMPLE: Final = {"node": "User.9", "other": "User.12"}


def described(served: ServedCounter | ServedEdges | ServedRollUps | Endpoint) -> Described:
    """Return what the document says of a declaration."""
    if isinstance(served, ServedCounter):
        return counters_described(served)
    if isinstance(served, ServedEdges):
        return _Edges(served).described()
    return _read(roll_ups_endpoint(served) if isinstance(served, ServedRollUps) else served)


def family_listing(family: FamilyResource) -> Operation:
    """Return the listing of entities that share their logical partitions."""
    nested, first = family.family.nested, family.members[0]
    names = [plural(f"{singular(each.entity)}s") for each in family.members]
    summary = f"List {', '.join(names[:-1])} and {names[-1]} together"
    text = "Lists items of several kinds that are stored together, in one listing; `type` names the kind of each."
    listing = operation(
        f"list{family.schema.removesuffix('Page')}", summary, family.tag, text, {"200": page(family.schema)}
    )
    keys = [
        query(name, several(key_text()), "Part of the key.", required=True) for name in first.partition_fields(None)
    ]
    below = [query(name, key_text(), "Only this one, and what is below it.") for name in nested]
    listing["parameters"] = [*page_parameters(), CONSISTENT, STRICT, *keys, *below]
    return secured_family(listing, family.members)


def item_reads(resource: Resource) -> Described:
    """Return what the document says of reads about items of a resource, without the parameters of an item's path."""
    paths: dict[str, Schema] = {}
    schemas: dict[str, Schema] = {}
    for each in item_reads_of(resource.served.entity):
        read, about = _described_read(each, resource.exposed.heading, "404")
        read = secured_item_read(read, each.access, right_of(each), resource.served)
        paths[f"{resource.template}/{each.path}"] = {"get": read}
        schemas |= about
    return Described(paths, schemas)


def _read(endpoint: Endpoint) -> Described:
    """Describe a read that the domain computes."""
    read, schemas = _described_read(endpoint, endpoint.tag or endpoint.path)
    read = secured(read, endpoint.access, right_of(endpoint))
    return Described({f"{PREFIX}/{endpoint.path}": {"get": read}}, schemas)


def _described_read(declared: Endpoint | ItemRead, tag: str, *refusals: str) -> tuple[Operation, Mapping[str, Schema]]:
    """Return the operation of a read that the domain computes, and the schemas of its answer."""
    name, model = declared.answer.__name__, declared.answer
    text, verb = sentence(model), "get"
    if declared.many:
        text, verb = "The items, in order.", "list"
        items: type = list[model]  # type: ignore[valid-type]
        model = create_model(f"{name}List", __doc__=text, items=(items, ...))
    answers = {"200": answer_of_many(text, model.__name__)}
    read = operation(f"{verb}{name}", declared.summary, tag, declared.text, answers, more=("406", *refusals))
    read["parameters"] = parameters_of(declared.request)
    return read, {model.__name__: model.model_json_schema(mode="serialization")}


class _Edges:
    """What the document says of edges."""

    def __init__(self, served: ServedEdges) -> None:
        self._model = served.edges.model
        self._name = served.edges.model.__name__
        self._tag = served.tag or served.path
        self._words = Words(served.verb)
        self._paths = EdgePaths(served)
        self._rules = served.access

    def described(self) -> Described:
        """Return the paths of edges and their schemas."""
        paths: dict[str, Schema] = {
            self._paths.root: {"get": self._list(), "post": self._add()},
            self._paths.counts: {"get": self._count()},
            self._paths.pair: {"parameters": self._ends(), "get": self._get(), "delete": self._remove()},
        }
        return Described(paths, self._schemas())

    def _ends(self) -> list[Schema]:
        """The parameters of an edge's path."""
        texts = {"node": f"The {self._words.doer}.", "other": f"The {self._words.past} node."}
        return [
            {
                "name": name,
                "in": "path",
                "required": True,
                "schema": {"type": "string", "pattern": NODE},
                "description": text,
                "example": _EXAMPLE[name],
            }
            for name, text in texts.items()
        ]

    def _schemas(self) -> dict[str, Schema]:
        """The schemas of edges, of a page of them, of a new one, and of counts."""
        words, name = self._words, self._name
        new = NewEdge.model_json_schema()
        new["description"] = f"The {words.doer} and the node to {words.verb}."
        for end in new["properties"].values():
            end["pattern"] = _ADDRESSABLE
        numbers: dict[str, Any] = {words.doing: (int, ...), f"{words.doer}s": (int, ...)}
        text = f"The number of nodes that a node {words.says}, and of its {words.doer}s."
        counts = create_model(f"{name}Counts", __doc__=text, **numbers)
        edge = self._model.model_json_schema(mode="serialization")
        edge["properties"]["revision"] = {"type": "string", "readOnly": True}
        return {
            f"{name}Create": new,
            f"{name}Counts": counts.model_json_schema(),
            name: edge,
            f"{name}Page": page_of(ref(name)),
        }

    def _add(self) -> Operation:
        words = self._words
        answers = {
            "201": answer(f"The node is {words.past} now.", self._name),
            "200": answer(f"The node was {words.past} already.", self._name),
        }
        text = f"Makes one node {words.verb} another. A repeat has no effect."
        summary = f"{words.verb.capitalize()} a node"
        added = self._operation("add", summary, text, answers, "409", "413", "415")
        return {**added, "requestBody": body(f"{self._name}Create", JSON, example=_EXAMPLE)}

    def _list(self) -> Operation:
        words = self._words
        summary = f"List {words.past} nodes or {words.doer}s"
        text = f"Lists the nodes that a node {words.says}, or those that {words.verb} it."
        return self._operation("list", summary, text, {"200": page(f"{self._name}Page")}, query=EdgesWanted)

    def _count(self) -> Operation:
        words = self._words
        answers = {"200": answer("The counts.", f"{self._name}Counts")}
        summary = f"Count {words.past} nodes and {words.doer}s"
        text = f"Counts the nodes that a node {words.says}, and those that {words.verb} it."
        return self._operation("count", summary, text, answers, query=Counted)

    def _get(self) -> Operation:
        text = "Reads the edge from one node to another. 404 if there is none."
        found = {**answer("The edge.", self._name), "headers": {"ETag": ETAG}}
        described = self._operation("get", "Read an edge", text, {"200": found, "304": NOT_MODIFIED}, "404", "412")
        return {**described, "parameters": [CONSISTENT, IF_MATCH, IF_NONE_MATCH]}

    def _remove(self) -> Operation:
        words = self._words
        answers = {"204": {"description": f"The node is no longer {words.past}."}}
        text = f"Makes one node no longer {words.verb} another."
        summary = f"{words.undo.capitalize()} a node"
        described = self._operation("delete", summary, text, answers, "404", "409", "412")
        return {**described, "parameters": [IF_MATCH, IF_NONE_MATCH]}

    def _operation(
        self, verb: str, summary: str, text: str, answers: Schema, *more: str, query: type[BaseModel] | None = None
    ) -> Operation:
        found = operation(f"{verb}{self._name}", summary, self._tag, text, answers, more=more)
        found = {**found, "parameters": [] if query is None else parameters_of(query)}
        return secured(found, self._rules, _RIGHTS.get(verb, verb))
