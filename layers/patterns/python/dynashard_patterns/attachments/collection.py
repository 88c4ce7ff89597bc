"""Collections of entities that have attachments."""

from typing import TypeVar

from dynashard import Collection, Entity
from dynashard_patterns.attachments.repository import DetachedRepository

E = TypeVar("E", bound=Entity)


class AttachmentCollection(DetachedRepository[E], Collection[E]):
    """The items of one entity that has attachments; see `DetachedRepository` for how its writes differ."""
