"""Edges for callers: the models of their requests, and errors with the names that callers use."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from dynashard.errors import InvalidValueError, NotFoundError
from dynashard.reads import Page
from dynashard.reads.limits import DEFAULT_LIMIT, MAX_LIMIT
from dynashard.service import Dynashard
from dynashard_patterns.edges import NODE, Edge, Edges, EdgeStore
from dynashard_serving.documents import item_texts, list_text
from dynashard_serving.operations.pages import Answer, page_that_fits

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
    """Edges of one kind, for callers of a tenant."""

    def __init__(self, backend: Dynashard, edges: Edges[Any]) -> None:
        self._backend = backend
        self._edges = edges

    @property
    def store(self) -> EdgeStore[Any]:
        """The store that adds and removes them."""
        return EdgeStore.on(self._backend, self._edges)

    def get(self, tenant: str, node: str, other: str, *, consistent: bool = False) -> Edge:
        """Return the edge from one node to another. Cost: as the store's `find`.

        Raises:
            NotFoundError: there is none.
        """
        found: Edge | None = self.store.find(tenant, node, other, consistent=consistent)
        if found is None:
            raise NotFoundError(f"There is no edge from {node} to {other}.")
        return found

    def page(self, tenant: str, wanted: EdgesWanted) -> Answer:
        """Return a page of a node's edges that Lambda can answer. Cost: as the store's `list`."""

        def read(**options: Any) -> Page[Any]:
            with _named_of():
                return self.store.list(tenant, wanted.of, wanted.way, type=wanted.type, order=wanted.order, **options)

        return page_that_fits(read, {"limit": wanted.limit, "cursor": wanted.cursor}, _text)

    def count(self, tenant: str, node: str, way: Way) -> int:
        """Count a node's edges one way. Cost: as the store's `count`."""
        with _named_of():
            return self.store.count(tenant, node, way)


@contextmanager
def _named_of() -> Iterator[None]:
    """Name the node at fault as callers name it."""
    try:
        yield
    except InvalidValueError as error:
        raise InvalidValueError(str(error), field="of" if error.field == "node" else error.field) from error


def _text(items: Sequence[Any]) -> bytes:
    return list_text(item_texts(items))
