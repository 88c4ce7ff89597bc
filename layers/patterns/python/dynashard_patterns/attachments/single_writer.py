"""Writes the items of a batch one by one, because a version of an attachment takes several requests."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Generic

from dynashard.entity import ItemKey
from dynashard.errors import DynashardError, InputError, NotFoundError
from dynashard.repository import KeyLike, Store
from dynashard.repository.batch_item_writer import key_once
from dynashard.repository.batches import Outcome
from dynashard.repository.interface import ItemRepository
from dynashard.repository.retry_policy import map_concurrently
from dynashard.repository.store import E


class SingleWriter(Generic[E]):
    """Writes the items of batches by single writes of a repository: each costs what it costs alone."""

    def __init__(self, store: Store, repository: ItemRepository[E]) -> None:
        self._store = store
        self._repository = repository

    def do(self, put: Sequence[E], delete: Sequence[KeyLike], *, whole: bool, refuse: bool) -> list[Outcome]:  # noqa: ARG002 - each write keeps what its item has by itself
        """Do each write, up to 16 at a time; see `BatchWriter.do`."""
        seen = set[ItemKey]()
        writes: list[Callable[[], object]] = []
        for place, member in enumerate((*put, *delete)):
            try:
                key_once(self._repository.entity, seen, member)
                writes.append(self._put(put[place]) if place < len(put) else partial(self._remove, member))
            except InputError as error:
                if refuse:
                    raise
                writes.append(partial(_refused, error))
        return map_concurrently(_tried, writes, self._store.batch_concurrency)

    def _put(self, item: E) -> Callable[[], object]:
        """Return the put of an item that can be stored."""
        self._repository.check(item)
        return partial(self._repository.put, item)

    def _remove(self, key: KeyLike) -> None:
        """Delete an item, whether or not there is one."""
        with suppress(NotFoundError):
            self._repository.delete(key)


def _refused(error: InputError) -> None:
    raise error


def _tried(write: Callable[[], object]) -> Outcome:
    """Do a write; return None, or why it is not proved to be done."""
    try:
        write()
    except DynashardError as error:
        return error
    return None
