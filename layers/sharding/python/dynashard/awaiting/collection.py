"""The items of one entity, for programs on asyncio. Each method is that of `Collection`, awaited."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from collections.abc import Collection as Names
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Generic, Never, NoReturn, Self, TypeVar, overload

from dynashard.awaiting.bridge import run
from dynashard.collection import Collection, FieldNames, Row
from dynashard.entity import Entity, EntityDefinition, Undecodable
from dynashard.errors import InvalidQueryError
from dynashard.repository import Companion, KeyLike, Written
from dynashard.repository.left_out import Found
from dynashard.repository.projection import Part

if TYPE_CHECKING:
    from dynashard import reads
    from dynashard.repository.batches import Outcome

    _Outcomes = list[Outcome]

E = TypeVar("E", bound=Entity)
T = TypeVar("T")


class AsyncCollection(Generic[E]):
    """The items of one entity: single items, batches and listings.

    Arguments, results, errors and costs are those of the methods of `Collection` with the same names. Tasks may share
    it. `sync` is the collection whose methods these are, for functions that `AsyncDynashard.run` runs.
    """

    def __init__(self, sync: Collection[E]) -> None:
        self.sync = sync

    @property
    def entity(self) -> EntityDefinition[E]:
        """The compiled declaration."""
        return self.sync.entity

    def check(
        self, item: E | Mapping[str, Any] | None = None, /, *more: Never, timely: bool = True, **fields: Any
    ) -> None:
        """Raise the error that storing this item would raise before anything is sent; see `Collection.check`."""
        self.sync.check(item, *more, timely=timely, **fields)

    async def create(
        self, item: E | Mapping[str, Any] | None = None, /, *more: Never, handling: str | None = None, **fields: Any
    ) -> E:
        """Store an item under a key that has no live item; see `Collection.create`."""
        return await run(self.sync.create, item, *more, handling=handling, **fields)

    @property
    def can_create_with(self) -> bool:
        """Whether `create_with` can be used; see `Collection.can_create_with`."""
        return self.sync.can_create_with

    async def create_with(self, item: E, companion: Companion) -> E:
        """Store an item in one transaction with an action on another table; see `Collection.create_with`."""
        return await run(self.sync.create_with, item, companion)

    async def confirm_created(self, key: KeyLike, revision: str, shards: int) -> bool:
        """Whether readers find what a create stored; see `Collection.confirm_created`."""
        return await run(self.sync.confirm_created, key, revision, shards)

    async def put(
        self,
        item: E | Mapping[str, Any] | None = None,
        /,
        *more: Never,
        if_match: str | None = None,
        handling: str | None = None,
        over: E | None = None,
        **fields: Any,
    ) -> Written[E]:
        """Store an item, whether or not its key had one; see `Collection.put`."""
        return await run(self.sync.put, item, *more, if_match=if_match, handling=handling, over=over, **fields)

    async def replace(
        self,
        item: E | Mapping[str, Any] | None = None,
        /,
        *more: Never,
        if_match: str | None = None,
        handling: str | None = None,
        over: E | None = None,
        **fields: Any,
    ) -> E:
        """Do what `put` does, and return only the item as stored."""
        return await run(self.sync.replace, item, *more, if_match=if_match, handling=handling, over=over, **fields)

    async def find(
        self, key: Any = None, /, *more: Never, consistent: bool = False, include: Sequence[str] = (), **fields: Any
    ) -> E | None:
        """Return the live item with this key, or None; see `Collection.find`."""
        return await run(self.sync.find, key, *more, consistent=consistent, include=include, **fields)

    async def get(
        self, key: Any = None, /, *more: Never, consistent: bool = False, include: Sequence[str] = (), **fields: Any
    ) -> E:
        """Return what `find` returns, at its cost; raises `NotFoundError` if there is no live item."""
        return await run(self.sync.get, key, *more, consistent=consistent, include=include, **fields)

    async def part(
        self, key: Any = None, /, *more: Never, fields: Sequence[str] = (), consistent: bool = False, **named: Any
    ) -> Part:
        """Return some fields of the live item with this key; see `Collection.part`."""
        return await run(self.sync.part, key, *more, fields=fields, consistent=consistent, **named)

    async def exists(self, key: Any = None, /, *more: Never, consistent: bool = False, **fields: Any) -> bool:
        """Whether a live item has this key; see `Collection.exists`."""
        return await run(self.sync.exists, key, *more, consistent=consistent, **fields)

    async def update(
        self,
        key: Any = None,
        updates: Mapping[str, Any] | None = None,
        /,
        *more: Never,
        set: Mapping[str, Any] | None = None,  # noqa: A002 - DynamoDB's own word for it
        remove: Names[str] = (),
        add: Mapping[str, Any] | None = None,
        if_match: str | None = None,
        handling: str | None = None,
        **fields: Any,
    ) -> E:
        """Update some fields of a live item; see `Collection.update`."""
        others: dict[str, Any] = {"if_match": if_match, "handling": handling, **fields}
        return await run(self.sync.update, key, updates, *more, set=set, remove=remove, add=add, **others)

    async def delete(
        self, key: Any = None, /, *more: Never, if_match: str | None = None, handling: str | None = None, **fields: Any
    ) -> None:
        """Delete a live item; see `Collection.delete`."""
        await run(self.sync.delete, key, *more, if_match=if_match, handling=handling, **fields)

    async def batch_get(
        self, keys: Sequence[Any] = (), /, *more: Never, consistent: bool = False, strict: bool = False, **fields: Any
    ) -> Found[E]:
        """Return the live items with these keys; see `Collection.batch_get`."""
        return await run(self.sync.batch_get, keys, *more, consistent=consistent, strict=strict, **fields)

    async def batch_write(
        self,
        put: Sequence[E | Mapping[str, Any]] = (),
        *more: Never,
        delete: Sequence[Any] = (),
        whole: bool = False,
        **others: Never,
    ) -> None:
        """Store and delete many items; see `Collection.batch_write`."""
        await run(self.sync.batch_write, put, *more, delete=delete, whole=whole, **others)

    async def try_batch_write(
        self,
        put: Sequence[E | Mapping[str, Any]] = (),
        *more: Never,
        delete: Sequence[Any] = (),
        whole: bool = False,
        **others: Never,
    ) -> "_Outcomes":
        """Do what `batch_write` does; return an outcome for each; see `Collection.try_batch_write`."""
        return await run(self.sync.try_batch_write, put, *more, delete=delete, whole=whole, **others)

    @overload
    def list(
        self, partition: Any = None, *, cursor: str | None = None, fields: None = None, **arguments: Any
    ) -> "Listed[E]": ...
    @overload
    def list(
        self, partition: Any = None, *, cursor: str | None = None, fields: FieldNames, **arguments: Any
    ) -> "Listed[Row]": ...
    @overload
    def list(self, partition: Any = None, *, cursor: str | None = None, **arguments: Any) -> "Listed[Any]": ...
    def list(self, partition: Any = None, *more: Never, cursor: str | None = None, **arguments: Any) -> "Listed[Any]":
        """Return one page: `page = await users.list(...)`, or its items: `async for user in users.list(...)`.

        See `Collection.list`.
        """
        return Listed(lambda: self.sync.list(partition, *more, cursor=cursor, **arguments))

    @overload
    def pages(
        self, partition: Any = None, *, cursor: str | None = None, fields: None = None, **arguments: Any
    ) -> AsyncGenerator["reads.Page[E]"]: ...
    @overload
    def pages(
        self, partition: Any = None, *, cursor: str | None = None, fields: FieldNames, **arguments: Any
    ) -> AsyncGenerator["reads.Page[Row]"]: ...
    @overload
    def pages(
        self, partition: Any = None, *, cursor: str | None = None, **arguments: Any
    ) -> AsyncGenerator["reads.Page[Any]"]: ...
    def pages(
        self, partition: Any = None, *more: Never, cursor: str | None = None, **arguments: Any
    ) -> "AsyncGenerator[reads.Page[Any]]":
        """Return all pages, from a cursor or the start on; see `Collection.pages`."""
        return _streamed(self.sync.pages(partition, *more, cursor=cursor, **arguments))

    @overload
    def items(
        self, partition: Any = None, *, cursor: str | None = None, fields: None = None, **arguments: Any
    ) -> AsyncGenerator[E]: ...
    @overload
    def items(
        self, partition: Any = None, *, cursor: str | None = None, fields: FieldNames, **arguments: Any
    ) -> AsyncGenerator[Row]: ...
    @overload
    def items(self, partition: Any = None, *, cursor: str | None = None, **arguments: Any) -> AsyncGenerator[Any]: ...
    def items(
        self, partition: Any = None, *more: Never, cursor: str | None = None, **arguments: Any
    ) -> AsyncGenerator[Any]:
        """Return every item of all pages, one after another; see `Collection.items`."""
        return _items(self.pages(partition, *more, cursor=cursor, **arguments))

    @overload
    def scan(
        self, partition: Any = None, *, workers: int = 4, fields: None = None, **arguments: Any
    ) -> "AsyncScan[E]": ...
    @overload
    def scan(
        self, partition: Any = None, *, workers: int = 4, fields: FieldNames, **arguments: Any
    ) -> "AsyncScan[Row]": ...
    @overload
    def scan(self, partition: Any = None, *, workers: int = 4, **arguments: Any) -> "AsyncScan[Any]": ...
    def scan(self, partition: Any = None, *more: Never, workers: int = 4, **arguments: Any) -> "AsyncScan[Any]":
        """Stream all items, in no order between shards; see `Collection.scan`."""
        return AsyncScan(self.sync.scan(partition, *more, workers=workers, **arguments))

    async def count(
        self, partition: Any = None, *more: Never, up_to: int | None = None, **arguments: Any
    ) -> "reads.Counted":
        """Count the items; see `Collection.count`."""
        return await run(self.sync.count, partition, *more, up_to=up_to, **arguments)

    async def shards(
        self, partition: Any = None, *more: Never, workers: int = 4, **fields: Any
    ) -> Sequence["reads.ShardLoad"]:
        """Return what each shard of a logical partition holds, in order; see `Collection.shards`."""
        return await run(self.sync.shards, partition, *more, workers=workers, **fields)

    if not TYPE_CHECKING:
        # Type checkers refuse unknown names by themselves.
        __getattr__ = Collection.__getattr__
        __getitem__ = Collection.__getitem__
        __contains__ = Collection.__contains__
        __bool__ = Collection.__bool__
        __len__ = Collection.__len__
        __iter__ = Collection.__iter__
        __aiter__ = Collection.__iter__


class Listed(Generic[T]):
    """A page that was asked for, and is read when it is awaited or iterated over."""

    def __init__(self, read: Callable[[], "reads.Page[T]"]) -> None:
        self._read = read

    def __await__(self) -> Generator[Any, None, "reads.Page[T]"]:
        return run(self._read).__await__()

    async def __aiter__(self) -> AsyncGenerator[T]:
        for item in await self:
            yield item

    if not TYPE_CHECKING:
        # As above.
        def __getattr__(self, name: str) -> NoReturn:
            cure = "" if name.startswith("_") else f"; the page has it once it is read: (await ...list(...)).{name}"
            raise AttributeError(f"a page that was not awaited has no attribute {name}{cure}", name=name, obj=self)

        def __getitem__(self, place: object) -> NoReturn:
            raise InvalidQueryError("a page that was not awaited has no items; write (await ...list(...))[0]")

        def __len__(self) -> NoReturn:
            raise InvalidQueryError("a page that was not awaited has no length; write len(await ...list(...))")

        def __iter__(self) -> NoReturn:
            raise InvalidQueryError("a page is awaited before it is iterated over; write async for ... in ...list(...)")


class AsyncScan(AsyncIterator[T]):
    """A stream of items. `undecodable` grows by the stored items that were left out, as in a page."""

    def __init__(self, scan: "reads.Scan[T]") -> None:
        self._scan = scan

    @property
    def undecodable(self) -> Sequence[Undecodable]:
        """The stored items that were left out so far."""
        return self._scan.undecodable

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        for item in self._scan.arrived:
            return item
        for item in await run(_next, self._scan):
            return item
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """End the stream; what it has read ahead is dropped."""
        await run(self._scan.close)


def _next(iterator: Iterator[T]) -> Sequence[T]:
    """Return the next member alone; nothing at the end. `StopIteration` cannot leave a coroutine."""
    for member in iterator:
        return (member,)
    return ()


async def _streamed(iterator: Iterator[T]) -> AsyncGenerator[T]:
    while member := await run(_next, iterator):
        yield member[0]


async def _items(pages: "AsyncGenerator[reads.Page[T]]") -> AsyncGenerator[T]:
    async with aclosing(pages):
        async for page in pages:
            for item in page.items:
                yield item
