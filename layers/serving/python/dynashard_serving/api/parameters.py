"""Query parameters: each known, given as often as it may be, and of the values it takes."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, TypeVar

from pydantic import BaseModel

from dynashard.cures import hint
from dynashard.errors import FieldError, ValidationFailedError

_FLAG: Final = ("true", "false")
_LONGEST_MISTYPED: Final = 64
"""Characters of an unknown name that is compared with those that are known."""

Query = Sequence[tuple[str, str]]
Model = TypeVar("Model", bound=BaseModel)


class Parameters:
    """The parameters of a request.

    Args:
        query: names and values, in the order they came.
        once: names that may be given once.
        several: names that may be given several times.
        filters: those of them that filter a listing, which errors name first; None if it is not a listing.
        operators: those with an operator, such as `created_at[gte]`, by field and operator.

    Raises:
        ValidationFailedError: with every parameter that is unknown, or given too often.
    """

    def __init__(
        self,
        query: Query,
        once: Sequence[str],
        several: Sequence[str] = (),
        *,
        filters: Sequence[str] | None = None,
        operators: Mapping[str, tuple[str, str]] | None = None,
    ) -> None:
        self._values: dict[str, list[str]] = {}
        errors = []
        for name, value in query:
            if name not in once and name not in several:
                known = dict.fromkeys(each for each in (*once, *several) if not operators or each not in operators)
                message = _without_operator(name, operators or {}) or _unknown(name, known, filters)
                errors.append(FieldError(name, message, "unknown_parameter"))
            elif name in self._values and name not in several:
                errors.append(FieldError(name, "Give this query parameter once.", "repeated_parameter"))
            self._values.setdefault(name, []).append(value)
        if errors:
            raise ValidationFailedError(*errors)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def text(self, name: str) -> str | None:
        """The value of a parameter that may be given once; None if it was not."""
        return self._values[name][0] if name in self._values else None

    def names(self, name: str) -> list[str] | None:
        """The names that a parameter lists, separated by commas; None if it was not given."""
        text = self.text(name)
        return None if text is None else text.split(",")

    def once(self) -> dict[str, str]:
        """All parameters that were given, each with its first value."""
        return {name: values[0] for name, values in self._values.items()}

    def texts(self, name: str) -> list[str]:
        """The different values of a parameter, in the order they came."""
        return list(dict.fromkeys(self._values.get(name, ())))

    def every(self, name: str) -> list[str]:
        """All values of a parameter, in the order they came."""
        return self._values.get(name, [])

    def some(self, names: Sequence[str]) -> dict[str, str]:
        """Those of some parameters that were given, each with its first value."""
        return {name: self._values[name][0] for name in names if name in self._values}

    def flag(self, name: str) -> bool:
        """Whether a parameter is `true`; false if it was not given. Other values are refused (422)."""
        value = self._values.get(name, ["false"])[0]
        if value not in _FLAG:
            raise ValidationFailedError(FieldError(name, f"Use one of {', '.join(_FLAG)}.", "enum"))
        return value == "true"


def _without_operator(name: str, operators: Mapping[str, tuple[str, str]]) -> str | None:
    """Why a parameter such as `status[like]` is unknown; None if the field takes no operators at all."""
    field = name.partition("[")[0]
    words = [word for other, word in operators.values() if other == field]
    if field == name or not words:
        return None
    return f"Unknown query parameter. {field} takes {', '.join(f'{field}[{word}]' for word in words)}."


def _unknown(name: str, known: Collection[str], filters: Sequence[str] | None) -> str:
    meant = hint(name, known) if len(name) <= _LONGEST_MISTYPED else ""
    first = f"Unknown query parameter{meant or '.'}"
    others = ", ".join(each for each in known if each not in (filters or ())) or "none"
    if filters is None:
        return f"{first} Known are {others}."
    by = f"filters by {', '.join(filters)}" if filters else "takes no filters"
    return f"{first} This listing {by}. Its other parameters are {others}."


def consistent_only(query: Query, *, allowed: bool = True) -> bool:
    """Read the query of a single item: `consistent=true|false`, or no parameter if that is not allowed."""
    return Parameters(query, ("consistent",) if allowed else ()).flag("consistent")


def model_of(model: type[Model], query: Query) -> Model:
    """Return the query as a model of its parameters, or refuse each parameter that is not valid (422)."""
    from dynashard_serving.operations.computed import request_of  # noqa: PLC0415 - a GET of an item has no model

    given = Parameters(query, [field.alias or name for name, field in model.model_fields.items()])
    return request_of(given.once(), model.model_validate_strings)
