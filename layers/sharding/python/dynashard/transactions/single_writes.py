"""Write single items as transactions of one step, whose tokens settle what became of a lost answer."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from dynashard.entity import Entity
from dynashard.errors import TransactionRefusedError
from dynashard.repository import Companion, KeyLike, Store

if TYPE_CHECKING:
    from dynashard.transactions import Step

E = TypeVar("E", bound=Entity)


class TransactedWrites:
    """Implements `ExactlyOnce`. Transactions are imported with the first of these writes."""

    def create(self, store: Store, item: E, companion: Companion | None = None) -> E:
        """Store an item under a key that has no live item; see `Repository.create` and `create_with`."""
        from dynashard.transactions import Create  # noqa: PLC0415 - other writes need none of it

        return cast("E", _done(store, Create(item), companion))

    def put(self, store: Store, item: E, *, if_match: str | None, over: Entity | None) -> E:
        """Store an item in place of one, or under a free key; see `Put`."""
        from dynashard.transactions import Put  # noqa: PLC0415 - as above

        return cast("E", _done(store, Put(item, if_match, over)))

    def update(
        self,
        store: Store,
        model: type[E],
        key: KeyLike,
        *,
        set: Mapping[str, Any] | None,  # noqa: A002 - DynamoDB's own word for it
        remove: Collection[str],
        add: Mapping[str, Any] | None,
        if_match: str | None,
    ) -> E:
        """Update some fields of a live item, and return it as updated; see `Repository.update`."""
        from dynashard.transactions import Update  # noqa: PLC0415 - as above

        return cast("E", _done(store, Update(model, key, set, remove, add, if_match, returns=True)))

    def delete(self, store: Store, model: type[Entity], key: KeyLike, *, if_match: str | None) -> None:
        """Delete a live item; see `Repository.delete`."""
        from dynashard.transactions import Delete  # noqa: PLC0415 - as above

        _done(store, Delete(model, key, if_match))


def _done(store: Store, step: "Step", companion: Companion | None = None) -> Entity | None:
    """Do one step, and return what it stored. Raises what a write of a single item would raise."""
    from dynashard.transactions import Transaction  # noqa: PLC0415 - as above

    try:
        [stored] = Transaction(store, [step], companion).run()
    except TransactionRefusedError as refused:
        raise refused.cause if refused.cause is not None else refused from None
    return stored
