"""Writes the items of a batch whose entity has unique fields: each in a transaction with its reservations."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic

from dynashard.entity import ItemKey
from dynashard.entity.uniqueness import reserved_for
from dynashard.errors import DynashardError, InputError, NotFoundError, OutcomeUnknownError
from dynashard.repository.batch_item_writer import key_once
from dynashard.repository.batches import Outcome
from dynashard.repository.key_names import key_named
from dynashard.repository.retry_policy import map_concurrently
from dynashard.repository.store import E, KeyLike, Store

if TYPE_CHECKING:
    from dynashard.repository.item_writes import ItemWrites


class UniqueBatchWriter(Generic[E]):
    """Writes the items of batches one by one, as many at a time as `Store.batch_concurrency`.

    BatchWriteItem takes no conditions, and one transaction for several items would refuse all of them because of one.
    What an item has besides the declared attributes is kept.
    """

    def __init__(self, store: Store, writes: "ItemWrites[E]") -> None:
        self._store = store
        self._writes = writes
        self._entity = writes.entity

    def do(self, put: Sequence[E], delete: Sequence[KeyLike], *, whole: bool, refuse: bool) -> list[Outcome]:  # noqa: ARG002 - all is kept
        """Do the writes; see `BatchWriter.do`. Cost: for each what `Repository.put` and `delete` cost."""
        seen: set[ItemKey] = set()
        problems = [self._problem(seen, member, stores=at < len(put)) for at, member in enumerate((*put, *delete))]
        refused = next((each for each in problems if each is not None), None)
        if refuse and refused is not None:
            raise refused
        works = [*((item, True) for item in put), *((key, False) for key in delete)]
        ready = [work for work, problem in zip(works, problems, strict=True) if problem is None]
        outcomes = iter(map_concurrently(self._outcome, ready, self._store.batch_concurrency))
        return [next(outcomes) if problem is None else problem for problem in problems]

    def _problem(self, seen: set[ItemKey], member: E | KeyLike, *, stores: bool) -> InputError | None:
        """Why a member of the batch cannot be written."""
        try:
            self._store.router.require_writable(self._entity, key_once(self._entity, seen, member))
            if stores:
                item: E = member  # type: ignore[assignment]
                self._writes.builder.check(item)
                reserved_for(self._entity, item.__dict__)
        except InputError as error:
            return error
        return None

    def _outcome(self, work: tuple[E | KeyLike, bool]) -> Outcome:
        member, stores = work
        try:
            if stores:
                self._writes.put(member)  # type: ignore[arg-type]
            else:
                self._writes.delete(member)
        except NotFoundError:
            return None
        except OutcomeUnknownError as unknown:
            unknown.key = key_named(self._entity, member)
            return unknown
        except DynashardError as error:
            return error
        return None
