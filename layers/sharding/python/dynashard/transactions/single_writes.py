"""Writes single items as transactions of one step, whose tokens settle what became of a lost answer."""

from collections.abc import Collection, Mapping
from typing import Any, TypeVar, cast

from dynashard.entity import Entity
from dynashard.errors import TransactionRefusedError
from dynashard.repository import Companion, KeyLike, Store
from dynashard.transactions.steps import Create, Delete, Put, Step, Update
from dynashard.transactions.transaction import Transaction

E = TypeVar("E", bound=Entity)


class TransactedWrites:
    """Implements `ExactlyOnce`. Safe to share between threads."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def create(self, item: E, companion: Companion | None = None) -> E:
        """Store an item under a key that has no live item; see `Repository.create` and `create_with`."""
        return cast("E", self._done(Create(item), companion))

    def put(self, item: E, *, if_match: str | None, over: Entity | None) -> E:
        """Store an item in place of one, or under a free key; see `Put`."""
        return cast("E", self._done(Put(item, if_match, over)))

    def update(
        self,
        model: type[E],
        key: KeyLike,
        *,
        set: Mapping[str, Any] | None,  # noqa: A002 - DynamoDB's own word for it
        remove: Collection[str],
        add: Mapping[str, Any] | None,
        if_match: str | None,
    ) -> E:
        """Update some fields of a live item, and return it as updated; see `Repository.update`."""
        return cast("E", self._done(Update(model, key, set, remove, add, if_match, returns=True)))

    def delete(self, model: type[Entity], key: KeyLike, *, if_match: str | None) -> None:
        """Delete a live item; see `Repository.delete`."""
        self._done(Delete(model, key, if_match))

    def _done(self, step: Step, companion: Companion | None = None) -> Entity | None:
        """Do one step, and return what it stored. Raises what a write of a single item would raise."""
        try:
            [stored] = Transaction(self._store, [step], companion).run()
        except TransactionRefusedError as refused:
            raise refused.cause if refused.cause is not None else refused from None
        return stored
