"""The base of entities: a pydantic model with a revision."""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict

from dynashard.schema import BORN, PREV, REV

UNREVISED: Final = ""
"""The revision of a stored item that has none, because it was written before it was adopted."""


class Revision(str):
    """The revision of a stored item. Callers can use it as any string; one of theirs has no earlier revisions.

    `replaced` are earlier revisions of the item, newest first; there may have been more. `kept_born` is the stored
    attribute `Born`.
    """

    # Most items have neither. Without room for them, a revision costs less.
    __slots__ = ()
    replaced: tuple[str, ...] = ()
    kept_born: str | None = None

    @property
    def born(self) -> str | None:
        """The revision of the item's creation; None if unknown."""
        return self.kept_born or (None if self.replaced else str(self))


class _LaterRevision(Revision):
    """A revision of an item that was changed since its creation."""


def revision_in(wire: Mapping[str, Any]) -> str:
    """Return the revision of a stored item: a `Revision`, or `UNREVISED` if it has none that the layer has written."""
    if REV not in wire or not (text := wire[REV].get("S")):
        return UNREVISED
    if PREV not in wire and BORN not in wire:
        return Revision(text)
    revision = _LaterRevision(text)
    if PREV in wire:
        revision.replaced = tuple(wire[PREV].get("S", "").split())
    if BORN in wire:
        revision.kept_born = wire[BORN].get("S")
    return revision


REVISION: Final = "_revision"
set_private: Final = BaseModel.__dict__["__pydantic_private__"].__set__
R = TypeVar("R", bound="Record")


class Record(BaseModel):
    """Validated fields and the revision at which they are stored."""

    model_config = ConfigDict(
        extra="forbid", validate_assignment=True, allow_inf_nan=False, ser_json_bytes="base64", val_json_bytes="base64"
    )

    @property
    def model_fields_set(self) -> set[str]:
        """Names of the fields that were given or stored; a copy, because items with every field share one."""
        return set(self.__pydantic_fields_set__)

    @property
    def revision(self) -> str | None:
        """Id of the last write of the item; None if it was never stored, empty if it was stored before its adoption."""
        found = (self.__pydantic_private__ or {}).get(REVISION)
        # Readers of pages leave it a string: few callers ask, and the garbage collector would look at each.
        return Revision(found) if found and type(found) is str else found


def holding(model: type[R], values: Mapping[str, Any]) -> R:
    """Return an instance with these values as its fields. No code of the model runs, as `model_construct` lets it."""
    item = object.__new__(model)
    for name, value in (("__dict__", dict(values)), ("__pydantic_fields_set__", set(values))):
        object.__setattr__(item, name, value)
    for name in ("__pydantic_extra__", "__pydantic_private__"):
        object.__setattr__(item, name, None)
    return item


def with_revision(item: R, revision: str | None) -> R:
    """Return the same item, with the revision at which it is stored."""
    # Declared private attributes double the time of validation. Their slot is compared and copied all the same.
    own = item.__pydantic_private__ if item.__private_attributes__ else None
    set_private(item, None if own is None and revision is None else {**(own or {}), REVISION: revision})
    return item
