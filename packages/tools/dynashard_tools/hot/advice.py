"""From throttled keys to a cause and a command."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final

from dynashard.resharding import Status
from dynashard.schema import MAX_SHARDS
from dynashard.topology import EpochState
from dynashard.topology.epochs import MOST_EPOCHS
from dynashard_tools.counting import plural
from dynashard_tools.hot.places import Place
from dynashard_tools.hot.throttles import ThrottledKey
from dynashard_tools.printing import utc_text

HOT_ITEM: Final = 0.5
"""Share of the throttles from which on a single item is the cause."""
OLD_ITEMS: Final = 0.5
"""Share of the throttles of known items from which on keys of older epochs are the cause."""
FEW_SHARDS: Final = 0.25
"""Share of throttled shards up to which the traffic is uneven."""


@dataclass(slots=True)
class Hot:
    """What is throttled: a logical partition of the table, or all partitions of an index.

    Attributes:
        shards: throttled events by stored partition key.
        items: throttled events by stored key of an item.
    """

    place: Place
    shards: dict[str, int] = field(default_factory=dict)
    items: dict[tuple[str, str], int] = field(default_factory=dict)

    @property
    def events(self) -> int:
        """Throttled events of all shards."""
        return sum(self.shards.values())

    @property
    def hottest(self) -> tuple[tuple[str, str], float] | None:
        """The most throttled item, and its share of all throttles; None if items are not known."""
        if not self.items or not self.events:
            return None
        key = max(self.items, key=lambda each: self.items[each])
        return key, min(1.0, self.items[key] / self.events)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The cause of throttles in a sentence, and the arguments of the command that is the remedy, if there is one."""

    cause: str
    command: str | None = None


def grouped(keys: Iterable[ThrottledKey], placed: Mapping[tuple[str | None, str], Place | None]) -> list[Hot]:
    """Group keys by what has the shard count, most throttled first. Keys that belong to no entity are left out."""
    found: dict[str, Hot] = {}
    for key in keys:
        place = placed.get((key.slot, key.partition))
        if place is None:
            continue
        hot = found.setdefault(f"{key.slot} {place.arguments}", Hot(place))
        if key.sort is None:
            hot.shards[key.partition] = hot.shards.get(key.partition, 0) + key.events
        else:
            hot.items[key.partition, key.sort] = key.events
    return sorted(found.values(), key=lambda hot: hot.events, reverse=True)


def judged(hot: Hot, status: Status | None, *, most: int | None, begin: float = inf) -> Verdict:
    """Return why something is throttled, and what to do.

    Args:
        hot: what is throttled.
        status: the state of its shard count; None if it has none.
        most: the count up to which it grows by itself; None without shards.
        begin: since when throttles are counted, in epoch seconds.
    """
    if status is None or most is None:
        return Verdict("it declares no shards, so a single key range takes its traffic (docs/declaring.md)")
    found = (
        _under_way(status, hot.place.arguments)
        or _one_item(hot)
        or _old_epochs(hot, status)
        or _fixed(hot, status)
        or _declined(status, hot.place.arguments)
        or _changed(status, begin)
    )
    return found or _too_few(hot, status.count, most)


def _under_way(status: Status, name: str) -> Verdict | None:
    if status.paused:
        reason = status.error or "an operator has paused it"
        return Verdict(f"its resize to {status.target} shards is paused: {reason}", f"reshard resume {name}")
    if status.waits_for == "empty_shards":
        waits = (
            f"it is shrinking from {status.count} to {status.target} shards: writers use the fewer shards already, and "
            "the resize waits until the others are empty. The growth policy takes it back at a throttle, or you can"
        )
        return Verdict(waits, f"reshard abort {name}")
    return Verdict(_stage(status), f"reshard status {name} --watch") if status.busy else None


def _stage(status: Status) -> str:
    if status.target is None:
        return f"its count has just changed to {status.count}, and the markers are not swept yet"
    if status.stage == "confirmed":
        return f"its count of {status.count} shards holds for keys of some seconds from now on"
    if status.target == status.count:
        return f"older entries are being brought to the places of its {status.count} shards ({status.stage})"
    way = "growing" if status.target > status.count else "shrinking"
    return f"it is {way} from {status.count} to {status.target} shards ({status.stage})"


def _one_item(hot: Hot) -> Verdict | None:
    if hot.hottest is None or hot.hottest[1] < HOT_ITEM:
        return None
    (partition, sort), share = hot.hottest
    return Verdict(
        f"{share:.0%} of the throttles are of one item, {partition} {sort}. An item is on one shard, so more shards do "
        "not help (docs/runbooks/throttled-key.md#one-item)"
    )


