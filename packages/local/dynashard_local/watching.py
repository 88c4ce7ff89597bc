"""Finds changed files of the checkout by their times and sizes."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

Stamp = tuple[int, int]
"""When a file was changed, in nanoseconds, and how many bytes it has."""


class Watch:
    """Finds changes of Python files in folders, and of single files, which need not exist yet.

    It polls, which takes a few milliseconds, needs no package, and works on every file system, also on those that are
    shared with a container or a virtual machine.
    """

    def __init__(self, root: Path, places: Iterable[str]) -> None:
        self._root = root
        self._places = tuple(places)
        self._seen = self._stamps()

    def changed(self) -> set[str]:
        """Return the paths within the checkout that were added, changed or removed since the last call."""
        before, self._seen = self._seen, self._stamps()
        return {path for path in before.keys() | self._seen.keys() if before.get(path) != self._seen.get(path)}

    def _stamps(self) -> dict[str, Stamp]:
        found = {}
        for place in self._places:
            for path in _files(os.path.join(self._root, place)):  # noqa: PTH118 - many times as fast as pathlib
                try:
                    stat = os.stat(path)  # noqa: PTH116 - as above
                except OSError:
                    continue  # It does not exist.
                found[os.path.relpath(path, self._root)] = (stat.st_mtime_ns, stat.st_size)
        return found


def _files(place: str) -> Iterator[str]:
    if os.path.isfile(place):  # noqa: PTH113 - as above
        yield place
        return
    for folder, folders, names in os.walk(place):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in names:
            if name.endswith(".py"):
                yield os.path.join(folder, name)  # noqa: PTH118 - as above
