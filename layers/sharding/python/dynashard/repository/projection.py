"""What a read asks DynamoDB for: its consistency, and its projection, so that nothing else is sent or decoded."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from dynashard.cures import hint
from dynashard.entity import EntityDefinition
from dynashard.errors import InvalidQueryError
from dynashard.schema import BORN, EXPIRES_AT, MOVED_TO, PK, PREV, REV, SK, TYPE, VERSION
from dynashard.transport.interface import Reader, Wire

ENTITY: Final = ""
"""Where the entity of a stored item is, if a reader has made it: DynamoDB refuses empty names."""
LIVENESS: Final = f"{PK}, {SK}, {EXPIRES_AT}, {MOVED_TO}"
"""The projection that shows which item it is and whether it is live."""
MOST_NAMED: Final = 100
"""The most attributes that are named to leave out the keys of indexes."""
_JUDGED: Final = (PK, SK, TYPE, REV, VERSION, EXPIRES_AT, MOVED_TO)
"""Attributes that show which item it is, whether it is live, and at which revision and version."""


class Reading(NamedTuple):
    """Whether a read is consistent, and its projection, which includes `LIVENESS`; None for whole items.

    `reader` reads answers of BatchGetItem. In place of a stored item it may return the key, the time of expiry, and
    under `ENTITY` the entity. `names` are the placeholders in `fields`.
    """

    consistent: bool
    fields: str | None = None
    reader: Reader | None = None
    names: Mapping[str, str] | None = None

    def on(self, request: Wire) -> Wire:
        """Add these options to a request."""
        if self.consistent:
            request["ConsistentRead"] = True
        if self.fields is not None:
            request["ProjectionExpression"] = self.fields
        if self.names is not None:
            request["ExpressionAttributeNames"] = self.names
        return request


class Part(NamedTuple):
    """Some fields of a stored item, and the revision of the whole item."""

    values: dict[str, Any]
    revision: str


def projection(entity: EntityDefinition[Any], fields: Sequence[str], *, consistent: bool) -> Reading:
    """Return the reading of some fields; raises as `check_projected`."""
    check_projected(entity, tuple(fields))
    if entity.needs_whole(fields):
        # A part costs as many units.
        return Reading(consistent)
    attributes = (*entity.attributes_of((*fields, *entity.key_fields)), *_JUDGED)
    names = {f"#p{number}": each for number, each in enumerate(dict.fromkeys(attributes))}
    return Reading(consistent, ", ".join(names), names=names)


@lru_cache(maxsize=1024)
def without_index_keys(entity: EntityDefinition[Any]) -> Reading:
    """Return the eventually consistent reading of whole entities: all that they have, so no keys of indexes are sent.

    Of an entity with very many fields, it reads whole items, because the names would take longer than the keys; and of
    one with upgrades, because those need attributes that it no longer declares.
    """
    if len(entity.attributes) > MOST_NAMED or entity.versions.upgrades:
        return Reading(consistent=False)
    names = {f"#p{at}": each for at, each in enumerate(dict.fromkeys((*entity.attributes, *_JUDGED, PREV, BORN)))}
    return Reading(consistent=False, fields=", ".join(names), names=names)


@lru_cache(maxsize=1024)
def check_projected(entity: EntityDefinition[Any], fields: tuple[str, ...]) -> None:
    """Raise `InvalidQueryError` for a field that is unknown, or an attachment."""
    known = entity.model.model_fields
    for name in fields:
        if name not in known:
            near = hint(name, known)
            raise InvalidQueryError(f"{entity.name} has no field {name}{near}", field="fields")
        if name in entity.attachments:
            message = f"{name} is an attachment, which only a get of its item reads: include=[{name!r}]"
            raise InvalidQueryError(message, field="fields")
