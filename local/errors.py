"""What can stop the local stack, as one line that says what to do."""


class LocalStackError(Exception):
    """The local stack cannot start or go on.

    The message is one line for a person: what is wrong, and what to do about it.
    """
