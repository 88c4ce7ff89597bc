"""Which repository stores the items of an entity: the package of its fields that are stored out of line decides."""

from typing import TYPE_CHECKING, Any

from dynashard.entity import OutOfLine, definition
from dynashard.repository.repository import Repository
from dynashard.repository.store import E, Store

if TYPE_CHECKING:
    from dynashard.repository.interface import ItemRepository


class StoredOutOfLine(OutOfLine):
    """Marks a field that is stored out of line, and says what reads and writes items with such fields. Abstract."""

    def repository(self, store: Store, model: type[Any]) -> "ItemRepository[Any]":
        """Return what reads and writes the items of an entity with such fields."""
        raise NotImplementedError


def repository_of(store: Store, model: type[E]) -> "ItemRepository[E]":
    """Return what reads and writes the items of an entity."""
    stored = next(iter(definition(model).attachments.values()), None)
    return stored.repository(store, model) if isinstance(stored, StoredOutOfLine) else Repository(store, model)
