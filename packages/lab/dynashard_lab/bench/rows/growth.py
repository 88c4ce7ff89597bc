"""What grows with the number of shards, epochs, items and tenants, and with the size of items.

Nothing should grow that need not.

The contenders of a row are the layer at different sizes. The smallest is the baseline, so a ratio of 1 means that
nothing grows.
"""

import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain, count, islice
from statistics import fmean
from typing import Any, Final

from dynashard import Collection, Dynashard
from dynashard.transport import connect
from dynashard_lab.bench.clients.layer import SETTINGS, opened
from dynashard_lab.bench.measure import Fact, Here, Limit, Row
from dynashard_lab.bench.rows import epochs
from dynashard_lab.bench.rows.pages import ksuids, wide
from dynashard_lab.bench.stored import TENANT
from dynashard_lab.bench.users import user, users_of
from dynashard_lab.bench.world import World, canned_process

SHARDS: Final = (1, 4, 16, 64, 256)
ITEMS: Final = (1_000, 10_000, 100_000)
DEEP_ITEMS: Final = 1_000_000
TENANTS: Final = (1, 1_000, 100_000)
STEADY: Final = 1.15
"""The highest ratio of what should not grow; the rest is noise."""
_PAGE: Final = 10
_ORDERED_PAGE: Final = 50
_FOLLOWED: Final = ITEMS[1]
"""Items of a listing whose pages are read one after the other."""
_LOAD_AT_ONCE: Final = 1_000
_MEASURED_TENANTS: Final = 10_000


def rows(world: World) -> Iterator[Row | Fact]:
    """Yield growth by shards, by epochs, by tenants and by items. `sizes` has growth by the size of items."""
    yield from _by_shards()
    yield from epochs.rows()
    yield from _ordered_by_shards(world)
    yield from _by_tenants()
    yield from _by_items(world)


