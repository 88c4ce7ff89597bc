"""Settings that the direct transport leaves to botocore."""

from collections.abc import Callable

Variable = Callable[[str], str | None]
"""Returns a setting by botocore's name of it; None if it is not set."""


class UnusualSettingsError(Exception):
    """The direct transport does not do what the settings ask for; the message says what that is."""
