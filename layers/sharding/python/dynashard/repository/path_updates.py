"""What an update sets and removes, by document paths: of an object, only the members that differ."""

from typing import Any, Final

from dynashard.transport.interface import Wire

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
        self, path: tuple[str, ...], before: Wire | None, after: Wire | None, *, deep: bool, known: bool = True
    ) -> None:
        """Add what turns a value into another one, or None for no value: a value that is not known is removed."""
        if after is None:
            if before is not None or not known:
                self.removed.append(self._path(path))
        elif before is not None and deep and "M" in before and "M" in after:
            for name in sorted(before["M"].keys() | after["M"].keys()):
                self.compare((*path, name), before["M"].get(name), after["M"].get(name), deep=True)
        elif before != after:
            self._set[self._path(path)] = after

    def _path(self, path: tuple[str, ...]) -> str:
        return ".".join(self._names.setdefault(name, f"#{self._prefix}{len(self._names)}") for name in path)

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
