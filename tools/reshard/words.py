"""How far a change has come, in words."""

from dataclasses import replace
from typing import Final

from dynashard.placement import UNSHARDED
from dynashard.resharding import Status
from dynashard.routing import rule_of
from tools.reshard.scopes import arguments, entity_of

GRACE: Final = 15.0
"""How much later than due a step may come before somebody asks for the worker, in seconds."""
_STAGES: Final = {
    "pending": "waits to begin",
    "prepare": "prepares",
    "move": "moves",
    "settle": "settles",
    "sweep": "stable, sweeps marks",
    "stable": "stable",
}


def shards(count: int) -> str:
    """A count for people."""
    return "unsharded" if count == UNSHARDED else f"{count} shards" if count != 1 else "1 shard"


def change(status: Status) -> str:
    """From which count to which: `16 -> 32`; the count alone without a change."""
    if status.target is None:
        return shards(status.count)
    return f"{shards(status.count)} -> {status.target}"


def stage(status: Status) -> str:
    """Where it stands."""
    words = _STAGES.get(status.stage, status.stage)
    if status.paused:
        words += ", failed" if status.error else ", paused"
    return words


def amounts(status: Status) -> str:
    """What was done, and what is left."""
    parts = []
    if status.stage == "sweep":
        parts.append(f"{status.swept_marks:,} of {status.moved + status.late:,} marks deleted")
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
    """The time that is left, as far as it is known."""
    if status.seconds_left is None:
        return ""
    minutes, seconds = divmod(round(status.seconds_left), 60)
    hours, minutes = divmod(minutes, 60)
    return f"about {hours}:{minutes:02}:{seconds:02} left"


def line(status: Status) -> str:
    """All of it in one line."""
    parts = [change(status), stage(status), amounts(status), left(status)]
    if status.back_to is not None:
        parts.append(f"will be changed back to {shards(status.back_to)}")
    if status.error:
        parts.append(status.error)
    return f"{arguments(status)}: " + "; ".join(part for part in parts if part)


def reached(status: Status) -> str:
    """What is done when a change has brought its count, and what goes on in the background."""
    name, spent = arguments(status), amounts(replace(status, stage="stable"))
    done = f"{name}: {shards(status.count)}, in force for everybody" + (f"; {spent}" if spent else "")
    if status.stage != "sweep":
        return f"{done}. Nothing goes on in the background."
    return (
        f"{done}. In the background the markers of what was moved are deleted, which changes no answer; until that is "
        f"over no other change of it can start. `dynashard reshard status {name} --watch` watches it."
    )


def overdue(status: Status, now: float) -> bool:
    """Whether a step of the change should have been taken long ago: nobody seems to carry it out.

    Args:
        status: how far the change has come; its `wait` follows the stored lease, whatever this process is set to.
        now: in epoch seconds.
    """
    # A wish, or one to go on, leaves standing since when the phase was published.
    begun = max(status.since, status.started or 0.0, status.updated)
    if not status.busy or status.paused or now - begun <= status.wait + GRACE:
        return False
    if status.begun:
        # Work may take any time.
        return False
    return status.stage != "prepare" or not _empties(status)


def _empties(status: Status) -> bool:
    """Whether a phase lasts until old shards have become empty by themselves: placed at random, and shrinking."""
    growing = status.target is not None and status.target > status.count
    return status.index is None and not growing and not rule_of(entity_of(status)).fixed
