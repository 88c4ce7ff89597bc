"""Checks that stored attachments and the items that point to them belong together."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dynashard.entity import EntityDefinition
from dynashard.repository.conditions import is_live
from dynashard.service import Dynashard
from dynashard.transport.interface import Wire
from dynashard_patterns.attachments.pieces import Manifest, field_of
from dynashard_patterns.attachments.sweep import missing_pieces, sweep
from dynashard_tools.counting import plural
from dynashard_tools.verify.findings import Change, Finding, Kind, unreadable
from dynashard_tools.verify.parts import Check, Part
from dynashard_tools.verify.stored import key_text


@dataclass(frozen=True, slots=True)
class AttachmentsCheck(Check):
    """Looks for pieces that are missing of the attachments that items point to. Cost: what reading the pieces costs."""

    part: ClassVar[Part] = Part.ATTACHMENTS
    reads_items: ClassVar[bool] = True

    db: Dynashard

    def look(self, entity: EntityDefinition[Any], item: Wire) -> Iterator[Finding]:
        """Find missing pieces of a stored item."""
        if not entity.attachments or not is_live(item, self.db.store.now()):
            return
        for name, lacking in missing_pieces(self.db.store, entity, item).items():
            detail = f"{lacking} of the pieces of {name} are not stored: write it again, or remove it"
            yield Finding(Kind.ATTACHMENT, key_text(item), detail, lacking)


@dataclass(slots=True)
class LeftoversCheck(Check):
    """Looks for versions of an entity's attachments that no item points to: an interrupted write or delete left them.

    So did a delete after the field was removed from the declaration. Such fields are found if the table is read.

    Attributes:
        grace: how old such a version must be, in seconds.

    Cost: as `dynashard_patterns.attachments.sweep`.
    """

    part: ClassVar[Part] = Part.LEFTOVERS
    repairs: ClassVar[str] = "remove versions of attachments that no item points to"

    db: Dynashard
    entity: EntityDefinition[Any]
    grace: float
    mend: bool = False
    _undeclared: set[str] = field(default_factory=set)

    def support(self, row: Wire) -> None:
        """Record a field that has pieces, and that is not declared any more."""
        name = field_of(self.entity, row)
        if name is not None and name not in self.entity.attachments:
            self._undeclared.add(name)

    def finish(self, advance: Callable[[int], None]) -> Iterator[Finding]:
        """Find the versions that no item points to."""
        fields = sorted(self._undeclared)
        for done in sweep(self.db.store, self.entity, undeclared=fields, grace=self.grace, dry=not self.mend):
            advance(done.versions)
            yield from map(unreadable, done.unreadable)
            for version in done.last:
                yield _leftover(version, mended=self.mend)


def _leftover(version: Manifest, *, mended: bool) -> Finding:
    where = f"{version.place.key.partition} / {version.place.key.sort}"
    detail = (
        f"no item points to the version {version.version} of {version.place.kind}, {plural(version.pieces, 'piece')}"
    )
    changes = {version.version: Change({"M": version.stored()}, None)}
    return Finding(Kind.LEFTOVER, where, detail, mended=mended, changes=changes)
