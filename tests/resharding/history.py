"""What is true at each moment: for every key the values it may have, kept beside the real table.

Nothing here trusts the code under test. Every write that the engine has applied is told to the history, which knows
of each key the stored items at all of its places. From them follows what the key's value is, and with that:

- a key has at most one live copy outside of a transaction that is just being applied;
- only clients change what a key's value is, and only as the operation says that they run;
- a mover, sweeper or index change leaves the value of each key, to the last attribute.

That holds as long as every request is executed within the time that its sender was allowed. Where requests may run
later, an item can stand where nobody looks, so what is stored does not tell what a key's value is. The history then
only keeps what is stored, and clients are judged by their answers alone: `recorder` has them, whatever the schedule.

A `Watch` collects the values that each key has had while an operation or a listing ran: what these answer is held
against it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dynashard.schema import EXPIRES_AT, INDEX_SLOTS, MOVED_FROM, MOVED_TO, PK, REV, SK, index_pk, index_sk
from tests.linearizability.recording import Recorder
from tests.resharding.scheduler import AnomalyError

if TYPE_CHECKING:
    from tests.linearizability.listings import Listing

Key = str
"""The sort key of an item: schedules have one logical partition."""
Value = str | None
"""The identity of a written value, None for absent."""
Values = frozenset[Value]
Stored = Mapping[str, Any]

ABSENT: Final[Values] = frozenset([None])
_PLACING: Final = {PK, SK, MOVED_TO, MOVED_FROM} | {name(slot) for slot in INDEX_SLOTS for name in (index_pk, index_sk)}


def identity(item: Stored) -> str:
    """The identity of what was written: its revision; adopted items, which have none, go by their number."""
    return str(item[REV]["S"]) if REV in item else f"~{item['value']['N']}"


@dataclass(eq=False)
class Watch:
    """The values that keys have had since it began. `keys` None watches all."""

    keys: frozenset[Key] | None = None
    seen: dict[Key, set[Value]] = field(default_factory=dict)

    def of(self, key: Key) -> set[Value]:
        """All values the key has had."""
        return self.seen.get(key, {None})

    def lived(self, key: Key) -> bool:
        """Whether the key was live all the time."""
        return None not in self.of(key)


Check = Callable[[Key, Values, Values], None]
"""Judges what a write did to a key: values before, values after."""


class History:
    """The truth about all keys of a schedule.

    Args:
        clock: of the scheduler.
        skew: seconds around its expiry in which an item counts as both.
        sees: whether what is stored tells the values of keys: no request runs later than its sender was allowed.

    Attributes:
        recorder: the operations of clients and their answers.
        listings: those of the whole table, where they are judged by other answers.
        mortal: keys that had an item which expires: the time of that is not one moment.
    """

    def __init__(self, clock: Callable[[], float], *, skew: float, sees: bool = True) -> None:
        self.sees = sees
        self.recorder = Recorder()
        self.mortal: set[Key] = set()
        self.listings: list[Listing] = []
        self.items: dict[tuple[str, Key], Stored] = {}
        self.contents: dict[str, Stored] = {}
        self._clock = clock
        self._skew = skew
        self._places: defaultdict[Key, set[str]] = defaultdict(set)
        self._values: dict[Key, Values] = {}
        self._open: dict[Key, Values] = {}
        self._watches: list[Watch] = []

    def __getitem__(self, key: Key) -> Values:
        return self._values.get(key, ABSENT)

    def all_keys(self) -> list[Key]:
        """All keys that ever were."""
        return sorted(self._places)

    def load(self, items: Iterable[Stored]) -> None:
        """What the table holds before the schedule begins."""
        for item in items:
            self._store(item[PK]["S"], item[SK]["S"], item)
            self.contents[identity(item)] = content(item)
            self._values[item[SK]["S"]] = self._now(item[SK]["S"])
            if EXPIRES_AT in item:
                self.mortal.add(item[SK]["S"])
            self.recorder.initial(item[SK]["S"], int(item["value"]["N"]), int(item.get("hits", {"N": "0"})["N"]))

    def watch(self, *keys: Key) -> Watch:
        """Begin to watch these keys, or all."""
        watch = Watch(frozenset(keys) or None)
        watch.seen = {key: set(self[key]) for key in (keys or self._places)}
        self._watches.append(watch)
        return watch

    def unwatch(self, watch: Watch) -> None:
        """A watch ends."""
        self._watches.remove(watch)

    def ticked(self) -> None:
        """The clock has moved: items may have expired."""
        if not self.sees:
            return
        for (_, key), item in self.items.items():
            if EXPIRES_AT in item:
                if key in self._open:
                    self._become(key, self[key] | ABSENT)
                else:
                    self._become(key, self._now(key))

    def applied(self, pk: str, key: Key, item: Stored | None, check: Check | None) -> None:
        """The engine has applied a write.

        Args:
            pk: the stored partition key.
            key: the key.
            item: what stands there now.
            check: judges what a client's operation did; None for those who must not change a value.
        """
        self._store(pk, key, item)
        if not self.sees:
            if item is not None and MOVED_TO not in item:
                self.contents[identity(item)] = content(item)
            return
        if item is not None and MOVED_TO not in item:
            self._keep_content(item, by_client=check is not None)
            if EXPIRES_AT in item:
                # It may have expired on its way; who has looked at the clock before then takes it for live.
                self._show(key, {identity(item)})
        if key not in self._open:
            self._judge(key, self[key], check)
        elif check is not None and item is not None and MOVED_TO not in item:
            self._become(key, self[key] | {identity(item)})

    def begin(self, coming: Mapping[Key, Stored | None], *, by_client: bool) -> None:
        """A transaction begins to show: each key may be seen as it was, and as it will be."""
        if not self.sees:
            return
        for key, item in coming.items():
            self._open[key] = self[key]
            if item is not None:
                self._keep_content(item, by_client=by_client)
            if by_client:
                self._become(key, self[key] | {None if item is None else identity(item)})

    def end(self, keys: Iterable[Key], check: Check | None) -> None:
        """A transaction shows as a whole."""
        if not self.sees:
            return
        for key in keys:
            # An item may have expired meanwhile.
            before = self._open.pop(key) | (ABSENT & self[key])
            self._judge(key, before, check)

    def live(self, key: Key) -> list[Stored]:
        """All unmarked items of a key that have not expired for sure."""
        items = (self.items[pk, key] for pk in sorted(self._places[key]))
        return [item for item in items if MOVED_TO not in item and not self._expired(item, self._skew)]

    def written(self, number: int) -> bool:
        """Whether a number was ever stored."""
        return any(content["value"]["N"] == str(number) for content in self.contents.values())

    def expired(self, key: Key) -> bool:
        """Whether an unmarked item of a key is there that has expired, or is about to."""
        items = (self.items[pk, key] for pk in self._places[key])
        return any(MOVED_TO not in item and self._expired(item, -self._skew) for item in items)

    def marks(self) -> list[Stored]:
        """All marks."""
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
            raise AnomalyError(f"{key} was {_told(before)} and became {_told(after)}, though no client wrote it")
        elif before != after and None not in before and not self._expiring(key):
            raise AnomalyError(f"{key} was {_told(before)} and is {_told(after)}, though no client deleted it")
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
            # An update that is sent twice may be applied twice, if another writer came between.
            self.contents[who] = now
        elif before != now:
            raise AnomalyError(f"{item[SK]['S']} at {who} was {before} and is {now}, though no client changed it")


def content(item: Stored) -> Stored:
    """What a client has written; not where it stands."""
    return {name: value for name, value in item.items() if name not in _PLACING}


def _told(values: Values) -> str:
    return " or ".join(sorted(value or "absent" for value in values))
