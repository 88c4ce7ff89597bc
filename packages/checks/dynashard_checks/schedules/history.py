"""The reference model: for every key the values that it may have at each moment.

The model does not trust the code under test. The simulated database reports every write that the engine has applied,
so the model has all stored items of each key. It derives the key's value from them and checks that:

- a key has at most one live copy, except within a transaction that is being applied;
- only clients change the value of a key, and only as their current operation says;
- a mover, sweeper or index resize does not change any attribute of a key's value.

This is possible if every request is executed within the time that its sender was allowed. If requests may run later, an
item can be stored where no client reads, so the stored items do not determine a key's value. Then the model only keeps
the stored items, and clients are judged by their answers alone. `recorder` has the answers in every schedule.

A `Watch` collects the values that each key has during an operation or a listing. Answers are compared with them.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dynashard.schema import EXPIRES_AT, INDEX_SLOTS, MOVED_FROM, MOVED_TO, PK, REV, SK, index_pk, index_sk
from dynashard_checks.linearizability.recording import Recorder
from dynashard_checks.schedules.scheduler import AnomalyError

if TYPE_CHECKING:
    from dynashard_checks.linearizability.listings import Listing

Key = str
"""The sort key of an item. A schedule has one logical partition."""
Value = str | None
"""The identity of a written value; None if the key is absent."""
Values = frozenset[Value]
Stored = Mapping[str, Any]

ABSENT: Final[Values] = frozenset([None])
_PLACEMENT_ATTRIBUTES: Final = {PK, SK, MOVED_TO, MOVED_FROM} | {
    name(slot) for slot in INDEX_SLOTS for name in (index_pk, index_sk)
}


def identity(item: Stored) -> str:
    """Return the identity of a written value: its revision, or the number of an adopted item without one."""
    return str(item[REV]["S"]) if REV in item else f"~{item['value']['N']}"


@dataclass(eq=False)
class Watch:
    """The values that keys have had since the watch began. It watches all keys if `keys` is None."""

    keys: frozenset[Key] | None = None
    seen: dict[Key, set[Value]] = field(default_factory=dict)

    def of(self, key: Key) -> set[Value]:
        """Return all values that the key has had."""
        return self.seen.get(key, {None})

    def existed(self, key: Key) -> bool:
        """Return whether the key was live all the time."""
        return None not in self.of(key)


Check = Callable[[Key, Values, Values], None]
"""Judges the effect of a write on a key: the values before, and the values after."""


class History:
    """The reference model of all keys of a schedule.

    Args:
        clock: the clock of the scheduler.
        skew: seconds around its expiry in which an item counts as live and as expired.
        values_known: whether the stored items determine the values of keys, because no request runs later than its
            sender was allowed.

    Attributes:
        recorder: the operations of clients and their answers.
        listings: listings of the whole table, if they are judged by other answers.
        settled: called when a transaction has been applied as a whole.
        expiring_keys: keys that had an item which expires. Its expiry is not one moment.
        reported: revisions of items that clients have read, or whose writes were acknowledged.
    """

    def __init__(self, clock: Callable[[], float], *, skew: float, values_known: bool = True) -> None:
        self.values_known = values_known
        self.recorder = Recorder()
        self.expiring_keys: set[Key] = set()
        self.reported: set[str] = set()
        self.listings: list[Listing] = []
        self.items: dict[tuple[str, Key], Stored] = {}
        self.contents: dict[str, Stored] = {}
        self._clock = clock
        self._skew = skew
        self._places: defaultdict[Key, set[str]] = defaultdict(set)
        self._values: dict[Key, Values] = {}
        self._open: dict[Key, Values] = {}
        self._changing: Counter[Key] = Counter()
        self._watches: list[Watch] = []
        self.settled: Callable[[], None] = lambda: None

    def __getitem__(self, key: Key) -> Values:
        return self._values.get(key, ABSENT)

    def all_keys(self) -> list[Key]:
        """Return all keys that were ever stored."""
        return sorted(self._places)

    def load(self, items: Iterable[Stored]) -> None:
        """Add the items that the table has before the schedule begins."""
        for item in items:
            self._store(item[PK]["S"], item[SK]["S"], item)
            self.contents[identity(item)] = content(item)
            self._values[item[SK]["S"]] = self._now(item[SK]["S"])
            if EXPIRES_AT in item:
                self.expiring_keys.add(item[SK]["S"])
            self.recorder.initial(item[SK]["S"], int(item["value"]["N"]), int(item.get("hits", {"N": "0"})["N"]))

    def watch(self, *keys: Key) -> Watch:
        """Begin to watch these keys, or all keys if none is given."""
        watch = Watch(frozenset(keys) or None)
        watch.seen = {key: set(self[key]) for key in (keys or self._places)}
        self._watches.append(watch)
        return watch

    def unwatch(self, watch: Watch) -> None:
        """End a watch."""
        self._watches.remove(watch)

    def ticked(self) -> None:
        """Update the values of keys whose items may have expired, after the clock has moved."""
        if not self.values_known:
            return
        for (_, key), item in self.items.items():
            if key not in self._open:
                if EXPIRES_AT in item:
                    self._become(key, self._now(key))
            elif self._expired(item, -self._skew):
                self._become(key, self[key] | ABSENT)

    def applied(self, pk: str, key: Key, item: Stored | None, check: Check | None) -> None:
        """Add a write that the engine has applied.

        Args:
            pk: the stored partition key.
            key: the key.
            item: the item stored there now; None if it was deleted.
            check: judges the effect of a client's operation; None for actors that must not change a value.
        """
        self._store(pk, key, item)
        if not self.values_known:
            if item is not None and MOVED_TO not in item:
                self.contents[identity(item)] = content(item)
            return
        if item is not None and MOVED_TO not in item:
            self._keep_content(item, by_client=check is not None)
            if EXPIRES_AT in item:
                # The item may be expired by now. An operation that read the clock earlier still sees it as live.
                self._show(key, {identity(item)})
        if key not in self._open:
            self._judge(key, self[key], check)
        elif check is not None and item is not None and MOVED_TO not in item:
            # It may have expired before it was written.
            gone = ABSENT if self._expired(item, -self._skew) else frozenset[Value]()
            self._become(key, self[key] | {identity(item)} | gone)

    def begin(self, coming: Mapping[Key, Stored | None], *, by_client: bool) -> None:
        """Begin a transaction: from now on each key may have its old or its new value."""
        # Late requests can change two items of a key at the same time, one of them at a former home.
        self._changing.update(list(coming))
        if not self.values_known:
            return
        for key, item in coming.items():
            self._open[key] = self[key]
            if item is not None:
                self._keep_content(item, by_client=by_client)
            if by_client:
                self._become(key, self[key] | {None if item is None else identity(item)})

    def end(self, keys: Iterable[Key], check: Check | None) -> None:
        """End a transaction: all its writes are applied."""
        keys = list(keys)
        self._changing.subtract(keys)
        for key in keys if self.values_known else ():
            # An item may have expired during the transaction.
            before = self._open.pop(key) | (ABSENT & self[key])
            self._judge(key, before, check)
        self.settled()

    def changing(self, key: Key) -> bool:
        """Whether a transaction that changes a key is being applied."""
        return self._changing[key] > 0

    def surely_live(self) -> list[Stored]:
        """Return the items of all keys that certainly live, and that no transaction is changing."""
        items = (item for (_, key), item in self.items.items() if not self.changing(key))
        return [item for item in items if MOVED_TO not in item and not self._expired(item, -self._skew)]

    def live(self, key: Key) -> list[Stored]:
        """Return all items of a key without a relocation marker that have not certainly expired."""
        items = (self.items[pk, key] for pk in sorted(self._places[key]))
        return [item for item in items if MOVED_TO not in item and not self._expired(item, self._skew)]

    def written(self, number: int) -> bool:
        """Return whether a number was ever stored."""
        return any(content["value"]["N"] == str(number) for content in self.contents.values())

    def expired(self, key: Key) -> bool:
        """Return whether a key has an item without a marker that has expired or is about to expire."""
        items = (self.items[pk, key] for pk in self._places[key])
        return any(MOVED_TO not in item and self._expired(item, -self._skew) for item in items)

    def markers(self) -> list[Stored]:
        """Return all relocation markers."""
        return [item for item in self.items.values() if MOVED_TO in item]

    def _store(self, pk: str, key: Key, item: Stored | None) -> None:
        if item is None:
            self.items.pop((pk, key), None)
            self._places[key].discard(pk)
        else:
            self.items[pk, key] = item
            self._places[key].add(pk)

    def _judge(self, key: Key, before: Values, check: Check | None) -> None:
        after = self._now(key)
        if check is not None:
            check(key, before, after)
        elif not after - ABSENT <= before:
            raise AnomalyError(f"{key} was {_text(before)} and became {_text(after)}, but no client wrote it")
        elif before != after and None not in before and not self._expiring(key):
            raise AnomalyError(f"{key} was {_text(before)} and is {_text(after)}, but no client deleted it")
        self._become(key, after)

    def _become(self, key: Key, values: Values) -> None:
        self._values[key] = values
        self._show(key, values)

    def _show(self, key: Key, values: Iterable[Value]) -> None:
        for watch in self._watches:
            if watch.keys is None or key in watch.keys:
                watch.seen.setdefault(key, {None}).update(values)

    def _now(self, key: Key) -> Values:
        live = self.live(key)
        sure = [item for item in live if not self._expired(item, -self._skew)]
        if len(sure) > 1:
            raise AnomalyError(f"{key} has two live copies: " + "; ".join(f"{i[PK]['S']} {identity(i)}" for i in sure))
        if sure:
            return frozenset([identity(sure[0])])
        return frozenset([None, *map(identity, live)])

    def _expired(self, item: Stored, skew: float) -> bool:
        return EXPIRES_AT in item and float(item[EXPIRES_AT]["N"]) + skew <= self._clock()

    def _expiring(self, key: Key) -> bool:
        return any(EXPIRES_AT in self.items[pk, key] for pk in self._places[key])

    def _keep_content(self, item: Stored, *, by_client: bool) -> None:
        who, now = identity(item), content(item)
        before = self.contents.get(who)
        if by_client:
            # An update that is sent twice may be applied twice if another write came between.
            self.contents[who] = now
        elif before != now:
            raise AnomalyError(f"{item[SK]['S']} at {who} was {before} and is {now}, but no client changed it")


def content(item: Stored) -> Stored:
    """Return the attributes of an item that clients write, without those of its placement."""
    return {name: value for name, value in item.items() if name not in _PLACEMENT_ATTRIBUTES}


def _text(values: Values) -> str:
    return " or ".join(sorted(value or "absent" for value in values))
