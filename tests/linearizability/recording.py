"""Collects operations of clients into the histories of their keys."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from tests.linearizability.model import Answer, Kind, Operation, Version

Key = str


@dataclass
class Recorder:
    """The histories of all keys. Time is a counter: of two events, the later one has the higher number.

    Attributes:
        histories: the operations on each key. Those that were refused without effect are not among them.
    """

    histories: defaultdict[Key, list[Operation]] = field(default_factory=lambda: defaultdict(list))
    _events: Iterator[int] = field(default_factory=count)

    def now(self) -> int:
        """The number of an event that happens now."""
        return next(self._events)

    def begin(self, kind: Kind, *, name: str = "", **parts: Any) -> Operation:
        """An operation is invoked; `parts` are those of `Operation`."""
        return Operation(kind, self.now(), name=name, **parts)

    def end(self, key: Key, operation: Operation, answer: Answer, **parts: Any) -> None:
        """The operation on a key has its answer; one of unknown outcome may take effect later."""
        if answer is Answer.UNKNOWN:
            self.histories[key].append(operation)
        else:
            self.histories[key].append(replace(operation, returned=self.now(), answer=answer, **parts))

    def initial(self, key: Key, version: Version, total: int) -> None:
        """An item that is there before everything else."""
        self.end(key, self.begin(Kind.CREATE, version=version, total=total, name="before"), Answer.OK)
