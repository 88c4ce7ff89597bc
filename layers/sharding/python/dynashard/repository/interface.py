"""What a collection needs of what stores its items: `Repository`, or that of a package that stores them otherwise."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from dynashard.entity import Entity, EntityDefinition
from dynashard.repository.batches import Batches
from dynashard.repository.projection import Part
from dynashard.repository.store import Companion, KeyLike, Written

E = TypeVar("E", bound=Entity)


class SingleItems(Protocol[E]):
    """Reads and writes single items of one entity; each method does what that of `Repository` does."""

    @property
    def entity(self) -> EntityDefinition[E]:
        """The compiled declaration."""
        ...

    @property
    def can_create_with(self) -> bool:
        """Whether `create_with` can be used."""
        ...

    def check(self, item: E, *, timely: bool = True) -> None:
        """Raise the `InputError` that storing this item would raise before anything is sent."""
        ...

    def create(self, item: E, /, *, handling: str | None = None) -> E:
        """Store an item under a key that has no live item."""
        ...

    def create_with(self, item: E, companion: Companion) -> E:
        """Store an item under a key that has no live item, in one transaction with an action on another table."""
        ...

    def confirm_created(self, key: KeyLike, revision: str, shards: int) -> bool:
        """Whether readers find what a create stored."""
        ...

    def find(self, key: KeyLike, /, *, consistent: bool = False, include: Sequence[str] = ()) -> E | None:
        """Return the live item with this key, or None."""
        ...

    def exists(self, key: KeyLike, /, *, consistent: bool = False) -> bool:
        """Whether a live item has this key."""
        ...

    def part(self, key: KeyLike, /, *, fields: Sequence[str], consistent: bool = False) -> Part:
        """Return some fields of the live item with this key."""
        ...

    def put(
        self, item: E, /, *, if_match: str | None = None, handling: str | None = None, over: E | None = None
    ) -> Written[E]:
        """Store an item, whether or not its key had one."""
        ...

    def update(
        self,
        key: KeyLike,
        /,
        *,
        set: Mapping[str, Any] | None = None,  # noqa: A002 - DynamoDB's own word for it
        remove: Collection[str] = (),
        add: Mapping[str, Any] | None = None,
        if_match: str | None = None,
        handling: str | None = None,
    ) -> E:
        """Update some fields of a live item."""
        ...

    def delete(self, key: KeyLike, /, *, if_match: str | None = None, handling: str | None = None) -> None:
        """Delete a live item."""
        ...


class ItemRepository(SingleItems[E], Protocol[E]):
    """Reads and writes the items of one entity, one or many at a time."""

    @property
    def batches(self) -> Batches[E]:
        """Reads and writes many items at a time."""
        ...
