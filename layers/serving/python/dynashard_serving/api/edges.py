"""Edges of a graph over HTTP: who follows whom, listed from either end."""

import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel

from dynashard.errors import NotFoundError
from dynashard.service import Dynashard
from dynashard_serving.api.headers import conditions_of, etag
from dynashard_serving.api.listings import page_response
from dynashard_serving.api.parameters import consistent_only, model_of
from dynashard_serving.api.request import ApiRequest, path_values
from dynashard_serving.api.resource import PREFIX
from dynashard_serving.api.response import Response, json_response
from dynashard_serving.declare import ServedEdges
from dynashard_serving.documents import validated
from dynashard_serving.operations.edges import WAYS, EdgesWanted, Graph, NewEdge, Node, Words
from dynashard_serving.operations.item_reads import is_shown, shown


class Counted(BaseModel):
    """The query of counts."""

    of: Node


class EdgePaths:
    """The paths of edges: of all of a node, of their counts, and of one edge.

    Attributes:
        root: the path of all of a node.
        counts: the path of their counts.
        pair: the paths of single edges, as documentation writes them.
        rule: a regular expression for them.
    """

    def __init__(self, served: ServedEdges) -> None:
        self.root = f"{PREFIX}/{served.path}"
        self.counts = f"{self.root}/counts"
        self.pair = f"{self.root}/{{node}}/{{other}}"
        self.rule = re.escape(self.root) + r"/[^/]+/[\s\S]+"


class EdgeRoutes:
    """The routes of edges."""

    def __init__(self, served: ServedEdges, paths: EdgePaths, backend: Dynashard) -> None:
        self._paths = paths
        self._words = Words(served.verb)
        self._graph = Graph(backend, served)

    def add(self, incoming: ApiRequest) -> Response[Any]:
        """`POST`: 201, or 200 if the edge exists."""
        wanted = validated(NewEdge, incoming.json_object())
        added = self._graph.add(incoming.caller, wanted.node, wanted.other)
        location = "/".join([self._paths.root, *(quote(end, safe="") for end in (wanted.node, wanted.other))])
        status = HTTPStatus.CREATED if added.created else HTTPStatus.OK
        return json_response(shown(added.edge), status, {**etag(added.edge.revision), "Location": location})

    def list(self, incoming: ApiRequest) -> Response[Any]:
        """`GET` of all: a page of a node's edges."""
        page = self._graph.page(incoming.caller, model_of(EdgesWanted, incoming.query))
        return page_response(self._paths.root, incoming.query, page)

    def count(self, incoming: ApiRequest) -> Response[Any]:
        """`GET` of the counts: those of a node, both ways."""
        node, graph = model_of(Counted, incoming.query).of, self._graph
        forward, backward = (graph.count(incoming.caller, node, way) for way in WAYS)
        return json_response({self._words.doing: forward, f"{self._words.doer}s": backward})

    def get(self, incoming: ApiRequest) -> Response[Any]:
        """`GET` of an edge: 200, 304 if `If-None-Match` names its revision, or 404 if there is none."""
        consistent, conditions = consistent_only(incoming.query), conditions_of(incoming.headers)
        found = self._graph.get(incoming.caller, *self._ends(incoming), consistent=consistent)
        if not is_shown(conditions, found.revision):
            return Response(HTTPStatus.NOT_MODIFIED, body="", headers=etag(found.revision))
        return json_response(shown(found), headers=etag(found.revision))

    def remove(self, incoming: ApiRequest) -> Response[Any]:
        """`DELETE`: 204, or 404 if there is no such edge."""
        consistent_only(incoming.query, allowed=False)
        conditions = conditions_of(incoming.headers)
        self._graph.remove(incoming.caller, *self._ends(incoming), conditions=conditions)
        return Response(HTTPStatus.NO_CONTENT, body="")

    def _ends(self, incoming: ApiRequest) -> Sequence[str]:
        ends = path_values(incoming.path, f"{self._paths.root}/", 2)
        if ends is None:
            raise NotFoundError(f"{incoming.path} is not the address of an edge: {self._paths.pair}")
        return ends
