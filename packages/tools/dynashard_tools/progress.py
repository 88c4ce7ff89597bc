"""What long work shows while it runs, and what it has consumed."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from rich.console import Console
from rich.progress import Progress, TextColumn, TimeElapsedColumn

from dynashard.transport.interface import Meter, metered


@dataclass(frozen=True, slots=True)
class Work:
    """Work that is metered and shown.

    Attributes:
        advance: shows new numbers.
    """

    advance: Callable[..., None]
    _meter: Meter
    _begun: float

    @property
    def read_units(self) -> float:
        """Read units consumed so far."""
        return self._meter.consumed.read_units

    @property
    def write_units(self) -> float:
        """Write units consumed so far."""
        return self._meter.consumed.write_units

    @property
    def units(self) -> dict[str, float]:
        """Both, for a summary."""
        return {"read_units": self.read_units, "write_units": self.write_units}

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return round(time.monotonic() - self._begun, 3)

    def adders(self, number: int) -> list[Callable[[int], None]]:
        """Return functions that each add to one of the numbers shown."""
        counts = [0] * number

        def add(at: int, more: int) -> None:
            counts[at] += more
            self.advance(*counts)

        return [partial(add, at) for at in range(number)]


@contextmanager
def working(text: str) -> Iterator[Work]:
    """Meter work of unknown length, and show a line about it if standard error is a terminal.

    Args:
        text: a format for the numbers given to `advance`, such as `{:>11,} items, {:,} copies`.
    """
    console, begun = Console(stderr=True), time.monotonic()
    with metered() as meter:
        if not console.is_terminal:
            yield Work(lambda *_numbers: None, meter, begun)
            return
        with Progress(TextColumn("{task.description}"), TimeElapsedColumn(), console=console) as bar:
            shown = bar.add_task("")
            yield Work(lambda *numbers: bar.update(shown, description=text.format(*numbers)), meter, begun)
