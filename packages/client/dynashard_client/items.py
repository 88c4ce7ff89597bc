"""The items of one resource, as a client has them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, TypeVar, overload

from pydantic import BaseModel

from dynashard_client.answers import Counted, Outcome, Page, Written
from dynashard_client.arguments import checked
from dynashard_client.batches import BatchRequest, KeyLike
from dynashard_client.client_transport import ClientTransport
from dynashard_client.drivers import BlockingDriver
from dynashard_client.errors import InvalidKeyError
from dynashard_client.item_steps import ItemSteps
from dynashard_client.listings import Listing
from dynashard_client.resource import Resource
from dynashard_client.retries import Retries

M = TypeVar("M", bound=BaseModel)
_ELSEWHERE: Final = {
    "add": "create", "all": "items", "fetch": "get", "filter": "list", "insert": "create",
    "part": "get(..., fields=[...])", "query": "list", "remove": "delete", "replace": "put", "save": "put",
    "scan": "items", "upsert": "put",
}  # fmt: skip
"""What other libraries, and the layer itself, call our methods."""


class Items(Generic[M]):
    """The items of one resource. Safe to share between threads.

    Every method raises the errors of `dynashard_client.errors`: what the backend answers, after retries that can help.
    What REST puts on a queue, such as a new ping, has no revision yet and can be read a moment later.
    Costs are those of the operation in the backend, and one round trip to it.

    Args:
        resource: where the items are, and what they are.
        transport: how requests are sent.
        retries: how often.
        tenant: the tenant of the requests, if the client names it.
    """

    def __init__(
        self, resource: Resource[M], transport: ClientTransport, retries: Retries, *, tenant: str | None = None
    ) -> None:
        self._steps = ItemSteps(resource, retries, tenant=tenant)
        self._driver = BlockingDriver(transport, retries)

    @checked
    def create(self, item: M, *, idempotency_key: str | None = None) -> M:
        """Store a new item, once, however often the request has to be sent.

        Args:
            item: the item.
            idempotency_key: of the caller's own, if creates that it repeats itself are to be done once too.

        Raises:
            AlreadyExistsError: a live item has the key.
        """
        return self._driver.run(self._steps.create(item, idempotency_key=idempotency_key))

    @overload
    def get(self, key: KeyLike, *, consistent: bool = ..., include: Sequence[str] = ..., fields: None = None) -> M: ...

    @overload
    def get(
        self, key: KeyLike, *, consistent: bool = ..., include: Sequence[str] = ..., fields: Sequence[str]
    ) -> dict[str, Any]: ...

    @checked
    def get(
        self,
        key: KeyLike,
        *,
        consistent: bool = False,
        include: Sequence[str] = (),
        fields: Sequence[str] | None = None,
    ) -> M | dict[str, Any]:
        """Return the live item with this key.

        Args:
            key: the item's key.
            consistent: see every write that was acknowledged before.
            include: attachments to read with it.
            fields: return these fields only, as a mapping instead of an item.

        Raises:
            NotFoundError: there is none.
        """
        return self._driver.run(self._steps.get(key, consistent=consistent, include=include, fields=fields))

    @checked
    def find(self, key: KeyLike, *, consistent: bool = False, include: Sequence[str] = ()) -> M | None:
        """Return what `get` returns; None if there is none."""
        return self._driver.run(self._steps.find(key, consistent=consistent, include=include))

    @checked
    def put(self, item: M, *, if_match: str | None = None) -> Written[M]:
        """Store an item, whether or not its key had one.

        Args:
            item: the whole new item.
            if_match: store it only if the live item is at this revision.

        Returns:
            The item as stored. If the backend did not know the outcome, and a read by the client proves
            that it was stored, `created` is False.

        Raises:
            RevisionMismatchError: the live item is at another revision, or there is none.
            OutcomeUnknownError: no answer came. It is not sent again: that might undo what others wrote since.
        """
        return self._driver.run(self._steps.put(item, if_match=if_match))

    @checked
    def update(
        self, key: KeyLike, patch: Mapping[str, Any] | Sequence[Mapping[str, Any]], *, if_match: str | None = None
    ) -> M:
        """Apply a JSON Merge Patch, new values by field, of which None resets a field; or a JSON Patch, a list.

        Raises:
            NotFoundError: no live item has the key.
            RevisionMismatchError: it is at another revision than `if_match`; see `put` for lost answers.
        """
        return self._driver.run(self._steps.update(key, patch, if_match=if_match))

    @checked
    def delete(self, key: KeyLike, *, if_match: str | None = None) -> None:
        """Delete an item.

        Raises:
            NotFoundError: no live item has the key.
            RevisionMismatchError: it is at another revision than `if_match`.
            OutcomeUnknownError: no answer came. It is not sent again: that might delete an item that is new.
        """
        self._driver.run(self._steps.delete(key, if_match=if_match))

    def list(
        self,
        partition: Mapping[str, Any] | None = None,
        *,
        index: str | None = None,
        order: str = "round_robin",
        direction: str = "asc",
        limit: int = 50,
        cursor: str | None = None,
        fields: Sequence[str] | None = None,
        distinct: str | None = None,
        **choosing: Any,
    ) -> Page[Any]:
        """One page.

        Args:
            partition: its fields besides the tenant, those of the index if one is named; a list of values for a field
                names several partitions, which are listed as one.
            index: the index to list; the table if None.
            order: `round_robin`, `ordered` or `shard`.
            direction: `asc` or `desc`.
            limit: items a page, 1 to 1000.
            cursor: that of the page before.
            fields: bring these fields only, as mappings instead of items.
            distinct: leave out items whose value of this field was shown already.
            choosing: `sort` (the first fields of the sort key), `prefix`, `start` and `end` (of sort keys), `filters`
                (values by field, or operators, such as `{"created_at": {"gte": since}}`), `consistent`.

        Raises:
            ValidationFailedError, InvalidCursorError: the listing cannot be.
        """
        steps = self._steps.list(
            partition,
            index=index,
            order=order,
            direction=direction,
            limit=limit,
            cursor=cursor,
            fields=fields,
            distinct=distinct,
            **choosing,
        )
        return self._driver.run(steps)

    def pages(
        self,
        partition: Mapping[str, Any] | None = None,
        *,
        resume: bool = False,
        after: M | Mapping[str, Any] | None = None,
        **asked: Any,
    ) -> Iterator[Page[Any]]:
        """All pages; takes the arguments of `list`.

        Args:
            partition: as of `list`.
            resume: continue after a cursor of this listing that is refused, as after a rollback. An ordered listing
                continues from its last sort key. One in another order begins again, at its full cost, and leaves out
                what it has returned, for which it remembers about 100 bytes an item. Either way, an item that exists
                all the time is returned exactly once.
            after: an item that the caller has; an ordered listing begins after it, and needs `cursor` only to skip
                items with its very sort key. Implies `resume`.
            asked: the other arguments of `list`.

        Raises:
            InvalidQueryError: `fields`, `index` or the order leave the client without a place to continue from.
        """
        return self._read(self._steps.pages(partition, resume=resume, after=after, **asked))

    def _read(self, listing: Listing) -> Iterator[Page[Any]]:
        while (page := self._driver.run(listing.next_page())) is not None:
            yield page

    def items(self, partition: Mapping[str, Any] | None = None, **asked: Any) -> Iterator[Any]:
        """All items, page by page; takes the arguments of `pages`."""
        for page in self.pages(partition, **asked):
            yield from page.items

    def count(
        self,
        partition: Mapping[str, Any] | None = None,
        *,
        index: str | None = None,
        up_to: int | None = None,
        **choosing: Any,
    ) -> Counted:
        """How many items there are; takes those arguments of `list` that choose items.

        Args:
            partition: as of `list`.
            index: as of `list`.
            up_to: count at most so many; `exact` of the number says whether there are no more.
            choosing: as of `list`.

        Cost: what reading all of them costs. Over REST, a request for every 1000 beyond 100,000.
        """
        return self._driver.run(self._steps.count(partition, index=index, up_to=up_to, **choosing))

    @checked
    def batch(self, requests: Sequence[BatchRequest]) -> Sequence[Outcome[M]]:
        """Do many requests, each by itself: an outcome for each, in their order.

            users.batch([Get("ada"), Put(user, if_match=user.revision), Delete("eve")])

        Raises:
            DynashardError: a whole batch is refused, or its outcome unknown. Batches are of 100.

        Cost: that of each by itself, in 1 request for 100 of them.
        """
        return self._driver.run(self._steps.batch(requests))

    @checked
    def batch_get(self, keys: Sequence[KeyLike], *, consistent: bool = False) -> Sequence[Outcome[M]]:
        """Items by their keys, with an outcome for each, in the order of the keys.

        What was throttled, or did not fit into one answer, is asked for again.

        Cost: 1 request for 100 keys.
        """
        return self._driver.run(self._steps.batch_get(keys, consistent=consistent))

    @checked
    def batch_write(
        self, put: Sequence[M] = (), *, delete: Sequence[KeyLike] = ()
    ) -> tuple[Sequence[Outcome[None]], Sequence[Outcome[None]]]:
        """Store and delete many items, each whether or not its key had one.

        Returns:
            An outcome for each item that was to be stored, and for each key that was to be deleted.

        Cost: 1 request for 100.
        """
        return self._driver.run(self._steps.batch_write(put, delete=delete))

    if not TYPE_CHECKING:
        # Type checkers refuse these by themselves.
        def __getattr__(self, name: str) -> NoReturn:
            cure = f"; use {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
            raise AttributeError(f"{type(self).__name__} has no attribute {name}{cure}", name=name, obj=self)

        def __getitem__(self, key: object) -> NoReturn:
            raise InvalidKeyError("a collection has no items by subscript; write get(...)")

        def __contains__(self, key: object) -> NoReturn:
            raise InvalidKeyError("a collection is not searched by `in`; write find(...)")

        def __iter__(self) -> NoReturn:
            raise InvalidKeyError("a collection is not iterable; write items(...)")

        def __bool__(self) -> bool:
            return True

        def __len__(self) -> NoReturn:
            raise InvalidKeyError("a collection has no length; write count(...)")
