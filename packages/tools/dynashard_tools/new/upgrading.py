"""What a backend was made from, and what a release does to each of its files."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from dynashard_tools.failure import CommandError
from dynashard_tools.files import file_errors
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
        CommandError: git is not installed, or a file cannot be read. Nothing was changed then.
    """
    changes, texts = Changes(), dict[str, str | None]()
    for place in sorted(origin.files.keys() | release.files.keys()):
        before, after = origin.files.get(place), release.files.get(place)
        if before != after:
            texts |= _upgraded(_text(root / place), place, before, after, changes)
    # Only now, because a file that was merged would be merged once more if a later one could not be.
    for place, text in texts.items():
        path = root / place
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    release.write(root)
    return changes


def _text(path: Path) -> str | None:
    """Return the text of a file; None if there is none."""
    if not path.is_file():
        return None
    try:
        with file_errors(path, "read"):
            return path.read_text("utf-8")
    except UnicodeDecodeError:
        raise CommandError(f"{path} is not UTF-8: convert it first. Nothing was changed") from None


def _upgraded(
    yours: str | None, place: str, before: str | None, after: str | None, changes: Changes
) -> dict[str, str | None]:
    """Return the new text of a file, None to remove it; nothing if it stays as it is."""
    if after is None:
        if yours is None:
            return {}
        (changes.removed if yours == before else changes.kept).append(place)
        return {place: None} if yours == before else {}
    if yours is None and before is not None:
        changes.kept.append(place)
        return {}
    text, conflict = (after, False) if yours is None else merged(yours, before or "", after)
    (changes.conflicts if conflict else changes.written).append(place)
    return {} if text == yours else {place: text}
