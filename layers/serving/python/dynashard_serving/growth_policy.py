"""When shard counts change by themselves: doubled after a key range was throttled, halved after a long quiet.

A policy and nothing else: it is told of throttles, looks at counts and asks for changes through what it is given.
Source of cooldown, random wait and history: AWS, 'Choosing the right number of shards'.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock
from typing import Any, Final

from dynashard.entity import EntityDefinition, Shards
from dynashard.errors import (
    DynashardError,
    ReshardRefusedError,
    TableThrottledError,
    ThrottledError,
    ThrottleKind,
    TopologyChangedError,
)
from dynashard.placement import UNSHARDED
from dynashard.resharding.scope import Scope
from dynashard.runtime import Runtime
from dynashard.topology import Record
from dynashard.transport.capacity import WRITING
from dynashard_serving.growth_terms import Ask, AskLoad, GrowthSettings, News, Present, Report, Standing
from dynashard_serving.table_load import Load

__all__ = ["Ask", "AskLoad", "Growth", "GrowthSettings", "News", "Present", "Report", "Standing"]

_LOOK_AGAIN: Final = 60.0
"""Seconds until CloudWatch is asked again that did not know."""
_REMEMBERED: Final = 10_000
"""Partitions and limits that one process remembers."""


@dataclass(frozen=True, slots=True)
class _Rest:
    """From when until when a thing is left alone; `waits`: because a random wait for it is under way."""

    since: float
    until: float
    waits: bool = False


class Growth:
    """The growth policy of one process. Safe to share between threads.

    Args:
        ask: asks for a change.
        present: tells a count.
        runtime: time and randomness.
        settings: how it behaves.
        waits: wait in the calling thread. Otherwise no request ever waits: the first throttle begins the random wait,
            and the first one after it asks. A key range that is not throttled again needs no more shards.
        load: tells whether the table is below its limits, where a throttle gives no reason; None: nobody knows.
        report: is told the news, at most once in a cooldown for one thing.
    """

    def __init__(
        self,
        ask: Ask,
        present: Present,
        *,
        runtime: Runtime,
        settings: GrowthSettings,
        waits: bool = False,
        load: AskLoad | None = None,
        report: Callable[[Report], None] = lambda _: None,
    ) -> None:
        self._ask = ask
        self._present = present
        self._runtime = runtime
        self._settings = settings
        self._waits = waits
        self._load = load
        self._report = report
        self._loads: dict[bool, Load] = {}
        self._rests: OrderedDict[str, _Rest] = OrderedDict()
        self._lock = Lock()

    def throttled(self, entity: EntityDefinition[Any], partition: str | None, error: ThrottledError) -> None:
        """Take note of a throttle, and ask for a doubling if more shards can cure it. Never raises.

        Args:
            entity: whose item it was.
            partition: the logical partition, prefix included; None if not known.
            error: the throttle.

        Cost: none, but for the first throttle of a partition or index in a cooldown: a read of its record and the
            conditional update, and before them the question about the load if there is no reason given.
        """
        if self._settings.mode == "off":
            return
        for reason in error.reasons:
            if reason.kind not in (ThrottleKind.KEY_RANGE, ThrottleKind.UNKNOWN):
                told = f"{reason.reason}: {reason.remedy}"
                self._tell_once(News.LIMIT, entity, reason.index, told, about=reason.reason)
        hot = [reason for reason in error.reasons if reason.kind is ThrottleKind.KEY_RANGE]
        if any(not reason.on_index for reason in hot):
            self._grow(entity, partition, None)
        elif hot:
            # A table's count is left alone while an index is the bottleneck.
            for slot in sorted({reason.index or "" for reason in hot}):
                self._grow(entity, None, slot)
        elif isinstance(error, TableThrottledError):
            if not error.reasons:
                self._tell_once(News.LIMIT, entity, None, str(error))
        elif all(reason.kind is ThrottleKind.UNKNOWN for reason in error.reasons):
            self._without_reason(entity, partition, error)

    def shrink(self, records: Iterable[Record], entities: Iterable[EntityDefinition[Any]]) -> list[Report]:
        """Ask for the halving of counts that have stood for the quiet time, down to what is declared.

        Left alone: counts of whole families, and those an operator has set. A count that was grown again after it
        was halved must have stood twice as long before the next time, and so on.

        Args:
            records: of logical partitions and indexes.
            entities: those they may belong to.

        Returns:
            What was reported, in the order of the records.

        Cost: a conditional update for each change, and a question about throttles for the table and each index.
        """
        if self._settings.mode == "off":
            return []
        known = list(entities)
        calm: dict[str | None, bool] = {}
        told = []
        for record in records:
            scope = Scope.of_key(record.key, known)
            shards = scope.shards
            if shards is None or scope.whole_family or not self._quiet(record, shards):
                continue
            slot = scope.index.slot if scope.index else None
            if slot not in calm:
                calm[slot] = self._calm(slot)
            if calm[slot]:
                told.append(self._change(scope, record.count // 2, "quiet for long"))
        return told

    def _calm(self, slot: str | None) -> bool:
        """Whether the table or index was throttled nowhere: a partition at its ceiling has a record that is quiet."""
        return self._load is None or self._load.calm(self._settings.quiet_seconds, index=slot) is True

    def _quiet(self, record: Record, shards: Shards) -> bool:
        if not shards.rule.powers_of_two or record.count // 2 < shards.count:
            return False
        if record.busy or record.change.get("cause") == "operator":
            return False
        now = self._runtime.clock()
        with self._lock:
            rest = self._rests.get(record.key)
        if rest is not None and now < rest.since + self._settings.quiet_seconds:
            return False
        quiet: float = self._settings.quiet_seconds * 2 ** _regrown(record)
        return now - float(record.updated) >= quiet

    def _without_reason(self, entity: EntityDefinition[Any], partition: str | None, error: ThrottledError) -> None:
        """A throttle without a reason DynamoDB is known to give: ask how busy the table is, and judge by that."""
        if self._load is None or error.index_blamed or partition is None:
            self._tell_once(News.UNKNOWN, entity, None, str(error))
            return
        load = self._judged(self._load, writing=error.operation in WRITING)
        if load is None:
            return
        if load.below:
            self._grow(entity, partition, None)
            return
        news = News.UNKNOWN if load.below is None else News.LIMIT
        self._tell_once(news, entity, None, f"{error} {load.told}.")

    def _judged(self, ask: AskLoad, *, writing: bool) -> Load | None:
        """The load of the table, of this minute; None while another thread is asking for it."""
        if self._turn(f"load {writing}", _LOOK_AGAIN):
            self._loads.pop(writing, None)
            self._loads[writing] = ask(writing=writing)
        return self._loads.get(writing)

    def _grow(self, entity: EntityDefinition[Any], partition: str | None, slot: str | None) -> None:
        """Double a count, if it is this caller's turn and the declaration allows it."""
        index = next((each for each in entity.indexes.values() if each.slot == slot), None) if slot else None
        if slot is not None and index is None:
            told = f"a key range of index {slot or '(not told which)'} is hot, which {entity.name} does not declare"
            self._tell_once(News.UNKNOWN, entity, slot or None, told)
            return
        if index is None and partition is None:
            self._tell_once(News.UNKNOWN, entity, None, f"a key range of {entity.name} is hot, but not known which")
            return
        scope = Scope(entity, None if index else partition, index)
        if self._wait_begins(scope.key) or not self._turn(scope.key, self._settings.cooldown_seconds):
            return
        try:
            self._double(scope)
        except DynashardError as error:
            self._tell(News.FAILED, scope, f"{scope.key} is hot, and its count could not be looked at: {error}")

    def _double(self, scope: Scope) -> None:
        shards = scope.shards
        if shards is None or not shards.rule.powers_of_two:
            remedy = f"{shards.placement} counts never change" if shards else "declare shards"
            self._tell(News.CANNOT, scope, f"{scope.key} is hot: {remedy}")
            return
        standing = self._present(scope)
        if standing.count == UNSHARDED or standing.count * 2 > shards.max:
            remedy = f"it has {standing.count} shards, its ceiling is {shards.max}: declare a higher max"
            if standing.count == UNSHARDED:
                remedy = f"it is unsharded still: start its reshard to {shards.count}"
            self._tell(News.CANNOT, scope, f"{scope.key} is hot: {remedy}")
            return
        if self._rests_still(scope.key, standing):
            return
        if self._waits and self._settings.mode == "on":
            self._runtime.sleep(self._drawn_wait())
            if self._present(scope) != standing:
                self._tell(News.LOST, scope, f"somebody else has changed the count of {scope.key} already")
                return
        self._change(scope, standing.count * 2, "a key range is hot")

    def _rests_still(self, key: str, standing: Standing) -> bool:
        """Whether the count changes now, or has changed so recently that what it brings is not seen yet."""
        now = self._runtime.clock()
        # Other clocks may be ahead of this one.
        over = min(now, standing.changed) + self._settings.cooldown_seconds
        if not standing.busy and now >= over:
            return False
        if not standing.busy:
            with self._lock:
                self._rests[key] = _Rest(now, over)
        return True

    def _change(self, scope: Scope, target: int, why: str) -> Report:
        """Ask for a count, or say that it would be asked for."""
        request = f"{scope.key} to {target} shards: {why}"
        if self._settings.mode == "dry_run":
            return self._tell(News.WOULD_ASK, scope, f"dry run: {request}", target)
        try:
            self._ask(scope, target)
        except TopologyChangedError:
            return self._tell(News.LOST, scope, f"somebody else has changed {scope.key} already", target)
        except ReshardRefusedError as error:
            return self._tell(News.REFUSED, scope, f"{request}; refused: {error}", target)
        except DynashardError as error:
            return self._tell(News.FAILED, scope, f"{request}; failed: {error}", target)
        return self._tell(News.ASKED, scope, request, target)

    def _wait_begins(self, key: str) -> bool:
        """Begin the random wait where nobody waits in the calling thread; False once it is over."""
        if self._waits:
            return False
        now = self._runtime.clock()
        with self._lock:
            rest = self._rests.get(key)
            if rest is not None and rest.since <= now < rest.until:
                return True
            if rest is not None and rest.waits and rest.until <= now < rest.until + self._settings.cooldown_seconds:
                return False
            self._remember(key, _Rest(now, now + self._drawn_wait(), waits=True))
            return True

    def _turn(self, key: str, seconds: float) -> bool:
        """Whether a thing is not left alone just now; if so, it is from now on, for so many seconds."""
        now = self._runtime.clock()
        with self._lock:
            rest = self._rests.get(key)
            # A clock that was set back says nothing about how long a thing has rested.
            if rest is not None and rest.since <= now < rest.until:
                return False
            self._remember(key, _Rest(now, now + seconds))
            return True

    def _remember(self, key: str, rest: _Rest) -> None:
        self._rests[key] = rest
        self._rests.move_to_end(key)
        while len(self._rests) > _REMEMBERED:
            self._rests.popitem(last=False)

    def _drawn_wait(self) -> float:
        low, high = self._settings.wait_low, self._settings.wait_high
        return low + self._runtime.random() * (high - low)

    def _tell_once(
        self, news: News, entity: EntityDefinition[Any], index: str | None, told: str, *, about: str = ""
    ) -> None:
        if self._turn(f"{news} {entity.name} {index} {about}", self._settings.cooldown_seconds):
            self._report(Report(news, entity.name, None, index, told))

    def _tell(self, news: News, scope: Scope, told: str, target: int | None = None) -> Report:
        slot = scope.index.slot if scope.index else None
        report = Report(news, scope.entity.name, scope.partition, slot, told, target)
        self._report(report)
        return report


def _regrown(record: Record) -> int:
    """How often a record's count was grown to again after it was halved."""
    entries = sorted((int(epoch), int(count)) for epoch, _, count in (each.partition(":") for each in record.history))
    counts = [count for _, count in entries]
    grown = sum(1 for old, new in pairwise(counts) if new == record.count and old < new)
    return max(0, grown - 1)
