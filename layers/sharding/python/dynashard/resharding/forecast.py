"""Forecasts what a resize takes, and declines one that starts by itself and would take too long."""

from dataclasses import replace
from typing import Any, Final

from dynashard.entity import EntityDefinition
from dynashard.errors import EngineError
from dynashard.resharding import estimate as estimates
from dynashard.resharding.context import Context
from dynashard.resharding.estimate import Estimate, Stored, lasting
from dynashard.resharding.job import moving_shards
from dynashard.resharding.rates import Course
from dynashard.resharding.resize import SELF_STARTED, Resize
from dynashard.resharding.scope import Scope
from dynashard.resharding.share import Share
from dynashard.resharding.stored_amount import stored_in
from dynashard.topology import Record

_WAITS: Final = 5
_WAITS_OF_INDEX: Final = 4
_WAITS_WITHOUT_MOVES: Final = 2
"""Waits from the request to the end: before each phase, and before the resize is over."""


def share_of(context: Context, part: float | None) -> Share:
    """Return what a resize may take of each shard, by the part that its request names, or the setting."""
    return context.share if part is None else replace(context.share, part=part)


def course_of(context: Context, scope: Scope, resize: Resize) -> Course:
    """Return how a resize divides its work."""
    workers = max(1, min(context.concurrency, resize.tasks))
    return Course(resize.origin, resize.target, workers, rewrites=scope.index is not None, budget=resize.budget)


def forecast(
    context: Context,
    scope: Scope,
    family: Record,
    resize: Resize,
) -> Estimate:
    """Return what a requested resize takes; `family` is the record of the scope's family.

    Raises, costs: as `stored_in`. Nothing is read if nothing moves.
    """
    timing, of_shards = context.timing, share_of(context, resize.share)
    lease = timing.longest(family, context.runtime.clock())
    wait = timing.wait(lease)
    if scope.time is not None or not scope.moves_by(rewrites=resize.rewrites):
        course = Course(resize.origin, resize.target, 1)
        waits = _WAITS_WITHOUT_MOVES * wait if scope.time is None else timing.ahead(lease)
        return estimates.estimate(estimates.EffortInputs(course, 0, waits=waits), Stored(), of_shards)
    shards = moving_shards(scope, resize.origin, resize.target) if scope.partition is not None else []
    tasks = len(shards) or context.segments
    workers = min(context.concurrency, tasks)
    course = Course(resize.origin, resize.target, workers, rewrites=scope.index is not None, budget=resize.budget)
    effort = estimates.EffortInputs(
        course,
        tasks,
        entries=_entries(context, scope),
        waits=_WAITS_OF_INDEX * wait if course.rewrites else _WAITS * wait + 2 * timing.lag,
        creating=resize.creating,
        # Clients learn within a lease after the phase has begun that new items belong to their new homes.
        creating_seconds=2 * wait + lease,
    )
    return estimates.estimate(effort, stored_in(context, scope, shards, of_shards), of_shards)


def judged(context: Context, scope: Scope, family: Record, resize: Resize) -> Resize:
    """Return a resize that started by itself with the time that it is expected to take, or with why it is declined.

    Raises `EngineError` if the shards cannot be read now, but later. Cost: as `forecast`.
    """
    if resize.cause not in SELF_STARTED or resize.expected is not None:
        return resize
    if not scope.moves_by(rewrites=resize.rewrites):
        return resize
    if context.most_seconds is None:
        return resize
    try:
        found = forecast(context, scope, family, resize)
    except EngineError as error:
        if error.retryable:
            # It says nothing about the items: the shard that is to be relieved may have no units left to count them.
            raise
        return replace(resize, declined=f"what it takes is unknown ({error})")
    # Without an error it is a lower bound, which promises nothing.
    if found.error is not None and found.seconds <= context.most_seconds:
        return replace(resize, expected=found.seconds)
    bound = lasting(context.most_seconds)
    return replace(resize, declined=f"it {found.text}; by itself it may take at most {bound}")


def _entries(context: Context, scope: Scope) -> int:
    """Return in how many indexes an item of the scope may stand, besides the one that is changed."""

    def indexes(entity: EntityDefinition[Any]) -> int:
        return sum(index is not scope.index for index in entity.indexes.values())

    return max(indexes(member) for member in context.families[scope.family].members)
