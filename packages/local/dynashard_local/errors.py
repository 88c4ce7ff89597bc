"""Errors that stop the local stack."""


class LocalStackError(Exception):
    """The local stack cannot start or continue. The message says what is wrong, and what to do."""
