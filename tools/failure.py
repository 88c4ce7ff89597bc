"""What ends a command, as one line that says what to do."""

from typing import ClassVar, Final

DONE: Final = 0
FAILED: Final = 1
"""The command could not do its work; what it had done is said."""
WITH_ERRORS: Final = 3
"""The work was done, but some input was left out."""


INTERRUPTED: Final = 130
"""Ctrl-C, as shells have it: 128 and the signal's number."""


class CommandError(Exception):
    """A command cannot go on. The message is one line for a person, `status` the exit status."""

    status: ClassVar[int] = FAILED


class CommandInterruptedError(CommandError):
    """Somebody pressed Ctrl-C."""

    status = INTERRUPTED
