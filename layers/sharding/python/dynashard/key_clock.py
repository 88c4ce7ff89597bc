"""Which keys of entities placed by epochs a process may write and read now, by its clock.

A key is placed by the count of the epoch in which its own time lies. A new epoch begins far enough in the future that
no process has placed a key in it before, if clocks are off by at most `ClockBounds.off` seconds, and if keys of writes
are at most `ClockBounds.ahead` seconds ahead. docs/promises.md has this assumption.
"""

import math
from collections.abc import Callable
from datetime import UTC, datetime
from math import inf
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from dynashard.entity import EntityDefinition, ItemKey
from dynashard.errors import ClockOffError, ConfigurationError, InvalidKeyError, KeyTooFarAheadError
from dynashard.runtime import SYSTEM
from dynashard.transport.clock_offset import ClockOffset
from dynashard.transport.forks import own_lock

if TYPE_CHECKING:
    from dynashard.key_time import TimeFormat


class ClockBounds(Struct, frozen=True):
    """What all processes of a table assume about clocks and keys, in seconds.

    Attributes:
        off: how far a wall clock may be off from the true time. A process that is further off writes no such items.
        ahead: how far the time of a key that is written may be ahead of the writer's clock.

    Raises `ConfigurationError` if one is below 0.
    """

    off: float = 5.0
    ahead: float = 5.0

    def __post_init__(self) -> None:
        if min(self.off, self.ahead) < 0:
            raise ConfigurationError(f"clocks may be off by {self.off:g}, keys ahead by {self.ahead:g} s: not below 0")

    @property
    def readable(self) -> float:
        """How far ahead of a reader's clock the latest key may be that anybody has written."""
        # The writer's clock may be `off` ahead, and the reader's `off` behind.
        return self.ahead + 2 * self.off

    @property
    def placed(self) -> float:
        """How far ahead of a controller's clock the latest key may be that anybody has placed by now."""
        # Readers place keys too, up to `readable` ahead of their clocks. So both clocks count once more.
        return self.ahead + 4 * self.off


DEFAULT_BOUNDS: Final = ClockBounds()
_LEARNING_PAUSE: Final = 0.7
"""Seconds between two answers that are asked for to learn about a clock. Dates have whole seconds, so answers at
different fractions of a second together say more."""


def _log_warning(message: str) -> None:
    import logging  # noqa: PLC0415 - rare

    logging.getLogger("dynashard.clock").warning("%s", message)


_ASKED: Final = 2
"""How many answers a key waits for at most if those before were so slow that the clock may be off."""


Learn = Callable[[EntityDefinition[Any], ItemKey], None]
"""Sends a request whose answer says how far the clock is off, on behalf of a key that is to be written."""


def _learn_nothing(_entity: EntityDefinition[Any], _key: ItemKey) -> None:
    """Send nothing: what is known is all that will be known."""


class _Bound(Struct, frozen=True):
    """The first sort key that was too far ahead at a time of the clock."""

    at: float
    first: str


