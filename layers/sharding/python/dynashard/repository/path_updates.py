"""What an update sets and removes, by document paths: of an object, only the members that differ."""

from collections.abc import Sequence
from typing import Any, Final

from dynashard.entity.stored_lists import NONE, StoredLists
from dynashard.repository.assumed import Assumed
from dynashard.repository.list_alignment import aligned
from dynashard.transport.interface import Wire

Path = tuple[str | int, ...]
"""Of names of attributes and members, and of places in lists."""

MOST_CHARACTERS: Final = 4096
"""Of an expression, by DynamoDB's limit."""


class PathUpdates:
    """Collects updates of attributes and members. Its aliases of names and values begin with `prefix`."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._names: dict[str, str] = {}
        self._set: dict[str, Any] = {}
        self.removed: list[str] = []
        """The paths that are removed."""

    def compare(
        self,
        path: Path,
        before: Wire | None,
        after: Wire | None,
        *,
        deep: bool,
        known: bool = True,
        lists: StoredLists = NONE,
    ) -> None:
        """Add what turns a value into another one, or None for no value: a value that is not known is removed.

        `lists` says which lists in it are stored as they are in `before`. Of an object in one of them, only the members
        that differ are written too, as long as its place is known.
        """
        if after is None:
            if before is not None or not known:
                self.removed.append(self._path(path))
        elif isinstance(before, Assumed):
            if before != after:
                self._set[self._path(path)] = after
        elif before is not None and deep and "M" in before and "M" in after:
            for name in sorted(before["M"].keys() | after["M"].keys()):
                members = before["M"].get(name), after["M"].get(name)
                self.compare((*path, name), *members, deep=True, lists=lists.of(name))
        elif before is not None and deep and lists.items is not None and "L" in before and "L" in after:
            if not self._compare_lists(path, before["L"], after["L"], lists.items):
                self._set[self._path(path)] = after
        elif before != after:
            self._set[self._path(path)] = after

    def _compare_lists(self, path: Path, old: Sequence[Wire], new: Sequence[Wire], items: StoredLists) -> bool:
        """Add what turns a list into another one, if its members stay, are removed, or are added at the end.

        Return whether it is so.
        """
        places = aligned(old, new)
        added, gone = places.count(None), sorted(set(range(len(old))).difference(places), reverse=True)
        if not new or (added and places != [*range(len(old)), *[None] * added]):
            return False
        for at, (place, value) in enumerate(zip(places, new, strict=True)):
            if place is None:
                self._set[self._path((*path, at))] = value
            else:
                self.compare((*path, place), old[place], value, deep=True, lists=items)
        # From the end on, because an engine may count places after each removal.
        self.removed += [self._path((*path, place)) for place in gone]
        return True

    def _path(self, path: Path) -> str:
        text = ""
        for step in path:
            if isinstance(step, int):
                text += f"[{step}]"
            else:
                alias = self._names.setdefault(step, f"#{self._prefix}{len(self._names)}")
                text += f".{alias}" if text else alias
        return text

    def assigned(self) -> list[str]:
        """Return the terms of the SET clause."""
        return [f"{path}=:{self._prefix}{number}" for number, path in enumerate(self._set)]

    def names(self) -> dict[str, str]:
        """Return the names by their aliases."""
        return {alias: name for name, alias in self._names.items()}

    def values(self) -> Wire:
        """Return the values by their aliases."""
        return {f":{self._prefix}{number}": value for number, value in enumerate(self._set.values())}

    def parts(self) -> dict[str, Any]:
        """Return the parts of an UpdateItem request."""
        removed = f" REMOVE {','.join(self.removed)}" if self.removed else ""
        return {
            "UpdateExpression": f"SET {','.join(self.assigned())}{removed}",
            "ExpressionAttributeNames": self.names(),
            "ExpressionAttributeValues": self.values(),
        }
