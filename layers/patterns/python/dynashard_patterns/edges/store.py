"""Edges of one kind in a table: each is two items, which come and go together with what counts them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Generic, Literal, cast

from dynashard import Dynashard
from dynashard.entity import Entity
from dynashard.errors import (
    InvalidQueryError,
    InvalidValueError,
    NotFoundError,
    RevisionMismatchError,
    TransactionRefusedError,
)
from dynashard.reads import CursorCodec, Listing, Order, Page, Query, Scan
from dynashard.reads.limits import DEFAULT_LIMIT
from dynashard.repository import Repository, Store
from dynashard.repository.retry_policy import unsettled
from dynashard.repository.store import write_operation
from dynashard.transactions import Check, Create, Delete, Step, Transaction
from dynashard_patterns.edges.declaration import NEWEST, E, Edges, K, Way
from dynashard_patterns.edges.slots import SlotStore

RACES: Final = 8
"""How often an edge is tried again because others add and remove it at the same time."""
WAYS: Final[tuple[Way, Way]] = ("forward", "backward")

_OWN: Final = frozenset({"tenant_id", "node", "way", "other", "other_type", "since"})

EdgeOrder = Literal["newest", "key", "any"]


@dataclass(frozen=True, slots=True)
class Added(Generic[E]):
    """An edge, seen from its first node, and whether it was not there before."""

    edge: E
    created: bool


class EdgeStore(Generic[E]):
    """Edges of one kind in a table. Safe to share between threads.

    A node is its type and id, such as `User.9`. Every method raises `EngineError` or a subclass if DynamoDB refuses or
    cannot be reached, and `InvalidKeyError` or `InvalidValueError` if a node's type or id is not allowed.
    """

    def __init__(self, store: Store, cursors: CursorCodec, edges: Edges[E]) -> None:
        self._store = store
        self._edges = edges
        self._items: Repository[E] = Repository(store, edges.model)
        self._listing = Listing(store, cursors, edges.model)
        self._counters = {way: SlotStore(store, edges.counter(way)) for way in WAYS} if edges.counts else {}

    @staticmethod
    def on(db: Dynashard, edges: Edges[K]) -> "EdgeStore[K]":
        """Open the edges of one kind. Costs nothing."""
        return EdgeStore(db.store, db.cursors, edges)

    @write_operation
    def add(self, /, tenant_id: str, one: str, other: str, **fields: Any) -> Added[E]:
        """Add an edge from one node to another. If it exists, nothing changes, so the call can be repeated.

        Args:
            tenant_id: whose graph.
            one: the node that follows.
            other: the node that is followed; not the same one if both ways have one name.
            fields: further fields of the edge, if its class has any.

        Raises:
            TransactionConflictError: others add and remove this edge, or edges of these nodes, all the time.
            UndecodableItemError: it is stored, and one of its items does not fit.
            EngineUnavailableError: no answer came; the edge may be there. Add it again.

        Cost: 8 write units and those of the index, 4 of them for counters; 1 round trip. If it is there already, the
        same, and 2 read units in 1 round trip more.
        """
        pair = self._pair(tenant_id, one, other, fields)
        if self._items.entity.key_of(pair[0]) == self._items.entity.key_of(pair[1]):
            message = (
                f"{one} cannot have an edge to itself: both ways are called {self._edges.forward}. Name another node."
            )
            raise InvalidValueError(message, field="other")
        steps = [step for item in pair for step in self._creating(item)]
        for _ in range(RACES):
            try:
                stored = self._transact(steps)[0]
                return Added(cast("E", stored), created=True)
            except TransactionRefusedError:
                there = self._items.batches.get(pair, consistent=True, strict=True)
            if there[0] is not None and there[1] is not None:
                return Added(there[0], created=False)
            for half in there:
                if half is not None:
                    # As the edge was added, not as this call would: an edge that exists does not change.
                    self.complete(half, self.other_half(half))
        raise unsettled(self._items.entity, "TransactWriteItems")

    @write_operation
    def remove(self, tenant_id: str, one: str, other: str, *, if_match: str | None = None) -> None:
        """Remove the edge from one node to another; with `if_match`, only if its revision at the first node is this.

        Raises:
            NotFoundError: there is none.
            RevisionMismatchError: it has another revision.
            UndecodableItemError: one of its items is missing, and the other does not fit.
            TransactionConflictError: others add and remove this edge, or edges of these nodes, all the time.
            EngineUnavailableError: no answer came; the edge may be gone.

        Cost: as `add`.
        """
        keys = self._keys(tenant_id, one, other)
        if keys[0] == keys[1]:
            raise self._none(one, other)
        for _ in range(RACES):
            if self._tried([*self._deleting(keys[0], if_match), *self._deleting(keys[1])]):
                return
            there = self._items.batches.get(keys, consistent=True, strict=True)
            if there == [None, None]:
                raise self._none(one, other)
            current = None if there[0] is None else there[0].revision
            if if_match not in (None, current):
                message = f"The edge {self._edges.forward} from {one} to {other} has changed. Read it again."
                raise RevisionMismatchError(message, current=current)
            if None in there:
                half = there.index(None) ^ 1
                # Somebody may complete the edge meanwhile: then both halves must go.
                if self._tried([*self._deleting(keys[half]), Check(self._edges.model, keys[half ^ 1], None)]):
                    return
        raise unsettled(self._items.entity, "TransactWriteItems")

    def find(self, tenant_id: str, one: str, other: str, *, consistent: bool = False) -> E | None:
        """Return the edge from one node to another, as stored at the first; None if there is none.

        Cost: 0.5 read units, 1 if consistent; 1 round trip.
        """
        return self._items.find(self._keys(tenant_id, one, other)[0], consistent=consistent)

    def list(
        self,
        tenant_id: str,
        node: str,
        way: Way = "forward",
        *,
        type: str | None = None,  # noqa: A002 - the word of the keys
        order: EdgeOrder = "key",
        limit: int = DEFAULT_LIMIT,
        cursor: str | None = None,
    ) -> Page[E]:
        """One page of the edges of a node: of those it follows, or of its followers.

        Args:
            tenant_id: whose graph.
            node: the node.
            way: `forward` for those it follows, `backward` for its followers.
            type: only those to nodes of this type, such as `Actor`.
            order: `key` by type and id, `newest` by time, for one type only; `any` is cheapest for nodes of many
                shards.
            limit: edges a page, 1 to 1000.
            cursor: that of the previous page, with all other arguments except `limit` unchanged.

        Raises:
            InvalidQueryError: with the argument at fault.
            InvalidCursorError: damaged, forged, or of another query.

        Cost: 1 Query if the node has one shard, as most have; for others see `Collection.list`: `any` is its
        round-robin order, the others its ordered one, `newest` over the index.
        """
        asked = Query(self._items.entity, limit=limit, **self._question(tenant_id, node, way, type, order))
        return self._listing.page(asked, cursor)

    def scan(self, tenant_id: str, node: str, way: Way = "forward") -> Scan[E]:
        """All edges of a node, streamed in no order. Costs what reading them costs.

        `undecodable` of what is returned grows by the stored edges that do not fit, which are left out.
        """
        asked = Query(self._items.entity, consistent=True, **self._question(tenant_id, node, way, None, "any"))
        return self._listing.scan(asked, workers=4)

    def count(self, tenant_id: str, node: str, way: Way = "forward", *, consistent: bool = False) -> int:
        """How many edges a node has.

        Raises:
            DeclarationError: the edges are declared without counts.
            UndecodableItemError: a slot of the counter does not fit.

        Cost: 0.5 read units a slot of the counter, 1 if consistent; 1 round trip.
        """
        key = self._counter_key(self._start(tenant_id, node, way))
        return self._counted(way).total(key, consistent=consistent)

    @write_operation
    def complete(self, there: E, missing: E) -> bool:
        """Write the missing half of an edge.

        Returns:
            Whether it was written; if not, the edge has changed.
        """
        return self._tried([*self._creating(missing), Check(self._edges.model, there, revision=there.revision)])

    def other_half(self, edge: E) -> E:
        """The item at the other end of an edge."""
        fields = {name: value for name, value in edge.__dict__.items() if name not in _OWN}
        forward = edge.way == self._edges.forward
        ends = (edge.node, edge.other) if forward else (edge.other, edge.node)
        first, second = self._pair(edge.tenant_id, *ends, fields, since=edge.since)
        return second if forward else first

    def _none(self, one: str, other: str) -> NotFoundError:
        return NotFoundError(f"{one} has no edge {self._edges.forward} to {other}")

    def _tried(self, steps: Sequence[Step]) -> bool:
        """Do steps, and return whether their preconditions held."""
        try:
            self._transact(steps)
        except TransactionRefusedError:
            return False
        return True

    def _transact(self, steps: Sequence[Step]) -> Sequence[Entity | None]:
        return Transaction(self._store, steps).run()

    def _creating(self, item: E) -> Sequence[Step]:
        return [Create(item), *self._counting(item.__dict__, 1)]

    def _deleting(self, key: Mapping[str, Any], if_match: str | None = None) -> Sequence[Step]:
        return [Delete(self._edges.model, key, if_match), *self._counting(key, -1)]

    def _counting(self, edge: Mapping[str, Any], amount: int) -> Sequence[Step]:
        if not self._counters:
            return []
        way: Way = "forward" if edge["way"] == self._edges.forward else "backward"
        return [self._counters[way].adding(self._counter_key(edge), amount)]

    def _counter_key(self, edge: Mapping[str, Any]) -> dict[str, Any]:
        return {name: edge[name] for name in ("tenant_id", "node", "way")}

    def _counted(self, way: Way) -> SlotStore:
        return self._counters[way] if self._counters else SlotStore(self._store, self._edges.counter(way))

    def _keys(self, tenant_id: str, one: str, other: str) -> Sequence[dict[str, Any]]:
        return [
            {**self._start(tenant_id, one, "forward"), "other": self._node(other, "other")},
            {**self._start(tenant_id, other, "backward"), "other": self._node(one)},
        ]

    def _start(self, tenant_id: str, node: str, way: Way) -> dict[str, Any]:
        return {"tenant_id": tenant_id, "node": self._node(node), "way": self._edges.called(way)}

    def _node(self, text: str, field: str = "node") -> str:
        try:
            node: str = self._items.entity.assignment.check(field, text)
        except InvalidValueError as error:
            message = f"{str(text)[:50]!r} is not a node: use its type and its id, such as User.9"
            raise InvalidValueError(message, field=field) from error
        return node

    def _pair(
        self, tenant_id: str, one: str, other: str, fields: Mapping[str, Any], since: datetime | None = None
    ) -> tuple[E, E]:
        if taken := _OWN & fields.keys():
            raise InvalidValueError(f"{min(taken)} is set for you", field=min(taken))
        since = since or datetime.fromtimestamp(self._store.runtime.clock(), UTC)
        first, second = (
            self._made({**fields, **key, "other_type": key["other"].partition(".")[0], "since": since})
            for key in self._keys(tenant_id, one, other)
        )
        return first, second

    def _made(self, fields: Mapping[str, Any]) -> E:
        self._items.entity.assignment.check_whole(fields)
        return self._edges.model(**fields)

    def _question(self, tenant_id: str, node: str, way: Way, kind: str | None, order: EdgeOrder) -> dict[str, Any]:
        """What a listing asks for, but for its size."""
        if way not in WAYS:
            raise InvalidQueryError("way is forward or backward", field="way")
        if order not in ("newest", "key", "any"):
            raise InvalidQueryError("order is newest, key or any", field="order")
        if kind is not None and (not kind or "." in kind):
            raise InvalidQueryError("type is the part of a node before its dot, such as Actor", field="type")
        start = self._start(tenant_id, node, way)
        asked = {
            "partition": {"tenant_id": tenant_id, "node": start["node"]},
            "prefix": f"{start['way']}.{kind}." if kind else f"{start['way']}.",
            "order": Order.ROUND_ROBIN if order == "any" else Order.ORDERED,
        }
        if order != "newest":
            return asked
        if kind is None:
            raise InvalidQueryError("order newest needs a type, because the index sorts by type first", field="type")
        if NEWEST not in self._items.entity.indexes:
            raise InvalidQueryError(f"{self._items.entity.name} has no index {NEWEST}", field="order")
        return {**asked, "index": NEWEST, "direction": "desc"}
