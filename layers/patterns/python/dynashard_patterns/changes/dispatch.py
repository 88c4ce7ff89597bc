"""Deliver batches of stream records to consumers: transient errors bring records again, others make dead letters."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dynashard.errors import ConfigurationError, DynashardError, EngineError, NewerItemError
from dynashard_patterns.changes.change import Change, Consumer
from dynashard_patterns.changes.decode import decode, watched

Record = Mapping[str, Any]
"""A record of the stream, as Lambda hands it on."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that cannot be handled, why, and the consumer that failed; None if the record cannot be decoded."""

    consumer: str | None
    reason: str
    record: Record

    @property
    def sequence(self) -> str:
        """The record's number in its part of the stream."""
        return str(self.record["dynamodb"]["SequenceNumber"])


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a batch.

    Attributes:
        again: the number of the first record that has to come again; None if none has to.
        changes: how many changes of watched entities it had.
        dead_letters: how many dead letters were kept.
        reason: why records have to come again, in one line.
    """

    again: str | None
    changes: int
    dead_letters: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Entry:
    position: int
    record: Record
    change: Change[Any]


@dataclass(frozen=True, slots=True)
class _Stop:
    """From this position on the batch has to come again."""

    position: int
    reason: str


class Dispatcher:
    """Hands changes to consumers. Safe to share between threads if the consumers are.

    `keep` stores a dead letter durably, or raises; then the record comes again.
    """

    def __init__(self, consumers: Iterable[Consumer], *, keep: Callable[[DeadLetter], None]) -> None:
        self._consumers = tuple(consumers)
        self._registry = watched({model for each in self._consumers for model in each.entities})
        self._keep = keep

    def dispatch(self, records: Sequence[Record]) -> Outcome:
        """Hand a batch to every consumer that it concerns.

        An error that can pass stops a consumer at the first record of the part it was given, and the batch has to come
        again from there: changes that were handled come again too. Any other error is searched for by halves, until the
        change at fault is alone; it is kept as a dead letter, and the others are handled.

        Cost: what the consumers cost. For a change at fault, some of the others in its batch are handled up to once
        more for each halving.
        """
        work = _Batch(self._keep)
        entries = work.decoded(records, self._registry)
        stops = [work.stop] if work.stop else []
        for consumer in self._consumers:
            mine = [entry for entry in entries if entry.change.entity in consumer.entities]
            stopped = work.deliver(consumer, mine)
            stops += [stopped] if stopped else []
        first = min(stops, key=lambda stop: stop.position, default=None)
        if first is None:
            return Outcome(None, len(entries), work.dead_letters)
        again = str(records[first.position]["dynamodb"]["SequenceNumber"])
        return Outcome(again, len(entries), work.dead_letters, first.reason)


class _Batch:
    """One batch under way."""

    def __init__(self, keep: Callable[[DeadLetter], None]) -> None:
        self._keep = keep
        self.dead_letters = 0
        self.stop: _Stop | None = None

    def decoded(self, records: Sequence[Record], registry: Mapping[str, Any]) -> list[_Entry]:
        """The changes of the records, up to one that can neither be decoded nor kept as a dead letter.

        A change of an item of a later version waits for the release that knows it.
        """
        entries: list[_Entry] = []
        for position, record in enumerate(records):
            try:
                change = decode(record, registry)
            except NewerItemError as error:
                self.stop = _Stop(position, _line(error))
                break
            except Exception as error:  # noqa: BLE001 - whatever it is that cannot be read, it is set aside
                self.stop = self._keep_letter(None, position, record, error)
                if self.stop:
                    break
                continue
            if change is not None:
                entries.append(_Entry(position, record, change))
        return entries

    def deliver(self, consumer: Consumer, entries: Sequence[_Entry]) -> _Stop | None:
        """Have a consumer handle changes; from where on they have to come again, if they have to."""
        if not entries:
            return None
        try:
            consumer.handle([entry.change for entry in entries])
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not keep other changes waiting
            if _passes(error):
                return _Stop(entries[0].position, f"{consumer.name}: {_line(error)}")
            if len(entries) == 1:
                return self._keep_letter(consumer.name, entries[0].position, entries[0].record, error)
            half = len(entries) // 2
            return self.deliver(consumer, entries[:half]) or self.deliver(consumer, entries[half:])
        return None

    def _keep_letter(self, consumer: str | None, position: int, record: Record, error: Exception) -> _Stop | None:
        try:
            self._keep(DeadLetter(consumer, _line(error), record))
        except Exception as lost:  # noqa: BLE001 - what cannot be kept must come again
            return _Stop(position, f"a dead letter cannot be kept: {_line(lost)}")
        self.dead_letters += 1
        return None


def _passes(error: Exception) -> bool:
    """Whether the same change can be handled later: something around it was wrong, not the change."""
    if isinstance(error, DynashardError):
        return error.retryable or isinstance(error, EngineError | ConfigurationError)
    return isinstance(error, OSError)


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
