"""How a field is declared that is stored out of line."""

from dataclasses import dataclass
from typing import Any

from dynashard.repository import Store
from dynashard.repository.interface import ItemRepository
from dynashard.repository.out_of_line import StoredOutOfLine


@dataclass(frozen=True, slots=True)
class Attachment(StoredOutOfLine):
    """Marks a field that is stored out of line: large, seldom read, in no listing and in no index.

        details: Annotated[JsonValue | None, Attachment()] = None

    The item holds a small pointer to it, which is written together with the rest of the item. A reader gets it on
    request, `get(key, include=("details",))`. A writer that omits the field leaves it unchanged.

    Attributes:
        max_bytes: the most it may hold, written as JSON.
    """

    def repository(self, store: Store, model: type[Any]) -> ItemRepository[Any]:
        """Return what reads and writes items with attachments."""
        # Loaded with the first collection: a declaration alone does not need it.
        from dynashard_patterns.attachments.repository import AttachmentRepository  # noqa: PLC0415

        return AttachmentRepository(store, model)
