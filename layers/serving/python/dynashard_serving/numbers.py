"""Numbers that the server allocates to new items: 1, 2, 3 for each tenant.

    @serve(path="incidents", numbered="number")
    class Incident(Entity, ...):
        number: Annotated[int, Field(ge=0)] = 0

A number is allocated by one conditional write of a counter item, before the item is created. A create that fails after
that leaves a gap, and no number is allocated twice, whatever answers are lost.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar, Final

from dynashard.entity import Entity, Key, definition
from dynashard.errors import (
    AlreadyExistsError,
    DynashardError,
    EngineUnavailableError,
    NotFoundError,
    OutcomeUnknownError,
    RevisionMismatchError,
    WriteContendedError,
)
from dynashard.service import Collection
from dynashard_serving.documents import TENANT
from dynashard_serving.limits import WRITE_ATTEMPTS

CollectionOf = Callable[[type[Entity]], Collection[Any]]
_UNANSWERED: Final = "DynamoDB gave no answer when a number was allocated. Nothing was stored; try again."


class Sequence(Entity, name="sequence.v1.Sequence", key=Key("{tenant_id}:{of}")):
    """The last number that was allocated to a tenant's items of an entity."""

    tenant_id: str
    of: str
    last: int = 0


class NumberTakenError(DynashardError):
    """A number is brought that is, or may be, that of another item; every number up to `last` is taken."""

    code = "number_taken"
    status = 409
    in_details: ClassVar[tuple[str, ...]] = ("last",)

    def __init__(self, number: int, last: int) -> None:
        super().__init__(f"The number {number} is taken, as is every number up to {last}. Leave it out for a new one.")
        self.last = last


class Numbers:
    """Gives new items their numbers. Safe to share between threads."""

    def __init__(self, collection_of: CollectionOf) -> None:
        self._collection_of = collection_of

    def numbered(self, name: str, item: Entity) -> Entity:
        """Return a new item with its number.

        A number that the creator brings is kept. Once a number was allocated to the tenant, it must be above all of
        them.

        Raises:
            NumberTakenError: the number that is brought is not above all others.
            UndecodableItemError: the counter begins, and a stored item does not fit, so its number is not known.
            EngineUnavailableError: no answer came; nothing was stored.
            WriteContendedError: other writers were faster each time.

        Cost: 1 write unit, 1 round trip. The first one of a tenant reads all of the tenant's items. A number that is
            brought: 1 read unit, 1 round trip; and the same as above once a number was allocated.
        """
        key, brought = {TENANT: getattr(item, TENANT), "of": definition(type(item)).name}, int(getattr(item, name))
        for _ in range(WRITE_ATTEMPTS):
            try:
                number = self._brought(key, brought) if brought else self._next(key)
            except NotFoundError:
                self._begin(key, type(item), name)
            except RevisionMismatchError:
                continue
            except OutcomeUnknownError as lost:
                # A number that is taken without an item stays a gap.
                raise EngineUnavailableError(_UNANSWERED, operation=lost.operation, aws_code=lost.aws_code) from lost
            else:
                return item.model_copy(update={name: number})
        raise WriteContendedError("Other writers kept taking numbers: try again.")

    def _next(self, key: dict[str, Any]) -> int:
        return int(self._collection_of(Sequence).update(key, add={"last": 1}).last)

    def _brought(self, key: dict[str, Any], number: int) -> int:
        sequences = self._collection_of(Sequence)
        current = sequences.find(key, consistent=True)
        if current is not None and number <= current.last:
            raise NumberTakenError(number, current.last)
        if current is not None:
            sequences.update(key, set={"last": number}, if_match=current.revision)
        return number

    def _begin(self, key: dict[str, Any], model: type[Entity], name: str) -> None:
        """Store the counter of a tenant, after the highest number that is stored."""
        items = self._collection_of(model).scan({TENANT: key[TENANT]}, consistent=True, strict=True)
        last = max((int(getattr(each, name)) for each in items), default=0)
        with suppress(AlreadyExistsError):
            self._collection_of(Sequence).create(Sequence(**key, last=last))
