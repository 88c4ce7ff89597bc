"""Merges what a release changes in a file with what its owner has changed."""

import subprocess
import tempfile
from pathlib import Path
from typing import Final

from dynashard_tools.failure import CommandError

_LABELS: Final = ("yours", "before", "release")
_MOST_CONFLICTS: Final = 127
"""Git's exit status is the number of conflicts, up to this; above it, git could not work."""


def merged(yours: str, before: str, release: str) -> tuple[str, bool]:
    """Return the text with the changes of both, and whether some conflict. Those stand in it between markers.

    Args:
        yours: the text as its owner has it.
        before: the text that both began with.
        release: the text of the new release.

    Raises:
        CommandError: git is not installed, or fails.
    """
    if yours in (before, release):
        return release, False
    if before == release:
        return yours, False
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, label) for label in _LABELS]
        for file, text in zip(files, (yours, before, release), strict=True):
            file.write_text(text, "utf-8")
        labels = [option for label in _LABELS for option in ("-L", label)]
        command = ["git", "merge-file", "--stdout", *labels, *map(str, files)]
        try:
            done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - our own command line
        except FileNotFoundError:
            raise CommandError("git is not installed: it merges files, also outside of its repositories") from None
    if done.returncode > _MOST_CONFLICTS or done.returncode < 0:
        raise CommandError(f"git merge-file failed: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode("utf-8"), done.returncode > 0
