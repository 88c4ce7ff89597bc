"""Refusals of values: each container that a value is in adds its step to the path in the error."""

from dynashard.errors import InvalidValueError

_SHOWN = 60


class RefusedError(Exception):
    """A value cannot be stored. Only the codec sees this error; `steps` lead to the value, innermost first."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self.steps: list[str | int] = []

    def public(self, path: str) -> InvalidValueError:
        """Return the error for the caller, whose field reads like `address.lines[2]`."""
        for step in reversed(self.steps):
            path += f"[{step}]" if isinstance(step, int) else f".{shown(step)}"
        path = path.removeprefix(".")
        return InvalidValueError(f"{path}: {self.reason}" if path else self.reason, field=path or None)


def shown(text: str) -> str:
    """Return the text for a message: of bounded length, and always valid UTF-8."""
    short = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return short.encode(errors="backslashreplace").decode()
