"""Who follows whom, over HTTP: edges of a graph, listed from either end."""

import re
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from pydantic import BaseModel

from domain import FOLLOWS, Follow
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
from dynashard_serving.documents import validated
from dynashard_serving.edges import WAYS, EdgesWanted, Graph, NewEdge, Node
from dynashard_serving.operations.item_reads import shown

ROOT: Final = f"{PREFIX}/follows"
PAIR: Final = f"{ROOT}/{{node}}/{{other}}"
_TAG: Final = "follows"


class FollowCreate(NewEdge):
    """The follower and the node to follow."""


class Counted(BaseModel):
    """The query of counts."""

    of: Node


class FollowCounts(BaseModel):
    """The number of nodes that a node follows, and of its followers."""

    following: int
    followers: int


def _add(backend: Backend, incoming: ApiRequest) -> Response[str]:
    wanted = validated(FollowCreate, json_object(incoming))
    added = Graph(backend, FOLLOWS).store.add(incoming.tenant, wanted.node, wanted.other)
    location = "/".join([ROOT, *(quote(end, safe="") for end in (wanted.node, wanted.other))])
    status = HTTPStatus.CREATED if added.created else HTTPStatus.OK
    return answered(shown(added.edge), status, {**etag(added.edge.revision), "Location": location})


def _list(backend: Backend, incoming: ApiRequest) -> Response[str]:
    page = Graph(backend, FOLLOWS).page(incoming.tenant, asked(EdgesWanted, incoming.query))
    return page_answered(ROOT, incoming.query, page)


def _count(backend: Backend, incoming: ApiRequest) -> Response[str]:
    node, graph = asked(Counted, incoming.query).of, Graph(backend, FOLLOWS)
    following, followers = (graph.count(incoming.tenant, node, way) for way in WAYS)
    return answered(FollowCounts(following=following, followers=followers))


def _read(backend: Backend, incoming: ApiRequest) -> Response[str]:
    consistent = consistent_only(incoming.query)
    found = Graph(backend, FOLLOWS).get(incoming.tenant, *_ends(incoming), consistent=consistent)
    return answered(shown(found), headers=etag(found.revision))


def _remove(backend: Backend, incoming: ApiRequest) -> Response[str]:
    consistent_only(incoming.query, allowed=False)
    Graph(backend, FOLLOWS).store.remove(incoming.tenant, *_ends(incoming))
    return Response(HTTPStatus.NO_CONTENT, body="")


def _ends(incoming: ApiRequest) -> tuple[str, str]:
    ends = path_values(incoming.path, f"{ROOT}/", 2)
    if ends is None:
        raise NotFoundError(f"{incoming.path} is not the address of an edge: {PAIR}")
    return ends[0], ends[1]


def _schemas() -> dict[str, Schema]:
    models: dict[str, type[BaseModel]] = {"FollowCreate": FollowCreate, "FollowCounts": FollowCounts}
    follow = Follow.model_json_schema(mode="serialization")
    follow["properties"]["revision"] = {"type": "string", "readOnly": True}
    schemas = {name: model.model_json_schema() for name, model in models.items()}
    return {**schemas, "Follow": follow, "FollowPage": page_of(ref("Follow"))}


def _described(
    name: str, summary: str, text: str, answers: Schema, *more: str, query: type[BaseModel] | None = None
) -> Operation:
    parameters = [] if query is None else parameters_of(query)
    return {**operation(name, summary, _TAG, text, answers, more=more), "parameters": parameters}


def _add_described() -> Operation:
    answers = {
        "201": answer("The node is followed now.", "Follow"),
        "200": answer("The node was followed already.", "Follow"),
    }
    text = "Makes one node follow another. A repeat has no effect."
    described = _described("addFollow", "Follow a node", text, answers, "409", "413", "415")
    return {**described, "requestBody": body("FollowCreate", JSON, example={"node": "User.9", "other": "User.12"})}


def _list_described() -> Operation:
    text = "Lists the nodes that a node follows, or those that follow it."
    return _described(
        "listFollow", "List followed nodes or followers", text, {"200": page("FollowPage")}, query=EdgesWanted
    )


def _count_described() -> Operation:
    answers = {"200": answer("The counts.", "FollowCounts")}
    text = "Counts the nodes that a node follows, and those that follow it."
    return _described("countFollow", "Count followed nodes and followers", text, answers, query=Counted)


def _read_described() -> Operation:
    text = "Reads the edge from one node to another. 404 if there is none."
    return _described("getFollow", "Read an edge", text, {"200": answer("The edge.", "Follow")}, "404")


def _remove_described() -> Operation:
    answers = {"204": {"description": "The node is no longer followed."}}
    text = "Makes one node no longer follow another."
    return _described("deleteFollow", "Unfollow a node", text, answers, "404", "409")


_ENDS: Final = tuple(
    {
        "name": name,
        "in": "path",
        "required": True,
        "schema": {"type": "string", "pattern": NODE},
        "description": text,
        "example": example,
    }
    for name, text, example in (("node", "The follower.", "User.9"), ("other", "The followed node.", "User.12"))
)
ENDPOINTS: Final = (
    ExtraEndpoint(
        ROOT, {"GET": Served(_list, _list_described), "POST": Served(_add, _add_described)}, _schemas, expensive=True
    ),
    ExtraEndpoint(f"{ROOT}/counts", {"GET": Served(_count, _count_described)}, dict),
    ExtraEndpoint(
        PAIR,
        {"GET": Served(_read, _read_described), "DELETE": Served(_remove, _remove_described)},
        dict,
        rule=re.escape(ROOT) + r"/[^/]+/[\s\S]+",
        parameters=_ENDS,
    ),
)
