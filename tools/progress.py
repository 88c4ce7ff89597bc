"""How far long work has come."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, TextColumn, TimeElapsedColumn


@contextmanager
def counting(text: str) -> Iterator[Callable[..., None]]:
    """A line on a terminal, nothing elsewhere: for work of which nobody knows beforehand how much there is.

    Args:
        text: a format for numbers, such as `{:>11,} items, {:,} copies`.

    Returns:
        What takes the numbers, as often as they change.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda *_numbers: None
        return
    with Progress(TextColumn("{task.description}"), TimeElapsedColumn(), console=console) as bar:
        shown = bar.add_task("")
        yield lambda *numbers: bar.update(shown, description=text.format(*numbers))
