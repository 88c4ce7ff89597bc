"""Numbers that the server allocates to new items: 1, 2, 3 for each tenant.

    @serve(path="incidents", numbered="number")
    class Incident(Entity, ...):
        number: Annotated[int, Field(ge=0)] = 0

A number is allocated by one conditional write of a counter item, before the item is created. A number that a creator
sends is recorded there in the same way, and must be above all others. A create that fails after that leaves a gap, and
no number is given twice, whatever answers are lost.

A create that is repeated sends its number again. So the counter keeps for which create it was: the same one may use it
for an hour. That gives the number to one item only, because either the item's key or the record of the idempotency key
lets the create be done once.
"""

from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from typing import Any, ClassVar, Final

from dynashard.entity import Entity, Key, definition
from dynashard.errors import (
    AlreadyExistsError,
    DynashardError,
    EngineUnavailableError,
    FieldError,
    NotFoundError,
    OutcomeUnknownError,
    RevisionMismatchError,
    ValidationFailedError,
    WriteContendedError,
)
from dynashard.service import Collection
from dynashard_serving.documents import TENANT
from dynashard_serving.limits import WRITE_ATTEMPTS

CollectionOf = Callable[[type[Entity]], Collection[Any]]
MOST_SENT: Final = 10**15
"""The highest number that a creator may send. A number beyond what is stored exactly would leave none for others."""
REPEATED_SECONDS: Final = 3600
"""How long a create may repeat its number: well below the time for which an idempotency key is kept."""
_UNANSWERED: Final = "DynamoDB gave no answer when a number was allocated. Nothing was stored; try again."


class Sequence(Entity, name="sequence.v1.Sequence", key=Key("{tenant_id}:{of}")):
    """The last number of a tenant's items of an entity.

    `sent` is the last one that a creator has sent; `sent_by`, the digest of a create, may repeat it until `sent_until`.
    """

    tenant_id: str
    of: str
    last: int = 0
    sent: int = 0
    sent_by: str = ""
    sent_until: int = 0


class NumberTakenError(DynashardError):
    """A number is sent that is, or may be, that of another item; every number up to `last` is taken."""

    code = "number_taken"
    status = 409
    in_details: ClassVar[tuple[str, ...]] = ("last",)

    def __init__(self, number: int, last: int) -> None:
        super().__init__(f"The number {number} is taken, as is every number up to {last}. Leave it out for a new one.")
        self.last = last


class Numbers:
    """Gives new items their numbers. Safe to share between threads."""

    def __init__(self, collection_of: CollectionOf, clock: Callable[[], float]) -> None:
        self._collection_of = collection_of
        self._clock = clock

    def numbered(self, name: str, item: Entity, idempotency_key: str | None = None) -> Entity:
        """Return a new item with its number: the one that its creator sends, or the next one.

        Args:
            name: the field with the number.
            item: the item.
            idempotency_key: that of the create; without one, a create is repeated if its item has the same key.

        Raises:
            AlreadyExistsError: the number that is sent is not above all others, and the item exists.
            NumberTakenError: the number that is sent is not above all others.
            ValidationFailedError: the number that is sent is above `MOST_SENT`.
            UndecodableItemError: the counter begins, and a stored item does not fit, so its number is not known.
            EngineUnavailableError: no answer came; nothing was stored.
            WriteContendedError: other writers were faster each time.

        Cost: 1 write unit, 1 round trip; for a number that is sent 1 read unit and 1 round trip more. The first one of
            a tenant reads all of the tenant's items.
        """
        key, sent = {TENANT: getattr(item, TENANT), "of": definition(type(item)).name}, int(getattr(item, name))
        if sent > MOST_SENT:
            raise ValidationFailedError(FieldError(name, f"Use a number up to {MOST_SENT}.", "out_of_range"))
        by = _digest(item, idempotency_key)
        for _ in range(WRITE_ATTEMPTS):
            try:
                number = self._taken(key, sent, by)
                if number is None:
                    self._begin(key, type(item), name)
                    continue
            except RevisionMismatchError:
                continue
            except NumberTakenError:
                if self._collection_of(type(item)).exists(item, consistent=True):
                    raise AlreadyExistsError(f"{key['of']} exists already") from None
                raise
            except OutcomeUnknownError as lost:
                # A number that is taken without an item stays a gap.
                raise EngineUnavailableError(_UNANSWERED, operation=lost.operation, aws_code=lost.aws_code) from lost
            return item.model_copy(update={name: number})
        raise WriteContendedError("Other writers kept taking numbers: try again.")

    def _taken(self, key: dict[str, Any], sent: int, by: str) -> int | None:
        """Return the number that is sent, or the next one; None if the tenant has no counter."""
        try:
            return self._sent(key, sent, by) if sent else self._next(key)
        except NotFoundError:
            return None

    def _next(self, key: dict[str, Any]) -> int:
        return int(self._collection_of(Sequence).update(key, add={"last": 1}).last)

    def _sent(self, key: dict[str, Any], number: int, by: str) -> int:
        sequences, now = self._collection_of(Sequence), int(self._clock())
        current = sequences.get(key, consistent=True)
        if number == current.last == current.sent and by == current.sent_by and now < current.sent_until:
            return number
        if number <= current.last:
            raise NumberTakenError(number, current.last)
        claim = {"last": number, "sent": number, "sent_by": by, "sent_until": now + REPEATED_SECONDS}
        sequences.update(key, set=claim, if_match=current.revision)
        return number

    def _begin(self, key: dict[str, Any], model: type[Entity], name: str) -> None:
        """Store the counter of a tenant, after the highest number that is stored."""
        items = self._collection_of(model).scan({TENANT: key[TENANT]}, consistent=True, strict=True)
        last = max((int(getattr(each, name)) for each in items), default=0)
        with suppress(AlreadyExistsError):
            self._collection_of(Sequence).create(Sequence(**key, last=last))


def _digest(item: Entity, idempotency_key: str | None) -> str:
    """Return what a create and its repeats have in common, and no other create."""
    place = definition(type(item)).key_of(item)
    text = f"item\n{place.partition}\n{place.sort}" if idempotency_key is None else f"key\n{idempotency_key}"
    return sha256(text.encode()).hexdigest()[:32]
