"""The items of one resource, for programs on asyncio. Each method is that of `Items`, awaited."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, overload

from pydantic import BaseModel

from dynashard_client.answers import Counted, Outcome, Page, Written
from dynashard_client.arguments import checked
from dynashard_client.batches import BatchRequest, KeyLike
from dynashard_client.client_transport import AsyncClientTransport
from dynashard_client.drivers import AsyncDriver
from dynashard_client.errors import InvalidQueryError
from dynashard_client.item_steps import ItemSteps
from dynashard_client.items import Items
from dynashard_client.listings import Listing
from dynashard_client.resource import Resource
from dynashard_client.retries import Retries

M = TypeVar("M", bound=BaseModel)


class AsyncItems(Generic[M]):
    """The items of one resource. Tasks may share it.

    Arguments, results, errors and costs are those of the methods of `Items` with the same names. A call that is
    cancelled sends nothing more; a write that it had sent may have been done.

    Args:
        resource: where the items are, and what they are.
        transport: how requests are sent.
        retries: how often.
        tenant: the tenant of the requests, if the client names it.
    """

    def __init__(
        self, resource: Resource[M], transport: AsyncClientTransport, retries: Retries, *, tenant: str | None = None
    ) -> None:
        self._steps = ItemSteps(resource, retries, tenant=tenant)
        self._driver = AsyncDriver(transport, retries)

    @checked
    async def create(self, item: M, *, idempotency_key: str | None = None) -> M:
        """Store a new item, once; see `Items.create`."""
        return await self._driver.run(self._steps.create(item, idempotency_key=idempotency_key))

    @overload
    async def get(
        self, key: KeyLike, *, consistent: bool = ..., include: Sequence[str] = ..., fields: None = None
    ) -> M: ...

    @overload
    async def get(
        self, key: KeyLike, *, consistent: bool = ..., include: Sequence[str] = ..., fields: Sequence[str]
    ) -> dict[str, Any]: ...

    @checked
    async def get(
        self,
        key: KeyLike,
        *,
        consistent: bool = False,
        include: Sequence[str] = (),
        fields: Sequence[str] | None = None,
    ) -> M | dict[str, Any]:
        """Return the live item with this key; see `Items.get`."""
        return await self._driver.run(self._steps.get(key, consistent=consistent, include=include, fields=fields))

    @checked
    async def find(self, key: KeyLike, *, consistent: bool = False, include: Sequence[str] = ()) -> M | None:
        """Return the live item with this key, or None; see `Items.find`."""
        return await self._driver.run(self._steps.find(key, consistent=consistent, include=include))

    @checked
    async def put(self, item: M, *, if_match: str | None = None) -> Written[M]:
        """Store an item, whether or not its key had one; see `Items.put`."""
        return await self._driver.run(self._steps.put(item, if_match=if_match))

    @checked
    async def update(
        self, key: KeyLike, patch: Mapping[str, Any] | Sequence[Mapping[str, Any]], *, if_match: str | None = None
    ) -> M:
        """Apply a patch; see `Items.update`."""
        return await self._driver.run(self._steps.update(key, patch, if_match=if_match))

    @checked
    async def delete(self, key: KeyLike, *, if_match: str | None = None) -> None:
        """Delete an item; see `Items.delete`."""
        await self._driver.run(self._steps.delete(key, if_match=if_match))

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
    ) -> "Listed":
        """Return one page: `page = await users.list(...)`, or its items: `async for user in users.list(...)`.

        See `Items.list`.
        """
        steps = partial(
            self._steps.list,
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
        return Listed(lambda: self._driver.run(steps()))

    def pages(
        self,
        partition: Mapping[str, Any] | None = None,
        *,
        resume: bool = False,
        after: M | Mapping[str, Any] | None = None,
        **asked: Any,
    ) -> AsyncGenerator[Page[Any]]:
        """Return all pages, for `async for`; see `Items.pages`."""
        return self._read(self._steps.pages(partition, resume=resume, after=after, **asked))

    async def _read(self, listing: Listing) -> AsyncGenerator[Page[Any]]:
        while (page := await self._driver.run(listing.next_page())) is not None:
            yield page

    async def items(self, partition: Mapping[str, Any] | None = None, **asked: Any) -> AsyncGenerator[Any]:
        """Return all items, page by page, for `async for`; see `Items.items`."""
        async with aclosing(self.pages(partition, **asked)) as pages:
            async for page in pages:
                for item in page.items:
                    yield item

    async def count(
        self,
        partition: Mapping[str, Any] | None = None,
        *,
        index: str | None = None,
        up_to: int | None = None,
        **choosing: Any,
    ) -> Counted:
        """Count items; see `Items.count`."""
        return await self._driver.run(self._steps.count(partition, index=index, up_to=up_to, **choosing))

    @checked
    async def batch(self, requests: Sequence[BatchRequest]) -> Sequence[Outcome[M]]:
        """Do many requests, each by itself; see `Items.batch`."""
        return await self._driver.run(self._steps.batch(requests))

    @checked
    async def batch_get(self, keys: Sequence[KeyLike], *, consistent: bool = False) -> Sequence[Outcome[M]]:
        """Return an outcome for each key; see `Items.batch_get`."""
        return await self._driver.run(self._steps.batch_get(keys, consistent=consistent))

    @checked
    async def batch_write(
        self, put: Sequence[M] = (), *, delete: Sequence[KeyLike] = ()
    ) -> tuple[Sequence[Outcome[None]], Sequence[Outcome[None]]]:
        """Store and delete many items; see `Items.batch_write`."""
        return await self._driver.run(self._steps.batch_write(put, delete=delete))

    if not TYPE_CHECKING:
        # Type checkers refuse these by themselves.
        __getattr__ = Items.__getattr__
        __getitem__ = Items.__getitem__
        __contains__ = Items.__contains__
        __iter__ = Items.__iter__
        __aiter__ = Items.__iter__
        __bool__ = Items.__bool__
        __len__ = Items.__len__


class Listed:
    """A page that was asked for, and is read when it is awaited or iterated over."""

    def __init__(self, read: Callable[[], Awaitable[Page[Any]]]) -> None:
        self._read = read

    def __await__(self) -> Generator[Any, None, Page[Any]]:
        return self._read().__await__()

    async def __aiter__(self) -> AsyncGenerator[Any]:
        for item in await self:
            yield item

    if not TYPE_CHECKING:
        # As above.
        def __getattr__(self, name: str) -> NoReturn:
            cure = "" if name.startswith("_") else f"; write (await ...list(...)).{name}"
            raise AttributeError(f"a page that was not awaited has no attribute {name}{cure}", name=name, obj=self)

        def __getitem__(self, place: object) -> NoReturn:
            raise InvalidQueryError("a page that was not awaited has no items; write (await ...list(...))[0]")

        def __len__(self) -> NoReturn:
            raise InvalidQueryError("a page that was not awaited has no length; write len(await ...list(...))")

        def __iter__(self) -> NoReturn:
            raise InvalidQueryError("a page is awaited before it is iterated over; write async for ... in ...list(...)")
