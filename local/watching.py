"""Which files of the checkout have changed, found by looking at their times and sizes."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

Stamp = tuple[int, int]
"""When a file was changed, in nanoseconds, and how many bytes it has."""


class Watch:
    """Looks for changes of Python files in folders, and of single files.

    It polls instead of asking the system for events: looking takes a few milliseconds, needs no package, and works on
    every file system that a checkout may lie on, those that are shared with a container or a virtual machine included.

    Args:
        root: the checkout.
        places: folders and files in it. What does not exist is watched for.
    """

    def __init__(self, root: Path, places: Iterable[str]) -> None:
        self._root = root
        self._places = tuple(places)
        self._seen = self._look()

    def changed(self) -> set[str]:
        """Return what was added, changed or removed since this was asked last, by paths within the checkout."""
        before, self._seen = self._seen, self._look()
        return {path for path in before.keys() | self._seen.keys() if before.get(path) != self._seen.get(path)}

    def _look(self) -> dict[str, Stamp]:
        found = {}
        for place in self._places:
            for path in _files(os.path.join(self._root, place)):  # noqa: PTH118 - many times as fast as pathlib
                try:
                    told = os.stat(path)  # noqa: PTH116 - as above
                except OSError:
                    continue  # It was removed since, or is not there yet.
                found[os.path.relpath(path, self._root)] = (told.st_mtime_ns, told.st_size)
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