def _old_epochs(hot: Hot, status: Status) -> Verdict | None:
    """Return the cause if most of the known items are placed by an older epoch, which a later one does not relieve."""
    newest = next((each for each in reversed(status.epochs) if each.state == EpochState.CONFIRMED), None)
    known = sum(hot.items.values())
    if newest is None or newest.since is None or not known:
        return None
    old = sum(events for (_, sort), events in hot.items.items() if sort < newest.first) / known
    if old < OLD_ITEMS:
        return None
    return Verdict(
        f"{old:.0%} of the throttled items have keys from before {utc_text(newest.since)}, where its newest "
        "epoch begins. They are updated or imported now, and a larger count holds for later keys only "
        "(docs/runbooks/throttled-key.md#old-items-of-epochs)"
    )


def _fixed(hot: Hot, status: Status) -> Verdict | None:
    shards = hot.place.definition.shards
    if shards is not None and shards.placement == "modulo":
        return Verdict("its placement is modulo, so its count never changes (docs/declaring.md)")
    if len(status.epochs) >= MOST_EPOCHS:
        return Verdict(f"it has had {MOST_EPOCHS} epochs, the most that there can be: copy its items to a new entity")
    if status.count >= MAX_SHARDS:
        return Verdict(f"it has {status.count} shards, the most that there can be: divide the logical partition")
    return None


def _declined(status: Status, name: str) -> Verdict | None:
    """Return the cause if more shards would help, and nobody has decided yet to move what there is."""
    if not status.declined or status.taken_back is None or status.taken_back < status.count:
        return None
    return Verdict(
        f"it has too few shards for its traffic, and a resize to {status.taken_back} did not start by itself: "
        f"{status.declined}. You decide (docs/runbooks/growth-refused.md)",
        f"reshard start {name} --to {status.taken_back}",
    )


def _changed(status: Status, begin: float) -> Verdict | None:
    """Return the cause if the count has changed while these throttles were counted. A first count has no cause.

    A resize that was taken back has changed nothing, and an epoch only if it is confirmed.
    """
    epochs = (each.since or 0.0 for each in status.epochs if each.state == EpochState.CONFIRMED)
    since = max(0.0 if status.taken_back is not None else status.since, *epochs, 0.0)
    if status.cause is None or since <= begin:
        return None
    changed = f"its count has changed to {status.count} meanwhile, so these throttles may be older; look again"
    return Verdict(changed, "hot --minutes 1")


def _too_few(hot: Hot, count: int, most: int) -> Verdict:
    command = f"reshard start {hot.place.arguments} --to {max(1, count) * 2}"
    if count >= most:
        return Verdict(
            f"it has {count} shards, and does not grow by itself beyond the `max` of its declaration", command
        )
    if len(hot.shards) <= count * FEW_SHARDS:
        return Verdict("a few shards take most of its traffic: keys are uneven, or sort keys always increase", command)
    return Verdict("it has too few shards for its traffic", command)


def as_dict(hot: Hot, status: Status | None, verdict: Verdict, *, environment: str | None) -> dict[str, Any]:
    """As JSON."""
    place = hot.place
    return {
        "entity": place.definition.name,
        "partition": place.partition if place.index is None else None,
        "index": None if place.index is None else place.index.name,
        "events": hot.events,
        "throttled": len(hot.shards),
        "throttled_shards": sorted(hot.shards, key=lambda key: hot.shards[key], reverse=True),
        "count": None if status is None else status.count,
        "target": None if status is None else status.target,
        "hottest_item": None if hot.hottest is None else {"key": hot.hottest[0], "share": round(hot.hottest[1], 3)},
        "cause": verdict.cause,
        "command": command_line(verdict, environment),
    }


def command_line(verdict: Verdict, environment: str | None) -> str | None:
    """Return the command to type; None if there is none."""
    if verdict.command is None:
        return None
    return f"dynashard {verdict.command}" + (f" --env {environment}" if environment else "")


def lines(found: Sequence[dict[str, Any]]) -> list[str]:
    """As text for people: a line for each, and the command below it."""
    shown = []
    for each in found:
        where = each["entity"] + (f" {each['partition']}" if each["index"] is None else f" by index {each['index']}")
        shown.append(f"{where}: {plural(each['events'], 'throttle')}{_spread(each)}; {each['cause']}")
        if each["command"]:
            shown.append(f"    {each['command']}")
    return shown


def _spread(found: Mapping[str, Any]) -> str:
    """On how much of it there are throttles. An index has its count for each of its partitions."""
    if found["count"] is None or found["index"] is not None:
        return f" on {found['throttled']} partition keys" if found["throttled"] > 1 else ""
    return f" on {found['throttled']} of {max(1, found['count'])} shards"
