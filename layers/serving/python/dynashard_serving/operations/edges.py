"""Edges for callers: the models of their requests, and errors with the names that callers use."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field

from dynashard.entity import definition
from dynashard.errors import InvalidValueError, NotFoundError
from dynashard.reads import Page
from dynashard.reads.limits import DEFAULT_LIMIT, MAX_LIMIT
from dynashard.service import Dynashard
from dynashard_patterns.edges import NODE, Added, Edge, Edges, EdgeStore
from dynashard_serving.access import Caller
from dynashard_serving.declare import ServedEdges
from dynashard_serving.documents import item_texts, list_text
from dynashard_serving.operations.accepting import refuse_unaddressable
from dynashard_serving.operations.conditions import UNCONDITIONAL, Conditions
from dynashard_serving.operations.narrowing import judged, refuse_others, refuse_unjudged
from dynashard_serving.operations.pages import Answer, page_that_fits
from dynashard_serving.operations.permits import Permit, admitted

Way = Literal["forward", "backward"]
WAYS: Final[tuple[Way, Way]] = ("forward", "backward")
Node = Annotated[
    str,
    Field(
        max_length=200,
        examples=["User.9"],
        description="A node: its type and its id.",
        # The pattern is only documented here. The edge's own declaration checks it, and names the caller's parameter.
        json_schema_extra={"pattern": NODE},
    ),
]


@dataclass(frozen=True, slots=True)
class Words:
    """What a verb is in the sentences and names about its edges, such as follow, follows, followed, follower."""

    verb: str

    @property
    def says(self) -> str:
        """What a node does."""
        return f"{self.verb}s"

    @property
    def past(self) -> str:
        """What is done to a node."""
        return f"{self._stem}ed"

    @property
    def doing(self) -> str:
        """What the number of edges from a node is called."""
        return f"{self._stem}ing"

    @property
    def doer(self) -> str:
        """The first node."""
        return f"{self._stem}er"

    @property
    def undo(self) -> str:
        """What ends it."""
        return f"un{self.verb}"

    @property
    def _stem(self) -> str:
        return self.verb.removesuffix("e")


class NewEdge(BaseModel):
    """The two nodes of an edge."""

    model_config = ConfigDict(extra="forbid")

    node: Node
    other: Node


class EdgesWanted(BaseModel):
    """The query of a listing."""

    of: Node
    way: Way = Field("forward", description="`forward`: the nodes that it follows; `backward`: its followers.")
    type: str | None = Field(
        None, description="Only nodes of this type, such as Actor.", json_schema_extra={"pattern": r"^[^.]+$"}
    )
    order: Literal["key", "newest", "any"] = Field(
        "key", description="`newest` is by time, of one type; `any` is the cheapest for nodes with many shards."
    )
    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT, description="The most edges on a page.")
    cursor: str | None = Field(None, description="The cursor of the previous page, with the same query.")


class Graph:
    """Edges of one kind, for callers whom their rules allow them."""

    def __init__(self, backend: Dynashard, served: ServedEdges) -> None:
        self._backend = backend
        self._edges: Edges[Any] = served.edges
        self._rules = served.access
        self._name = definition(served.edges.model).name

    @property
    def store(self) -> EdgeStore[Any]:
        """The store that adds and removes them."""
        return EdgeStore.on(self._backend, self._edges)

    def add(self, caller: Caller, node: str, other: str) -> Added[Any]:
        """Add an edge. Cost: as the store's `add`.

        Raises:
            NotPermittedError: the caller may not.
            ValidationFailedError: no path could address an edge between these nodes.
        """
        self._permit("create", caller).require_new(NewEdge.model_construct(node=node, other=other))
        refuse_unaddressable(("node", "other"), {"node": node, "other": other})
        return self.store.add(caller.tenant, node, other)

    def remove(self, caller: Caller, node: str, other: str, *, conditions: Conditions = UNCONDITIONAL) -> None:
        """Remove an edge. Cost: as the store's `remove`; 1 read unit and 1 round trip more with conditions.

        Raises:
            NotFoundError: there is none.
            NotPermittedError: the caller may not.
            RevisionMismatchError, PreconditionFailedError: a condition does not hold.
        """
        self._permit("delete", caller).require_new(NewEdge.model_construct(node=node, other=other))
        revision = None
        if not conditions.none:
            revision = self._found(caller, node, other, consistent=True).revision
            conditions.demand(revision)
        self.store.remove(caller.tenant, node, other, if_match=revision)

    def get(self, caller: Caller, node: str, other: str, *, consistent: bool = False) -> Edge:
        """Return the edge from one node to another. Cost: as the store's `find`.

        Raises:
            NotFoundError: there is none.
            NotPermittedError: the caller may not read it, whether or not there is one.
        """
        self._permit("get", caller).require_new(NewEdge.model_construct(node=node, other=other))
        return self._found(caller, node, other, consistent=consistent)

    def page(self, caller: Caller, wanted: EdgesWanted) -> Answer:
        """Return a page of a node's edges that Lambda can answer. Cost: as the store's `list`.

        Raises:
            NotPermittedError: the caller may not list them.
        """
        permit = self._permit("list", caller, of=wanted.of)

        def read(**options: Any) -> Page[Any]:
            with _named_of():
                return self.store.list(
                    caller.tenant, wanted.of, wanted.way, type=wanted.type, order=wanted.order, **options
                )

        every = judged(read, {self._edges.model: replace(permit, owner=None)}) if permit.judges_each else read
        return page_that_fits(every, {"limit": wanted.limit, "cursor": wanted.cursor}, _text)

    def count(self, caller: Caller, node: str, way: Way) -> int:
        """Count a node's edges one way. Cost: as the store's `count`.

        Raises:
            NotPermittedError: the caller may not list them.
        """
        refuse_unjudged(self._permit("list", caller, of=node), count=True)
        with _named_of():
            return self.store.count(caller.tenant, node, way)

    def _found(self, caller: Caller, node: str, other: str, *, consistent: bool) -> Edge:
        found: Edge | None = self.store.find(caller.tenant, node, other, consistent=consistent)
        if found is None:
            raise NotFoundError(f"There is no edge from {node} to {other}.")
        return found

    def _permit(self, right: str, caller: Caller, *, of: str | None = None) -> Permit:
        """Return what a caller may do; for a listing, of the edges of a node."""
        permit = admitted(self._rules, self._name, [right], caller, whole=of is not None)
        if of is not None and permit.owner is not None:
            refuse_others(permit, {"node": of})
        return permit


@contextmanager
def _named_of() -> Iterator[None]:
    """Name the node at fault as callers name it."""
    try:
        yield
    except InvalidValueError as error:
        raise InvalidValueError(str(error), field="of" if error.field == "node" else error.field) from error


def _text(items: Sequence[Any]) -> bytes:
    return list_text(item_texts(items))
