"""Errors that end a command, each as one line that says what to do."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar, Final

DONE: Final = 0
FAILED: Final = 1
"""The command could not do its work; the message says what it had done."""
WITH_ERRORS: Final = 3
"""The work was done, but some input or some stored rows were left out."""
STILL_WRONG: Final = 4
"""A verification found faults that are not repaired."""
INTERRUPTED: Final = 130
"""Ctrl-C, as shells have it: 128 and the signal's number."""


class CommandError(Exception):
    """A command cannot go on. The message is one line for a person, `status` the exit status."""

    status: ClassVar[int] = FAILED


class CommandInterruptedError(CommandError):
    """Ctrl-C was pressed."""

    status = INTERRUPTED


@contextmanager
def on_interrupt(state: Callable[[], str]) -> Iterator[None]:
    """End the command at Ctrl-C with a line that says how far it has come."""
    try:
        yield
    except KeyboardInterrupt:
        raise CommandInterruptedError(f"interrupted; {state()}") from None


@contextmanager
def needs_extra(name: str) -> Iterator[None]:
    """End the command if an import of this block needs an extra of the package that is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        message = f'this needs {error.name}, which is not installed: pip install "dynashard-tools[{name}]"'
        raise CommandError(message) from error
