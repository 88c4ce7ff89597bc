"""What a backend was made from, and what a release does to each of its files."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from dynashard_tools.failure import CommandError
from dynashard_tools.new.merging import merged

RECORD: Final = Path(".dynashard", "backend.json")
"""Where a backend keeps what it was made from. A release merges against it, so no older release is needed."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What a backend was made from.

    Attributes:
        name: its name.
        version: the release.
        files: the files of that release, by their paths.
    """

    name: str
    version: str
    files: Mapping[str, str]

    @classmethod
    def of(cls, root: Path) -> Self:
        """Read the record of a backend.

        Raises:
            CommandError: there is none, or it cannot be read.
        """
        path = root / RECORD
        try:
            stored = json.loads(path.read_text("utf-8"))
            return cls(stored["name"], stored["version"], stored["files"])
        except FileNotFoundError:
            raise CommandError(f"{path} is missing: only a backend that `dynashard new` made can be upgraded") from None
        except (ValueError, KeyError, TypeError) as error:
            raise CommandError(f"{path} cannot be read: restore it from version control") from error

    def write(self, root: Path) -> None:
        """Write the record."""
        path = root / RECORD
        path.parent.mkdir(exist_ok=True)
        stored = {"name": self.name, "version": self.version, "files": dict(self.files)}
        path.write_text(json.dumps(stored, indent=1) + "\n", "utf-8")


@dataclass(slots=True)
class Changes:
    """What an upgrade did, each by the paths of files.

    Attributes:
        written: have the changes of the release.
        conflicts: have them too, and conflicts between markers.
        removed: the release no longer has them, and the owner had not changed them.
        kept: the release no longer has them, or the owner has removed them; they are as before.
    """

    written: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)


def upgrade(root: Path, origin: Origin, release: Origin) -> Changes:
    """Merge a release into the files of a backend, and record it.

    Raises:
        CommandError: git is not installed.
    """
    changes = Changes()
    for place in sorted(origin.files.keys() | release.files.keys()):
        before, after = origin.files.get(place), release.files.get(place)
        if before != after:
            _upgrade(root / place, place, before, after, changes)
    release.write(root)
    return changes


def _upgrade(path: Path, place: str, before: str | None, after: str | None, changes: Changes) -> None:
    yours = path.read_text("utf-8") if path.is_file() else None
    if after is None:
        if yours is not None and yours == before:
            path.unlink()
            changes.removed.append(place)
        elif yours is not None:
            changes.kept.append(place)
        return
    if yours is None and before is not None:
        changes.kept.append(place)
        return
    text, conflict = (after, False) if yours is None else merged(yours, before or "", after)
    if text != yours:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    (changes.conflicts if conflict else changes.written).append(place)
