"""Writes the items of a batch one by one, for entities whose items are stored together with others."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Generic

from dynashard.entity import ItemKey
from dynashard.errors import DynashardError, InputError, NotFoundError
from dynashard.repository.batch_item_writer import key_once
from dynashard.repository.batches import Outcome
from dynashard.repository.retry_policy import map_concurrently
from dynashard.repository.store import E, KeyLike, Store

if TYPE_CHECKING:
    from dynashard.repository.interface import SingleItems

_Prepared = Callable[[], object] | InputError
"""What does a write of a batch, or why it cannot be done."""


class SingleBatchWriter(Generic[E]):
    """Writes the items of batches by single writes, as many at a time as `Store.batch_concurrency`.

    An item with unique fields is written in a transaction with its reservations, and one with attachments after their
    pieces. BatchWriteItem can do neither, and one transaction for several items would refuse all of them because of
    one. What an item has besides the declared attributes is kept.
    """

    def __init__(self, store: Store, items: "SingleItems[E]") -> None:
        self._store = store
        self._items = items

    def do(self, put: Sequence[E], delete: Sequence[KeyLike], *, whole: bool, refuse: bool) -> list[Outcome]:  # noqa: ARG002 - all is kept
        """Do the writes; see `BatchWriter.do`. Cost: for each what `SingleItems.put` and `delete` cost."""
        seen: set[ItemKey] = set()
        prepared = [self._prepared(seen, item, item) for item in put]
        prepared += [self._prepared(seen, key, None) for key in delete]
        refused = next((each for each in prepared if isinstance(each, InputError)), None)
        if refuse and refused is not None:
            raise refused
        return map_concurrently(_done, prepared, self._store.batch_concurrency)

    def _prepared(self, seen: set[ItemKey], member: KeyLike, item: E | None) -> _Prepared:
        """Prepare the put of an item, or the delete of a key if there is no item."""
        entity = self._items.entity
        try:
            self._store.router.require_writable(entity, key_once(entity, seen, member))
            if item is None:
                return partial(self._remove, member)
            self._items.check(item)
        except InputError as error:
            return error
        return partial(self._items.put, item)

    def _remove(self, key: KeyLike) -> None:
        """Delete an item, whether or not there is one."""
        with suppress(NotFoundError):
            self._items.delete(key)


def _done(prepared: _Prepared) -> Outcome:
    if isinstance(prepared, InputError):
        return prepared
    try:
        prepared()
    except DynashardError as error:
        return error
    return None
