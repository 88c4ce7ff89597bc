"""The operations of clients, and the checks of their answers. Listings are in `sessions`.

Every answer is recorded for the linearizability checker. If the stored items determine the values of keys, each answer
is also compared with the history at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dynashard.errors import (
    AlreadyExistsError,
    ClockOffError,
    DynashardError,
    KeyTooFarAheadError,
    NotFoundError,
    NotUniqueError,
    OutcomeUnknownError,
    RevisionMismatchError,
)
from dynashard.schema import EXPIRES_AT
from dynashard_checks.linearizability.model import UNSEEN, Answer, Kind, Seen, State
from dynashard_checks.linearizability.model import Operation as Recorded
from dynashard_checks.schedules.history import ABSENT, History, Key, Value, Values, Watch
from dynashard_checks.schedules.scheduler import AnomalyError

_KINDS: Mapping[str, Kind] = {
    "create": Kind.CREATE,
    "put": Kind.PUT,
    "update": Kind.UPDATE,
    "delete": Kind.DELETE,
    "get": Kind.GET,
    "batch_get": Kind.GET,
}


@dataclass
class Operation:
    """One operation of a client on some keys.

    Attributes:
        kind: its name.
        keys: the keys that it may change or read.
        history: the reference model.
        watch: the values of its keys since it began.
        deletes: the keys that it deletes.
        value: the number that it writes.
        adds: what it adds to `hits`.
        if_match: the revision that it names.
        expected: the number of the item with this revision.
        total: the `hits` of the item that it writes.
        applied: the values that it has written to each key.
        puts: the numbers that a batch writes.
        gone: whether success of a delete only means that the item is gone, perhaps by another delete. See rule 5 about
            guarded deletes in "Outcomes" of the protocol.
    """

    kind: str
    keys: tuple[Key, ...]
    history: History
    watch: Watch
    deletes: frozenset[Key] = frozenset()
    value: int | None = None
    adds: int = 0
    if_match: str | None = None
    expected: int | None = None
    total: int = 0
    applied: dict[Key, list[Value]] = field(default_factory=dict)
    puts: dict[Key, int] = field(default_factory=dict)
    gone: bool = False
    _recorded: dict[Key, Recorded] = field(default_factory=dict)

    def begin(self) -> None:
        """Record that the operation begins."""
        for key in self.keys:
            kind = _KINDS.get(self.kind)
            if kind is not None:
                self._begin(key, kind, version=self.value, expected=self.expected, total=self.total, adds=self.adds)
            elif self.kind == "batch_write":
                kind = Kind.DROP if key in self.deletes else Kind.PUT
                self._begin(key, kind, version=self.puts.get(key))

    def lost(self) -> None:
        """Record an unknown outcome: the operation takes effect at any later moment, or never."""
        for key in list(self._recorded):
            self._answer(key, Answer.UNKNOWN)

    def _begin(self, key: Key, kind: Kind, **parts: Any) -> None:
        self._recorded[key] = self.history.recorder.begin(kind, name=self.kind, **parts)

    def _answer(self, key: Key, answer: Answer, **parts: Any) -> None:
        self.history.recorder.end(key, self._recorded.pop(key), answer, **parts)

    def check(self, key: Key, before: Values, after: Values) -> None:
        """Judge the effect of a write of this operation on a key. This is a `history.Check`."""
        if not self.history.values_known:
            return
        if key not in self.keys:
            raise AnomalyError(f"{self.kind} of {self.keys} has written {key}")
        if after == before:
            return
        written = self._written(key, before, after)
        mine = self.applied.setdefault(key, [])
        mine.append(written)
        if len(mine) > 1:
            raise AnomalyError(f"{self.kind} of {key} was applied twice: {mine}")
        if self.if_match is not None and self.if_match not in before and not self._may_expire(self.if_match):
            raise AnomalyError(f"{self.kind} of {key} if at {self.if_match} was applied to {sorted(map(str, before))}")

    def _written(self, key: Key, before: Values, after: Values) -> Value:
        live = sorted(value for value in after if value is not None)
        if key in self.deletes:
            if live:
                raise AnomalyError(f"{self.kind} of {key} has left {live} there; it was {sorted(map(str, before))}")
            return None
        if self.kind == "create" and None not in before:
            raise AnomalyError(f"create of {key} has written over {sorted(map(str, before))}")
        if not live and self.history.expired(key):
            return None
        if len(live) != 1:
            raise AnomalyError(f"{self.kind} of {key} has left {sorted(map(str, after))} there")
        if self.kind == "update":
            self._check_update(key, before, live[0])
        return live[0]

    def _may_expire(self, value: str) -> bool:
        """Return whether a value has an expiry. A request that arrives after it may count as one before it."""
        return EXPIRES_AT in self.history.contents[value]

    def _check_update(self, key: Key, before: Values, after: str) -> None:
        contents = self.history.contents
        was = [contents[value] for value in before if value is not None]
        if not was:
            raise AnomalyError(f"update has brought {key} to life")
        hits = {int(content.get("hits", {"N": "0"})["N"]) + self.adds for content in was}
        if int(contents[after]["hits"]["N"]) not in hits:
            raise AnomalyError(f"update of {key} has left {contents[after]['hits']} hits, not {hits}")

    # Answers.

    def wrote(self, item: Any) -> None:
        """Check an answer with the written item."""
        [key] = self.keys
        own = item.value == self.value
        if not own:
            # The write was proved by the history of the stored item, so the answer is a later item by another write.
            self.history.recorder.end(key, replace(self._recorded[key], kind=Kind.GET), Answer.OK, seen=_seen(item))
        self._answer(key, Answer.OK, seen=_seen(item) if self.kind == "update" and own else None)
        if item.revision not in self.history.contents:
            raise AnomalyError(f"{self.kind} of {key} was acknowledged as {item.revision}, but never applied")

    def wrote_all(self) -> None:
        """Check the acknowledgement of a batch."""
        for key in self.keys:
            self._answer(key, Answer.OK)
            if not self.history.values_known:
                continue
            if key in self.deletes:
                self._check_deleted(key)
            elif not self.history.written(self.puts[key]):
                raise AnomalyError(f"{self.kind} of {key} was acknowledged, but never applied")

    def deleted(self, key: Key) -> None:
        """Check the acknowledgement of a deletion."""
        if self.gone and key in self._recorded:
            self._recorded[key] = replace(self._recorded[key], kind=Kind.DROP)
        self._answer(key, Answer.OK)
        if self.history.values_known:
            self._check_deleted(key)

    def _check_deleted(self, key: Key) -> None:
        if not self.applied.get(key) and self.watch.existed(key):
            raise AnomalyError(f"{self.kind} of {key} was acknowledged, but {key} stayed live")

    def saw(self, key: Key, item: Any | None) -> None:
        """Check an answer with an item, or with None."""
        if key in self._recorded:
            self._answer(key, Answer.OK if item is not None else Answer.MISSING, seen=item and _seen(item))
        if self.history.values_known:
            self._check_seen(key, item)

    def _check_seen(self, key: Key, item: Any | None) -> None:
        seen = self.watch.of(key)
        value = None if item is None else item.revision or f"~{item.value}"
        if value not in seen:
            raise AnomalyError(f"{self.kind} of {key} answers {value}, but it was {sorted(map(str, seen))}")
        if item is not None and value is not None:
            content = self.history.contents[value]
            if int(content["value"]["N"]) != item.value or (int(content["hits"]["N"]) != item.hits):
                raise AnomalyError(f"{self.kind} of {key} answers {item!r}, but it was {content}")

    def saw_existence(self, key: Key, *, live: bool) -> None:
        """Check an answer about whether a key is live."""
        self._answer(key, Answer.EXISTS if live else Answer.MISSING)
        if self.history.values_known:
            self._check_existence(key, live=live)

    def _check_existence(self, key: Key, *, live: bool) -> None:
        seen = self.watch.of(key)
        if (live and seen <= ABSENT) or (not live and None not in seen):
            raise AnomalyError(f"{self.kind} of {key} says {live}, but it was {sorted(map(str, seen))}")

    def refused(self, error: DynashardError) -> bool:
        """Check an error. Return whether it is an answer rather than an unknown outcome."""
        [key] = self.keys if len(self.keys) == 1 else [""]
        if isinstance(error, OutcomeUnknownError) or self.kind == "batch_write":
            self.lost()
        if isinstance(error, (ClockOffError, KeyTooFarAheadError, NotUniqueError)):
            if self.applied:
                raise AnomalyError(f"{self.kind} of {self.keys} was applied, and then refused: {error}")
            return True
        if isinstance(error, NotFoundError) and self.kind in ("get", "update", "delete"):
            self.saw_existence(key, live=False)
        elif isinstance(error, AlreadyExistsError) and self.kind == "create":
            self.saw_existence(key, live=True)
        elif isinstance(error, RevisionMismatchError) and self.if_match is not None:
            self._answer(key, Answer.MISMATCH, seen=self._found(error))
            if self.history.values_known and self.watch.of(key) == {self.if_match}:
                raise AnomalyError(f"{self.kind} of {key} is refused, but it is at {self.if_match}") from error
        elif error.transient or isinstance(error, RevisionMismatchError):
            return False
        else:
            raise AnomalyError(f"{self.kind} of {key} failed: {type(error).__name__}: {error}") from error
        if self.applied.get(key):
            raise AnomalyError(f"{self.kind} of {key} was applied, and then refused: {error}")
        return True

    def _found(self, error: RevisionMismatchError) -> Seen | None:
        """Return the item that a refusal names."""
        if error.current is None:
            return None
        stored = self.history.contents.get(error.current)
        version = UNSEEN if stored is None else int(stored["value"]["N"])
        return Seen(State(version), has_total=False)


def _seen(item: Any) -> Seen:
    return Seen(State(item.value, item.hits))
