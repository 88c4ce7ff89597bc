"""How a refused value finds its way out: each container on the way adds its step to the path."""

from dynashard.errors import InvalidValueError

_SHOWN = 60


class RefusedError(Exception):
    """A value that cannot be stored; never leaves the codec. `steps` lead to it, the innermost first."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.steps: list[str | int] = []

    def public(self, path: str) -> InvalidValueError:
        """The error a caller sees, whose field reads like `address.lines[2]`."""
        for step in reversed(self.steps):
            path += f"[{step}]" if isinstance(step, int) else f".{shown(step)}"
        path = path.removeprefix(".")
        return InvalidValueError(f"{path}: {self.reason}" if path else self.reason, field=path or None)


def shown(text: str) -> str:
    """The text as a message may carry it: of bounded length, and always valid UTF-8."""
    short = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return short.encode(errors="backslashreplace").decode()
