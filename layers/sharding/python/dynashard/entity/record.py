"""The base of entities: a pydantic model with a revision."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, PrivateAttr

from dynashard.schema import BORN, PREV, REV

UNREVISED: Final = ""
"""The revision of a stored item that has none, because it was written before it was adopted."""


class Revision(str):  # noqa: SLOT000 - a text cannot have slots
    """The revision of a stored item. Callers can use it as any string; one of theirs has no earlier revisions.

    `replaced` are earlier revisions of the item, newest first; there may have been more. `kept_born` is the stored
    attribute `Born`.
    """

    replaced: tuple[str, ...] = ()
    kept_born: str | None = None

    @property
    def born(self) -> str | None:
        """The revision of the item's creation; None if unknown."""
        return self.kept_born or (None if self.replaced else str(self))


def revision_in(wire: Mapping[str, Any]) -> str:
    """Return the revision of a stored item: a `Revision`, or `UNREVISED`."""
    if REV not in wire:
        return UNREVISED
    revision = Revision(wire[REV]["S"])
    if PREV in wire:
        revision.replaced = tuple(wire[PREV].get("S", "").split())
    if BORN in wire:
        revision.kept_born = wire[BORN].get("S")
    return revision


class Record(BaseModel):
    """Validated fields and the revision at which they are stored."""

    model_config = ConfigDict(
        extra="forbid", validate_assignment=True, allow_inf_nan=False, ser_json_bytes="base64", val_json_bytes="base64"
    )

    _revision: str | None = PrivateAttr(default=None)

    @property
    def revision(self) -> str | None:
        """Id of the last write of the item; None if it was never stored, empty if it was stored before its adoption."""
        return self._revision