class KeyClock:
    """Judges keys by the clock of a process. Safe to share between threads.

    `clock` returns the time in epoch seconds, and `offset` says how far it is off, as far as that is known. A clock
    that is found off is logged once, and again only after it was right in between.
    """

    def __init__(
        self,
        clock: Callable[[], float] = SYSTEM.clock,
        offset: ClockOffset | None = None,
        bounds: ClockBounds = DEFAULT_BOUNDS,
    ) -> None:
        self.bounds = bounds
        self._warned = False
        self._lock = own_lock(self)
        self.offset = offset or ClockOffset()
        self._clock = clock
        self._writable: dict[TimeFormat, _Bound] = {}
        self._readable: dict[TimeFormat, _Bound] = {}
        self._learned = -inf

    def require_writable(self, entity: EntityDefinition[Any], key: ItemKey, learn: Learn = _learn_nothing) -> bool:
        """Refuse a key that may not be written now; keys of other placements always may. Return whether it has learned.

        `learn` is called if nothing is known about the clock, or nothing any more because it may have been set, and
        about once a second while it may be off: a process that only writes learns nothing otherwise, because it refuses
        its writes. A first answer that was slow says little, so there is another one or two.

        Raises:
            InvalidKeyError: it does not begin with a time in the format that the entity declares.
            ClockOffError: this process's clock is off, or may be, by more than is assumed.
            KeyTooFarAheadError: its time is further ahead than a key may be.
        """
        self.require_format(entity, key)
        if entity.time is None:
            return False
        # First, because a clock that is behind finds keys of now too far ahead, which is not their callers' fault.
        learned = self._require_right_clock(entity, key, learn)
        self._warned = False
        self._require_not_ahead(entity, key, entity.time)
        return learned

    def _require_right_clock(self, entity: EntityDefinition[Any], key: ItemKey, learn: Learn) -> bool:
        offset, most, learned = self.offset, self.bounds.off, False
        if not offset.date or offset.outdated:
            # The clock may have been set to a time at which the last answer would say as much as the next.
            offset.take_next()
            learn(entity, key)
            learned = True
        for _ in range(_ASKED):
            if not offset.exceeds(most):
                return learned
            learned |= self._learn_again(entity, key, learn)
        if offset.exceeds(most):
            raise self._off(entity)
        return learned

    def _learn_again(self, entity: EntityDefinition[Any], key: ItemKey, learn: Learn) -> bool:
        now = self._clock()
        if 0 <= now - self._learned < _LEARNING_PAUSE:
            return False
        self._learned = now
        learn(entity, key)
        return True

    def require_timely(self, entity: EntityDefinition[Any], key: ItemKey) -> None:
        """Refuse a key that may not be written now by its own time; raises as `require_writable`, for the key alone."""
        self.require_format(entity, key)
        if entity.time is not None:
            self._require_not_ahead(entity, key, entity.time)

    @staticmethod
    def require_format(entity: EntityDefinition[Any], key: ItemKey) -> None:
        """Refuse a key that may never be written; raises `InvalidKeyError` as `require_writable`."""
        time_format = entity.time
        if time_format is not None and not time_format.matches(key.sort):
            field = entity.sort_fields[0]
            raise InvalidKeyError(
                f"{field}: {key.sort!r} does not begin with a {time_format.name}, as keys of {entity.name} must, "
                "because its placement is epochs",
                field=field,
            )

    def readable(self, entity: EntityDefinition[Any], key: ItemKey, learn: Learn = _learn_nothing) -> bool:
        """Whether anybody can have written a key by now, by its time; keys of other placements always may exist.

        If it seems not, this process's clock is judged as for a write: raises `ClockOffError` as `require_writable`.
        """
        time_format = entity.time
        if time_format is None:
            return True
        bound = self._readable.get(time_format)
        # As in `_ahead`, without a call.
        if bound is not None and key.sort < bound.first and bound.at <= self._clock():
            return True
        if not self._ahead(self._readable, time_format, key, self.bounds.readable):
            return True
        self._require_right_clock(entity, key, learn)
        return False

    def _require_not_ahead(self, entity: EntityDefinition[Any], key: ItemKey, time_format: "TimeFormat") -> None:
        if self._ahead(self._writable, time_format, key, self.bounds.ahead):
            field, now, moment = entity.sort_fields[0], self._clock(), time_format.moment(key.sort)
            shown = datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds")
            raise KeyTooFarAheadError(
                f"{field}: the time of {key.sort!r} is more than {self.bounds.ahead:g} seconds ahead of {shown}; send "
                "it when its time has come, or correct the clock that made it",
                field=field,
                ahead=self.bounds.ahead,
                now=shown,
                wait=math.inf if moment is None else max(0.0, moment - self.bounds.ahead - now),
            )

    def _ahead(
        self, known: "dict[TimeFormat, _Bound]", time_format: "TimeFormat", key: ItemKey, seconds: float
    ) -> bool:
        """Whether a key's time is more than so many seconds ahead. A bound is computed anew only for keys beyond it."""
        now, bound = self._clock(), known.get(time_format)
        # A clock that was set back since then allows less than it did.
        if bound is None or now < bound.at or key.sort >= bound.first:
            bound = known[time_format] = _Bound(now, time_format.first(now + seconds))
        return key.sort >= bound.first

    def _off(self, entity: EntityDefinition[Any]) -> ClockOffError:
        error = clock_off(self.offset, self.bounds, f"{entity.name} is placed by the time of its keys")
        with self._lock:
            first, self._warned = not self._warned, True
        if first:
            _log_warning(f"{error}. Until it is right, items that are placed by the time of their keys are not written")
        return error


def clock_off(offset: ClockOffset, bounds: ClockBounds, why: str) -> ClockOffError:
    """Return the error of a process whose clock is off; `why` says what depends on it."""
    off = offset.seconds or 0.0
    if offset.outdated:
        found = "was set, and no answer of DynamoDB has shown since how far it is off"
    elif abs(off) <= bounds.off:
        # DynamoDB's answers were slow, or they came at the same time of a second.
        off = offset.furthest
        found = f"may be {_off_by(off)}"
    else:
        found = f"is {_off_by(off)}"
    return ClockOffError(
        f"this process's clock {found}, and at most {bounds.off:g} s are allowed: {why}. "
        "Correct the clock; another process can do the same now",
        off=round(off, 1),
    )


def _off_by(seconds: float) -> str:
    return f"{abs(seconds):.1f} s {'ahead' if seconds > 0 else 'behind'}"
