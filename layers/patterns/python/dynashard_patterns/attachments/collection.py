"""Collections of entities that have attachments."""

from typing import TypeVar

from dynashard import Collection, Entity
from dynashard_patterns.attachments.repository import AttachmentRepository

E = TypeVar("E", bound=Entity)


class AttachmentCollection(Collection[E], AttachmentRepository[E]):
    """The items of one entity that has attachments; see `AttachmentRepository` for how its writes differ."""
