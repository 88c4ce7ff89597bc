"""Edges of a graph over HTTP: who follows whom, listed from either end."""

import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from pydantic import BaseModel, create_model

from dynashard.errors import NotFoundError
from dynashard_patterns.edges import NODE
from dynashard_serving.api.bodies import json_object
from dynashard_serving.api.conditional import etag
from dynashard_serving.api.describing import Operation, Schema, answer, body, operation, page, page_of, ref
from dynashard_serving.api.extra_endpoint import ExtraEndpoint, Served, answered, asked, parameters_of
from dynashard_serving.api.listing import answered as page_answered
from dynashard_serving.api.parameters import consistent_only
from dynashard_serving.api.request import ApiRequest, path_values
from dynashard_serving.api.resource import PREFIX
from dynashard_serving.api.responses import JSON, Response
from dynashard_serving.backend import Backend
from dynashard_serving.declare import ServedEdges
from dynashard_serving.documents import validated
from dynashard_serving.edges import WAYS, EdgesWanted, Graph, NewEdge, Node, Words
from dynashard_serving.operations.item_reads import shown

_EXAMPLE: Final = {"node": "User.9", "other": "User.12"}


class Counted(BaseModel):
    """The query of counts."""

    of: Node


def endpoints_of(served: ServedEdges) -> Sequence[ExtraEndpoint]:
    """Return the paths of edges: all of a node, their counts, and one edge."""
    routes, described = _Routes(served), _Documentation(served)
    return (
        ExtraEndpoint(
            routes.root,
            {"GET": Served(routes.list, described.list), "POST": Served(routes.add, described.add)},
            described.schemas,
            expensive=True,
        ),
        ExtraEndpoint(f"{routes.root}/counts", {"GET": Served(routes.count, described.count)}, dict),
        ExtraEndpoint(
            routes.pair,
            {"GET": Served(routes.read, described.read), "DELETE": Served(routes.remove, described.remove)},
            dict,
            rule=re.escape(routes.root) + r"/[^/]+/[\s\S]+",
            parameters=described.ends,
        ),
    )


class _Routes:
    """What the methods do."""

    def __init__(self, served: ServedEdges) -> None:
        self.root = f"{PREFIX}/{served.path}"
        self.pair = f"{self.root}/{{node}}/{{other}}"
        self._edges = served.edges
        self._words = Words(served.verb)

    def add(self, backend: Backend, incoming: ApiRequest) -> Response[str]:
        wanted = validated(NewEdge, json_object(incoming))
        added = self._graph(backend).store.add(incoming.tenant, wanted.node, wanted.other)
        location = "/".join([self.root, *(quote(end, safe="") for end in (wanted.node, wanted.other))])
        status = HTTPStatus.CREATED if added.created else HTTPStatus.OK
        return answered(shown(added.edge), status, {**etag(added.edge.revision), "Location": location})

    def list(self, backend: Backend, incoming: ApiRequest) -> Response[str]:
        page = self._graph(backend).page(incoming.tenant, asked(EdgesWanted, incoming.query))
        return page_answered(self.root, incoming.query, page)

    def count(self, backend: Backend, incoming: ApiRequest) -> Response[str]:
        node, graph = asked(Counted, incoming.query).of, self._graph(backend)
        forward, backward = (graph.count(incoming.tenant, node, way) for way in WAYS)
        return answered({self._words.doing: forward, f"{self._words.doer}s": backward})

    def read(self, backend: Backend, incoming: ApiRequest) -> Response[str]:
        consistent = consistent_only(incoming.query)
        found = self._graph(backend).get(incoming.tenant, *self._ends(incoming), consistent=consistent)
        return answered(shown(found), headers=etag(found.revision))

    def remove(self, backend: Backend, incoming: ApiRequest) -> Response[str]:
        consistent_only(incoming.query, allowed=False)
        self._graph(backend).store.remove(incoming.tenant, *self._ends(incoming))
        return Response(HTTPStatus.NO_CONTENT, body="")

    def _graph(self, backend: Backend) -> Graph:
        return Graph(backend, self._edges)

    def _ends(self, incoming: ApiRequest) -> tuple[str, str]:
        ends = path_values(incoming.path, f"{self.root}/", 2)
        if ends is None:
            raise NotFoundError(f"{incoming.path} is not the address of an edge: {self.pair}")
        return ends[0], ends[1]


class _Documentation:
    """What the OpenAPI document says of the methods."""

    def __init__(self, served: ServedEdges) -> None:
        self._model = served.edges.model
        self._name = served.edges.model.__name__
        self._tag = served.tag or served.path
        self._words = Words(served.verb)

    @property
    def ends(self) -> tuple[Schema, ...]:
        """The parameters of an edge's path."""
        texts = {"node": f"The {self._words.doer}.", "other": f"The {self._words.past} node."}
        return tuple(
            {
                "name": name,
                "in": "path",
                "required": True,
                "schema": {"type": "string", "pattern": NODE},
                "description": text,
                "example": _EXAMPLE[name],
            }
            for name, text in texts.items()
        )

    def schemas(self) -> dict[str, Schema]:
        """The schemas of edges, of a page of them, of a new one, and of counts."""
        words, name = self._words, self._name
        new = NewEdge.model_json_schema()
        new["description"] = f"The {words.doer} and the node to {words.verb}."
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

    def add(self) -> Operation:
        words = self._words
        answers = {
            "201": answer(f"The node is {words.past} now.", self._name),
            "200": answer(f"The node was {words.past} already.", self._name),
        }
        text = f"Makes one node {words.verb} another. A repeat has no effect."
        summary = f"{words.verb.capitalize()} a node"
        described = self._described("add", summary, text, answers, "409", "413", "415")
        return {**described, "requestBody": body(f"{self._name}Create", JSON, example=_EXAMPLE)}

    def list(self) -> Operation:
        words = self._words
        summary = f"List {words.past} nodes or {words.doer}s"
        text = f"Lists the nodes that a node {words.says}, or those that {words.verb} it."
        return self._described("list", summary, text, {"200": page(f"{self._name}Page")}, query=EdgesWanted)

    def count(self) -> Operation:
        words = self._words
        answers = {"200": answer("The counts.", f"{self._name}Counts")}
        summary = f"Count {words.past} nodes and {words.doer}s"
        text = f"Counts the nodes that a node {words.says}, and those that {words.verb} it."
        return self._described("count", summary, text, answers, query=Counted)

    def read(self) -> Operation:
        text = "Reads the edge from one node to another. 404 if there is none."
        return self._described("get", "Read an edge", text, {"200": answer("The edge.", self._name)}, "404")

    def remove(self) -> Operation:
        words = self._words
        answers = {"204": {"description": f"The node is no longer {words.past}."}}
        text = f"Makes one node no longer {words.verb} another."
        return self._described("delete", f"{words.undo.capitalize()} a node", text, answers, "404", "409")

    def _described(
        self, verb: str, summary: str, text: str, answers: Schema, *more: str, query: type[BaseModel] | None = None
    ) -> Operation:
        described = operation(f"{verb}{self._name}", summary, self._tag, text, answers, more=more)
        return {**described, "parameters": [] if query is None else parameters_of(query)}
