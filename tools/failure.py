"""What ends a command, as one line that says what to do."""

from typing import Final

DONE: Final = 0
FAILED: Final = 1
"""The command could not do its work; what it had done is said."""
WITH_ERRORS: Final = 3
"""The work was done, but some input was left out."""


class CommandError(Exception):
    """A command cannot go on. The message is one line for a person."""