def _by_shards() -> Iterator[Row]:
    with ExitStack() as stack:
        collections, items = {}, {}
        for shards in SHARDS:
            url = stack.enter_context(canned_process(per_shard=64 * 1024 // shards, shards=shards))
            model = users_of(shards)
            users = collections[shards] = _canned(stack, url).collection(model)
            items[users] = model(**user(1).model_dump())
        key = {"tenant_id": TENANT, "id": user(1).id}
        yield _row("get an item", collections, lambda users: lambda: users.get(key), items=1)
        yield _row("put an item", collections, lambda users: partial(users.replace, items[users]), items=1)
        yield _row(
            f"a round-robin page of {_PAGE}, from a cursor",
            collections,
            _round_robin,
            items=_PAGE,
            repeat=20,
        )


def _canned(stack: ExitStack, url: str) -> Dynashard:
    transport = connect(url, **SETTINGS)
    stack.callback(transport.close)
    return opened(transport)


def _label(shards: int) -> str:
    return "1 shard" if shards == 1 else f"{shards} shards"


_SHARDS_STEADY: Final = {_label(256): Limit(STEADY, to=_label(16))}


def _row(
    name: str,
    collections: dict[int, Collection[Any]],
    work: Callable[[Collection[Any]], Callable[[], object]],
    *,
    items: int,
    repeat: int = 50,
) -> Row:
    contenders = [Here(_label(shards), work(users)) for shards, users in collections.items()]
    return Row(f"{name}, by shards", contenders, repeat=repeat, limits=_SHARDS_STEADY, items=items)


def _round_robin(users: Collection[Any]) -> Callable[[], object]:
    """Return a page from a cursor that has a position for as many shards as it ever has."""
    partition = {"tenant_id": TENANT}
    cursor = _cursor_after(users.pages(partition, limit=_PAGE), 300)
    return lambda: users.list(partition, limit=_PAGE, cursor=cursor).items


def _ordered_by_shards(world: World) -> Iterator[Row | Fact]:
    """Pages that follow each other, of real keys: which shards a page asks depends on what the last one has learned."""
    transport = connect(world.engine_url, **SETTINGS)
    contenders = []
    for shards in SHARDS:
        model = wide(shards)
        records = opened(transport).collection(model)
        _load(records, model, _FOLLOWED)
        pages = partial(records.pages, {"tenant_id": f"items{_FOLLOWED}"}, limit=_ORDERED_PAGE, order="ordered")
        queries = round(fmean(page.consumed.requests for page in islice(pages(), 1, 41)), 2)
        yield Fact("growth", f"Queries of an ordered page of {_ORDERED_PAGE}, {_label(shards)}", queries, "Queries")
        contenders.append(Here(_label(shards), _following(pages)))
    yield Row(f"the next ordered page of {_ORDERED_PAGE}, by shards", contenders, repeat=5, items=_ORDERED_PAGE)
    transport.close()


def _following(pages: Callable[[], Iterator[Any]]) -> Callable[[], object]:
    """Return what reads the next page of a listing, which begins again after its end."""
    endless = chain.from_iterable(pages() for _ in count())
    return lambda: next(endless).items


def _cursor_after(pages: Iterator[Any], number: int) -> str:
    cursor: str = next(islice(pages, number - 1, None)).cursor
    return cursor


def _by_tenants() -> Iterator[Row | Fact]:
    with ExitStack() as stack:
        url = stack.enter_context(canned_process())
        users = _canned(stack, url).collection(users_of(16))
        labels = ["1 tenant", *(f"{tenants:,} tenants" for tenants in TENANTS[1:])]
        contenders = []
        for label, tenants in zip(labels, TENANTS, strict=True):
            # In a process that has read all of its tenants before.
            get = _gets(_canned(stack, url).collection(users_of(16)), tenants)
            for _ in range(tenants):
                get()
            contenders.append(Here(label, get))
        yield Row(
            "get an item, by tenants that are read in turn",
            contenders,
            repeat=200,
            items=1,
            limits={labels[-1]: Limit(STEADY)},
        )
        yield Fact(
            "tenants",
            f"memory kept for {_MEASURED_TENANTS:,} tenants",
            round(_memory(_gets(users, _MEASURED_TENANTS), _MEASURED_TENANTS), 1),
            "bytes each",
            16,
        )


def _gets(users: Collection[Any], tenants: int) -> Callable[[], object]:
    """Return a get of the next tenant's item, in turn."""
    name = user(1).id
    numbers = count()
    return lambda: users.get({"tenant_id": f"tenant{next(numbers) % tenants:06d}", "id": name})


def _memory(run: Callable[[], object], times: int) -> float:
    """Return the bytes that each run leaves behind."""
    run()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(times):
        run()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return max(0, after - before) / times


def _by_items(world: World) -> Iterator[Row | Fact]:
    sizes = (*ITEMS, DEEP_ITEMS) if world.deep else ITEMS
    transport = connect(world.engine_url, **SETTINGS)
    model = wide(16)
    records = opened(transport).collection(model)
    for items in sizes:
        _load(records, model, items)
    for order, size in (("round_robin", _PAGE), ("ordered", _ORDERED_PAGE)):
        contenders = []
        for items in sizes:
            page = _page(records, items, order, size)
            first = page()
            name = f"{order.replace('_', '-')} page of {size} from a cursor, of {items:,} items"
            yield Fact("growth", f"requests: {name}", first.consumed.requests, "Queries")
            yield Fact("growth", f"units: {name}", first.consumed.read_units, "units")
            contenders.append(Here(f"{items:,} items", _items(page)))
        yield Row(
            f"{order.replace('_', '-')} page of {size} from a cursor, by items",
            contenders,
            repeat=5,
            items=size,
            limits={contenders[-1].name: Limit(STEADY)} if order == "round_robin" else {},
        )
    transport.close()


def _load(records: Collection[Any], model: Any, items: int) -> None:
    names = ksuids(items)
    for start in range(0, items, _LOAD_AT_ONCE):
        part: Sequence[str] = names[start : start + _LOAD_AT_ONCE]
        records.batch_write(put=[model(tenant_id=f"items{items}", id=each, text="x" * 100) for each in part])


def _items(page: Callable[[], Any]) -> Callable[[], object]:
    return lambda: page().items


def _page(records: Collection[Any], items: int, order: str, size: int) -> Callable[[], Any]:
    partition = {"tenant_id": f"items{items}"}
    cursor = _cursor_after(records.pages(partition, limit=size, order=order), 5)
    return lambda: records.list(partition, limit=size, order=order, cursor=cursor)
