"""Query parameters: each known, given as often as it may be, and of the values it takes."""

from collections.abc import Mapping, Sequence
from typing import Final

from functions.api.problems import FieldError, invalid_fields

DEFAULT_LIMIT: Final = 50
MAX_LIMIT: Final = 1000
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "order": ("round_robin", "ordered", "shard"),
    "direction": ("asc", "desc"),
    "consistent": ("true", "false"),
}

Query = Sequence[tuple[str, str]]


class Parameters:
    """The parameters of a request.

    Args:
        query: names and values, in the order they came.
        once: names that may be given once.
        several: names that may be given several times.

    Raises:
        ProblemError: 422 with every parameter that is unknown, or given too often.
    """

    def __init__(self, query: Query, once: Sequence[str], several: Sequence[str] = ()) -> None:
        self._values: dict[str, list[str]] = {}
        errors = []
        known = ", ".join(dict.fromkeys((*once, *several))) or "none"
        for name, value in query:
            if name not in once and name not in several:
                errors.append(FieldError(name, f"Unknown query parameter; known are {known}.", "unknown_parameter"))
            elif name in self._values and name not in several:
                errors.append(FieldError(name, "Give this query parameter once.", "repeated_parameter"))
            self._values.setdefault(name, []).append(value)
        if errors:
            raise invalid_fields(*errors)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def text(self, name: str) -> str | None:
        """The value of a parameter that may be given once; None if it was not."""
        return self._values[name][0] if name in self._values else None

    def once(self) -> dict[str, str]:
        """All parameters that were given, each with its first value."""
        return {name: values[0] for name, values in self._values.items()}

    def texts(self, name: str) -> list[str]:
        """The different values of a parameter, in the order they came."""
        return list(dict.fromkeys(self._values.get(name, ())))

    def choice(self, name: str, default: str) -> str:
        """The value of `order`, `direction` or `consistent`.

        Raises:
            ProblemError: 422 for another one than there are.
        """
        value = self._values.get(name, [default])[0]
        if value not in _CHOICES[name]:
            raise invalid_fields(FieldError(name, f"Use one of {', '.join(_CHOICES[name])}.", "enum"))
        return value

    def flag(self, name: str) -> bool:
        """Whether `consistent` is `true`; raises as `choice`."""
        return self.choice(name, "false") == "true"

    def limit(self) -> int:
        """The value of `limit`.

        Raises:
            ProblemError: 422 for what is no number from 1 to 1000.
        """
        text = self._values.get("limit", [str(DEFAULT_LIMIT)])[0]
        limit = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(MAX_LIMIT)) else 0
        if not 1 <= limit <= MAX_LIMIT:
            raise invalid_fields(FieldError("limit", f"Use a number from 1 to {MAX_LIMIT}.", "out_of_range"))
        return limit


def consistent_only(query: Query, *, allowed: bool = True) -> bool:
    """Read the query of a single item: `consistent=true|false`, or nothing at all where that is not allowed.

    Raises:
        ProblemError: 422 with every other parameter.
    """
    return Parameters(query, ("consistent",) if allowed else ()).flag("consistent")
