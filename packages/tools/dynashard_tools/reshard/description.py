"""Describes in one line how far a resize has come."""

import shlex
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from dynashard import definition
from dynashard.entity import EntityDefinition
from dynashard.placement import UNSHARDED
from dynashard.resharding import Scope, Status
from dynashard.topology import EpochState
from dynashard_tools.counting import plural
from dynashard_tools.entities import models
from dynashard_tools.printing import utc_text

GRACE: Final = 15.0
"""Seconds that a step may be late before a missing worker is reported."""
LEAST_EPOCHS: Final = 2
"""A single epoch is one count for all keys."""
_STAGES: Final = {
    "pending": "waits to begin",
    "confirmed": "confirmed, and begins soon",
    "prepare": "prepares",
    "move": "moves",
    "settle": "settles",
    "sweep": "stable, sweeps markers",
    "stable": "stable",
}


def arguments(status: Status) -> str:
    """Return the arguments that name a resize, as a shell takes them: `user.v1.User abc`."""
    return shlex.join(_words(status))


def name_of(scope: Scope) -> str:
    """Return the arguments that name what a resize concerns; as `arguments`."""
    return shlex.join(_words_of(scope.entity, scope.partition, scope.index.slot if scope.index else None))


def _words(status: Status) -> Iterator[str]:
    yield from _words_of(_entity_of(status), status.partition, status.index)


def _words_of(entity: EntityDefinition[Any], partition: str | None, slot: str | None) -> Iterator[str]:
    yield entity.name
    if partition is not None:
        yield partition.removeprefix(f"{entity.prefix}{entity.separator}" if entity.prefix else "")
    if slot is not None:
        yield from ("--index", next(i.name for i in entity.indexes.values() if i.slot == slot))


def _entity_of(status: Status) -> EntityDefinition[Any]:
    return next(each for each in map(definition, models()) if each.name == status.entity)


def shards(count: int) -> str:
    """Describe a count."""
    return "unsharded" if count == UNSHARDED else f"{count} shards" if count != 1 else "1 shard"


def resize(status: Status) -> str:
    """Describe a resize: `16 shards -> 32`; the count alone without a resize."""
    if status.target in (None, status.count):
        return shards(status.count)
    return f"{shards(status.count)} -> {status.target}"


def stage(status: Status) -> str:
    """Describe the stage."""
    words = _STAGES.get(status.stage, status.stage)
    if status.paused:
        words += ", failed" if status.error else ", paused"
    return words


def epochs(status: Status) -> str:
    """Describe the counts by the time of keys; empty while one count holds for all keys."""
    held = [each for each in status.epochs if each.state == EpochState.CONFIRMED]
    if len(held) < LEAST_EPOCHS or held[-1].since is None:
        return ""
    return f"{len(held)} epochs, the newest for keys since {utc_text(held[-1].since)}"


def epoch(count: int, since: float | None, state: str, items: int | None = None) -> str:
    """Describe an epoch, with the number of its items if they were counted."""
    begin = "from the beginning" if since is None else f"for keys since {utc_text(since)}"
    counted = "" if items is None else f": {plural(items, 'item')}"
    return f"epoch: {shards(count)} {begin}{counted}" + ("" if state == EpochState.CONFIRMED else f", {state}")


def lines(status: Status) -> str:
    """Describe all of it: in one line, and one for each epoch."""
    return "\n".join([line(status), *(epoch(each.count, each.since, each.state) for each in status.epochs)])


def older(status: Status) -> str:
    """Describe by which counts older entries of an index stand; empty if all stand by the present one."""
    if not status.former:
        return ""
    counts = ", ".join(str(count) for count in status.former)
    return f"older entries by {counts}, until a resize with --rewrite"


def amounts(status: Status) -> str:
    """Describe what was done, and what is left."""
    parts = []
    if status.stage == "sweep":
        parts.append(f"{status.swept_marks:,} of {status.moved + status.late:,} markers deleted")
    elif status.moved or status.stage == "move":
        of = "" if status.total is None else f" of {status.total:,}"
        parts.append(f"{status.moved:,}{of} moved")
    if status.late:
        parts.append(f"{status.late:,} stored late and moved")
    if status.left:
        parts.append(f"{status.left:,} left away from home, see `dynashard verify`")
    if status.write_units or status.read_units:
        parts.append(f"{status.write_units:,.0f} write and {status.read_units:,.0f} read units")
    return ", ".join(parts)


def left(status: Status) -> str:
    """Describe the estimated time that is left; empty without an estimate."""
    if status.seconds_left is None:
        return ""
    minutes, seconds = divmod(round(status.seconds_left), 60)
    hours, minutes = divmod(minutes, 60)
    return f"about {hours}:{minutes:02}:{seconds:02} left"


def line(status: Status) -> str:
    """Describe all of it in one line."""
    parts = [resize(status), stage(status), epochs(status), waits(status), amounts(status), left(status), older(status)]
    if status.declined:
        parts.append(f"the last resize that began by itself was declined: {status.declined}")
    if status.back_to is not None:
        parts.append(f"will be changed back to {shards(status.back_to)}")
    if status.error:
        parts.append(status.error)
    return f"{arguments(status)}: " + "; ".join(part for part in parts if part)


def reached(status: Status) -> str:
    """Describe a resize that has reached its count, and what continues in the background."""
    name, spent = arguments(status), amounts(replace(status, stage="stable"))
    done = f"{name}: {shards(status.count)}, in force everywhere" + (f"; {spent}" if spent else "")
    if status.former:
        counts = ", ".join(str(count) for count in status.former)
        return (
            f"{done} for new entries. Older ones stay where they are, by {counts}, and readers look there too. "
            f"`dynashard reshard start {name} --to {status.count} --rewrite` brings them to their places."
        )
    if status.stage != "sweep":
        return f"{done}. Nothing continues in the background."
    return (
        f"{done}. The relocation markers of moved items are being deleted in the background; until that is over, no "
        f"other resize can start. `dynashard reshard status {name} --watch` watches it."
    )


def waits(status: Status) -> str:
    """Describe what a resize waits for, and until when; empty while it works."""
    if status.waits_for == "clients" and status.until is not None:
        at = datetime.fromtimestamp(status.until, UTC)
        return f"waits until {at:%H:%M:%S} UTC for every client to know it"
    if status.waits_for == "epoch" and status.until is not None:
        return f"holds for keys from {datetime.fromtimestamp(status.until, UTC):%H:%M:%S} UTC on"
    if status.waits_for == "empty_shards":
        return (
            f"waits until the shards from {status.target} on are empty: their items must expire or be deleted; "
            "a throttle of this partition, or `dynashard reshard abort`, takes the resize back"
        )
    return "waits for a worker to see it" if status.waits_for == "worker" else ""


def overdue(status: Status, now: float) -> bool:
    """Whether a step of the resize should have been taken long ago, so that no worker seems to run.

    The wait follows the stored lease, not the settings of this process. `now` is in epoch seconds.
    """
    # A request to start or resume does not change `since`, when the phase was published.
    begun = max(status.since, status.started or 0.0, status.updated)
    if not status.busy or status.paused or now - begun <= status.wait + GRACE:
        return False
    if status.until is not None and now <= status.until + GRACE:
        return False
    # Work may take any time, and so may items in shards that have to be empty.
    return not status.begun and status.waits_for != "empty_shards"
