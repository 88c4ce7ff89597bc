"""Watches a run of the layer: its points, the phases of its resizes, and when throttled operations have gone."""

from collections.abc import Callable
from typing import Final, NamedTuple

from dynashard_lab.simulate.actors import Actors
from dynashard_lab.simulate.run import Point

WINDOW: Final = 10.0
"""Seconds over which the share of throttled operations is taken."""
_BAD_SHARE: Final = 0.1
_ROUNDING: Final = 1e-6


class Moment(NamedTuple):
    """The state of a run.

    Attributes:
        counted: operations so far: those that have begun, that were acknowledged, and that were throttled for good.
        partitions: the table's partitions.
        write_units: the write units a second that the table has.
        shards: the shard count for new items.
    """

    counted: tuple[int, int, int]
    partitions: int
    write_units: float
    shards: int


class Watch:
    """Looks at a run at regular times.

    Args:
        look: returns the state of the run.
        notes: returns one text for each shard count; a text that is new is noted.
    """

    def __init__(self, look: Callable[[], Moment], notes: Callable[[], list[str]]) -> None:
        self._look = look
        self._notes = notes
        self._known: set[str] = set()
        self._pointed = (0.0, (0, 0, 0))
        self._window = (0.0, (0, 0, 0))
        self._windows: list[tuple[float, int, int]] = []
        """The end of each window, with the operations in it, and those that were throttled."""
        self.points: list[Point] = []
        self.phases: list[tuple[float, str]] = []

    def run(self, actors: Actors, *, tick: float, every: float) -> None:
        """Look after each tick, and take a point after each `every` seconds, for ever."""
        while True:
            actors.sleep(tick)
            now = actors.seconds
            notes = self._notes()
            self.phases += [(round(now, 3), note) for note in notes if note not in self._known]
            self._known = set(notes)
            if now - self._window[0] >= WINDOW - _ROUNDING:
                self._end_window(now)
            if now - self._pointed[0] >= every - _ROUNDING:
                self.point(now)

    def point(self, now: float) -> None:
        """Take a point of the run, unless one was just taken."""
        (before, counted), moment = self._pointed, self._look()
        length = now - before
        if length <= 0:
            return
        asked, done, throttled = (
            (mine - theirs) / length for mine, theirs in zip(moment.counted, counted, strict=True)
        )
        state = moment.partitions, moment.write_units, moment.shards
        self.points.append(Point(round(now, 3), asked, done, throttled, *state))
        self._pointed = now, moment.counted

    def _end_window(self, now: float) -> None:
        counted = self._look().counted
        self._windows.append((now, counted[0] - self._window[1][0], counted[2] - self._window[1][2]))
        self._window = now, counted

    def adapted(self) -> float | None:
        """Return the seconds from the first throttled operation until less than a tenth was throttled, for good.

        None if that did not happen; 0 if it was never otherwise. To the nearest 10 seconds.
        """
        throttled = [end for end, _, count in self._windows if count]
        bad = [end for end, asked, count in self._windows if asked and count > asked * _BAD_SHARE]
        if not bad:
            return 0.0
        if bad[-1] == self._windows[-1][0]:
            return None
        return round(bad[-1] - (throttled[0] - WINDOW), 3)
