"""How a field is declared that is stored out of line."""

from dataclasses import dataclass
from typing import Any

from dynashard.collection import CollectedOutOfLine, Collection


@dataclass(frozen=True, slots=True)
class Attachment(CollectedOutOfLine):
    """Marks a field that is stored out of line: large, seldom read, in no listing and in no index.

        details: Annotated[JsonValue | None, Attachment()] = None

    The item holds a small pointer to it, which is written together with the rest of the item. A reader gets it on
    request, `get(key, include=("details",))`. A writer that omits the field leaves it unchanged.

    Attributes:
        max_bytes: the most it may hold, written as JSON.
    """

    def collection(self) -> type[Collection[Any]]:
        """Return the class of collections that read and write attachments."""
        # Loaded with the first collection: a declaration alone does not need it.
        from dynashard_patterns.attachments.collection import AttachmentCollection  # noqa: PLC0415

        return AttachmentCollection
