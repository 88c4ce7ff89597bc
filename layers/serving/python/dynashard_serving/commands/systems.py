"""What can be asked for besides entities: counters, edges, roll-ups, computed reads, and joint listings."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from dynashard import definition
from dynashard.errors import FieldError, ValidationFailedError
from dynashard.service import Dynashard
from dynashard_serving.commands.items import PAGING, choice_of, paging_of
from dynashard_serving.commands.request import Members
from dynashard_serving.declare import (
    Endpoint,
    Exposed,
    FamilyListing,
    ItemRead,
    ServedCounter,
    ServedEdges,
    ServedRollUps,
    item_reads_of,
)
from dynashard_serving.documents import Document, validated, without
from dynashard_serving.domain import Domain
from dynashard_serving.operations.computed import about_item, computed, permit_to, right_of
from dynashard_serving.operations.counters import Counts, Verb
from dynashard_serving.operations.edges import EdgesWanted, Graph, NewEdge, Node, Way
from dynashard_serving.operations.families import Family
from dynashard_serving.operations.item_reads import shown
from dynashard_serving.operations.roll_ups import roll_ups_endpoint
from dynashard_serving.operations.served import Served

Operations = Mapping[str, Callable[[Members], Any]]


def systems(backend: Dynashard, domain: Domain, clock: Callable[[], float]) -> Mapping[str, Operations]:
    """The operations of each, by its outside name; those of counters and edges also by the name of their entity.

    Of an entity, they are the reads about its items that the domain computes.
    """
    found: dict[str, Operations] = {}
    for one in domain.declarations.served:
        if isinstance(one, ServedEdges):
            edges = EdgeOperations(Graph(backend, one)).operations
            found |= {one.path: edges, definition(one.edges.model).name: edges}
        elif isinstance(one, ServedCounter):
            counters = CounterOperations(Counts(backend, one, clock), one.operations).operations
            found |= {one.path: counters, definition(one.counter).name: counters}
        elif isinstance(one, ServedRollUps):
            found[one.path] = _computed(roll_ups_endpoint(one), backend)
        elif isinstance(one, Endpoint):
            found[one.path] = _computed(one, backend)
        elif isinstance(one, FamilyListing):
            found[one.path] = {"list": _family_listing(Family(one, domain.access_of), backend)}
    for exposed in domain.entities:
        found |= {
            f"{exposed.path}/{each.path}": _of_item(exposed, each, backend) for each in item_reads_of(exposed.entity)
        }
    return found


class CounterOperations:
    """Counters: read, added to and taken from."""

    def __init__(self, counts: Counts, served: Iterable[str]) -> None:
        self._counts = counts
        every: Operations = {
            "get": self._get,
            "add": partial(self._change, "add"),
            "take": partial(self._change, "take"),
            "delete": self._delete,
        }
        self.operations: Operations = {name: every[name] for name in served}

    def _get(self, asked: Members) -> Document:
        asked.only("key", "approximate")
        return self._counts.value(asked.caller, asked.document("key"), approximate=asked.flag("approximate"))

    def _change(self, verb: Verb, asked: Members) -> Document:
        asked.only("key", "amount", "idempotency_key")
        amount = asked.members.get("amount")
        body = {} if amount is None else {"amount": amount}
        repeats = asked.text("idempotency_key")
        return self._counts.change(verb, asked.caller, asked.document("key"), lambda: body, repeats).document

    def _delete(self, asked: Members) -> None:
        asked.only("key")
        self._counts.delete(asked.caller, asked.document("key"))


class EdgeOperations:
    """Edges: added, removed, looked up, listed from either end and counted."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.operations: Operations = {
            "create": self._create,
            "get": self._get,
            "delete": self._delete,
            "list": self._list,
            "count": self._count,
        }

    def _create(self, asked: Members) -> Document:
        asked.only("item")
        ends = validated(NewEdge, asked.document("item"))
        return shown(self._graph.add(asked.caller, ends.node, ends.other).edge)

    def _get(self, asked: Members) -> Document:
        asked.only("key", "consistent")
        return shown(self._graph.get(asked.caller, *_ends(asked), consistent=asked.flag("consistent")))

    def _delete(self, asked: Members) -> None:
        asked.only("key")
        self._graph.remove(asked.caller, *_ends(asked))

    def _list(self, asked: Members) -> Mapping[str, Any]:
        return self._graph.page(asked.caller, asked.question(EdgesWanted)).document

    def _count(self, asked: Members) -> int:
        counted = asked.question(Counted)
        return self._graph.count(asked.caller, counted.of, counted.way)


class Counted(BaseModel):
    """What a count asks for."""

    of: Node
    way: Way = "forward"


def _ends(asked: Members) -> tuple[str, str]:
    given = asked.document("key")
    unknown = [name for name in given if name not in NewEdge.model_fields]
    wrong = [name for name in NewEdge.model_fields if not isinstance(given.get(name), str)]
    if unknown or wrong:
        raise ValidationFailedError(
            *(FieldError(f"key.{name}", "A key has node and other.", "unknown_parameter") for name in unknown),
            *(FieldError(f"key.{name}", "Use a text, such as User.9.", "missing") for name in wrong),
        )
    return given["node"], given["other"]


def _computed(endpoint: Endpoint, backend: Dynashard) -> Operations:
    def read(asked: Members) -> Any:
        permit_to(endpoint, asked.caller)
        found = computed(endpoint, backend, asked.caller, asked.question(endpoint.request))
        document = to_jsonable_python(found)
        return {"items": document, "cursor": None} if endpoint.many else document

    return {right_of(endpoint): read}


def _of_item(exposed: Exposed, declared: ItemRead, backend: Dynashard) -> Operations:
    served = Served(exposed)

    def read(asked: Members) -> Any:
        key = served.key(asked.document("key"), asked.tenant)
        others = Members(asked.tenant, asked.caller, without(asked.members, ("key",)))
        question = partial(others.question, declared.request)
        found = about_item(declared, served, backend, caller=asked.caller, key=key, request=question)
        document = to_jsonable_python(found)
        return {"items": document, "cursor": None} if declared.many else document

    return {right_of(declared): read}


def _family_listing(family: Family, backend: Dynashard) -> Callable[[Members], Mapping[str, Any]]:
    def page(asked: Members) -> Mapping[str, Any]:
        asked.only("partition", "sort", "prefix", "from", "to", "consistent", *PAGING)
        return family.page(backend.collection, choice_of(asked), paging_of(asked)).document

    return page
