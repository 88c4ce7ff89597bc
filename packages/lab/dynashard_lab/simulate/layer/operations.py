"""What callers do with the items of a demand: they create, read, change and list them."""

from collections.abc import Callable, Iterator
from itertools import accumulate
from random import Random
from typing import Any, Final, NamedTuple

from dynashard.service import Collection
from dynashard_lab.simulate.layer.entities import FIRST_VERSION, Item, Items
from dynashard_lab.simulate.scenario import DemandSpec, OperationKind


class Caller(NamedTuple):
    """What a process sends operations with: its collection of the items, and its wall clock, in epoch seconds."""

    collection: Collection[Any]
    clock: Callable[[], float]


class Version(NamedTuple):
    """The last acknowledged value of an item: the number in its data, and its revision."""

    number: int
    revision: str | None


class Stored(NamedTuple):
    """An item that was certainly stored, with its last acknowledged value."""

    tenant: str
    id: str
    version: int


class Operations:
    """Sends the operations of one demand, and remembers what has to be stored afterwards.

    Every change names the revision that was acknowledged last, so the last acknowledged value of an item is the one
    that has to be stored. A change of an item that meets another one ends with `RevisionMismatchError`.

    Args:
        spec: the demand.
        items: makes its items.
        random: draws the kind of an operation, and its item.
    """

    def __init__(self, spec: DemandSpec, items: Items, random: Random) -> None:
        self._spec = spec
        self._items = items
        self._random = random
        self._kinds: Final = list(spec.shares)
        self._shares: Final = list(accumulate(spec.shares.values()))
        self._weights = list(accumulate(1.0 / rank**spec.skew for rank in range(1, len(items.tenants) + 1)))
        self._changing = not {"update", "put"}.isdisjoint(spec.shares)
        self._known: list[tuple[str, str]] = []
        self._versions: list[Version] = []
        """The last acknowledged value of each known item; empty if no operation changes items."""
        self._numbers = FIRST_VERSION
        self._cursors: dict[tuple[int, str], str | None] = {}
        self._sending: dict[OperationKind, Callable[[Caller], None]] = {
            "create": self._create,
            "get": self._get,
            "update": self._update,
            "put": self._put,
            "list": self._list,
        }

    @property
    def acknowledged(self) -> int:
        """How many items were certainly stored."""
        return len(self._known)

    def stored(self) -> Iterator[Stored]:
        """Yield all items that were certainly stored."""
        if not self._changing:
            yield from (Stored(*key, FIRST_VERSION) for key in self._known)
            return
        for key, version in zip(self._known, self._versions, strict=True):
            yield Stored(*key, version.number)

    def draw(self) -> OperationKind:
        """Return the kind of the next operation."""
        kinds = self._kinds
        return kinds[0] if len(kinds) == 1 else self._random.choices(kinds, cum_weights=self._shares)[0]

    def send(self, kind: OperationKind, caller: Caller) -> None:
        """Do one operation; raises as the collection does."""
        self._sending[kind](caller)

    def new_item(self, caller: Caller) -> Item:
        """Return an item that was never stored, whose id a process makes now, by its clock."""
        return self._items.make(self._tenant(), caller.clock())

    def acknowledge(self, item: Item) -> None:
        """Remember an item that was certainly stored for the first time, as it is stored."""
        self._known.append((item.tenant_id, item.id))
        if self._changing:
            self._versions.append(Version(FIRST_VERSION, item.revision))

    def _tenant(self) -> str:
        tenants = self._items.tenants
        return tenants[0] if len(tenants) == 1 else self._random.choices(tenants, cum_weights=self._weights)[0]

    def _any_item(self) -> tuple[int, str, str]:
        """Draw a known item: its number, its tenant and its id."""
        number = self._random.randrange(len(self._known))
        return number, *self._known[number]

    def _create(self, caller: Caller) -> None:
        self.acknowledge(caller.collection.create(self.new_item(caller)))

    def _get(self, caller: Caller) -> None:
        _, tenant, id_ = self._any_item()
        caller.collection.get({"tenant_id": tenant, "id": id_}, consistent=self._spec.consistent)

    def _update(self, caller: Caller) -> None:
        number, tenant, id_ = self._any_item()
        version, before = self._next_version(), self._versions[number].revision
        change = {"data": self._items.data(version)}
        after = caller.collection.update({"tenant_id": tenant, "id": id_}, set=change, if_match=before)
        self._versions[number] = Version(version, after.revision)

    def _put(self, caller: Caller) -> None:
        number, tenant, id_ = self._any_item()
        version, before = self._next_version(), self._versions[number].revision
        item = self._items.model(tenant_id=tenant, id=id_, data=self._items.data(version))
        after = caller.collection.replace(item, if_match=before)
        self._versions[number] = Version(version, after.revision)

    def _next_version(self) -> int:
        self._numbers += 1
        return self._numbers

    def _list(self, caller: Caller) -> None:
        """Read the next page. Each process reads through each tenant's items again and again."""
        spec, tenant = self._spec, self._tenant()
        walk = id(caller.collection), tenant
        page = caller.collection.list(
            {"tenant_id": tenant},
            cursor=self._cursors.get(walk),
            limit=spec.page,
            order=spec.order,
            consistent=spec.consistent,
        )
        self._cursors[walk] = page.cursor
