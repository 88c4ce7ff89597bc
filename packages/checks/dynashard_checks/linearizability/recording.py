"""Collect the operations of clients into the histories of their keys."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from dynashard_checks.linearizability.model import Answer, Kind, Operation, Version

Key = str


@dataclass
class Recorder:
    """The histories of all keys. Time is a counter: a later event has a higher number.

    Attributes:
        histories: the operations on each key, without those that were refused without effect.
    """

    histories: defaultdict[Key, list[Operation]] = field(default_factory=lambda: defaultdict(list))
    _events: Iterator[int] = field(default_factory=count)

    def now(self) -> int:
        """Return the number of an event that happens now."""
        return next(self._events)

    def begin(self, kind: Kind, *, name: str = "", **parts: Any) -> Operation:
        """Return an operation that is invoked now; `parts` are attributes of `Operation`."""
        return Operation(kind, self.now(), name=name, **parts)

    def end(self, key: Key, operation: Operation, answer: Answer, **parts: Any) -> None:
        """Add the operation with its answer. One of unknown outcome may take effect later."""
        if answer is Answer.UNKNOWN:
            self.histories[key].append(operation)
        else:
            self.histories[key].append(replace(operation, returned=self.now(), answer=answer, **parts))

    def initial(self, key: Key, version: Version, total: int) -> None:
        """Add an item that exists before all operations."""
        self.end(key, self.begin(Kind.CREATE, version=version, total=total, name="before"), Answer.OK)
