"""What functions read from their environment, and the time that an invocation has left."""

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, Final, NamedTuple, get_type_hints

from dynashard.cursor_keys import key_list
from dynashard.errors import ConfigurationError
from dynashard_serving.tenants import DEFAULT_PATTERN, TenantRule

LONGEST_SECONDS: Final = 30.0
"""How long a request may take if its invocation does not say."""

_MARGIN_SECONDS: Final = 1.0
_MARGIN_SHARE: Final = 0.1


def required(environ: Mapping[str, str], name: str) -> str:
    """Return a variable that has no default.

    Raises:
        ConfigurationError: it is not set.
    """
    value = environ.get(name)
    if not value:
        raise ConfigurationError(f"{name} is not set: the function cannot start without it")
    return value


class Variable(NamedTuple):
    """The environment variable of a field of settings: `Annotated[str, Variable("NAME")]`."""

    name: str
    read: Callable[[str, str], Any] = lambda _, text: text


def values_of(settings: type[Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of a dataclass's fields that name a `Variable`. Those that are not set keep their defaults.

    Raises:
        ConfigurationError: a variable without a default is not set, or one is unusable; the message names it.
    """
    hints, values = get_type_hints(settings, include_extras=True), {}
    for field in fields(settings):
        for variable in getattr(hints[field.name], "__metadata__", ()):
            if field.default is MISSING:
                required(environ, variable.name)
            if (text := environ.get(variable.name)) is not None:
                values[field.name] = variable.read(variable.name, text)
    return values


def number(name: str, text: str) -> float:
    """Read a number.

    Raises:
        ConfigurationError: the text is not a number.
    """
    try:
        return float(text)
    except ValueError as error:
        raise ConfigurationError(f"{name} is {text!r}: give a number") from error


def whole_number(name: str, text: str) -> int:
    """Read a number without its fraction."""
    return int(number(name, text))


def flag(name: str, text: str) -> bool:
    """Read `true` or `false`.

    Raises:
        ConfigurationError: the text is something else.
    """
    if text not in ("true", "false"):
        raise ConfigurationError(f"{name} is {text!r}: use true or false")
    return text == "true"


def optional(_name: str, text: str) -> str | None:
    """Read a text; None if it is empty."""
    return text or None


def tenant_rule(environ: Mapping[str, str]) -> TenantRule:
    """Return which texts are tenants, as `TENANT_PATTERN` says; see `pattern`."""
    return pattern("TENANT_PATTERN", environ.get("TENANT_PATTERN", DEFAULT_PATTERN))


def pattern(name: str, text: str) -> TenantRule:
    """Read a pattern of tenants.

    Raises:
        ConfigurationError: the pattern is not of the form that is allowed.
    """
    try:
        return TenantRule(text)
    except ValueError as error:
        raise ConfigurationError(f"{name}: {error}") from error


def signing_keys(name: str, text: str) -> tuple[str, ...]:
    """Read a JSON list of signing keys, newest first; empty if the text is.

    Raises:
        ConfigurationError: the text is something else.
    """
    if not text:
        return ()
    try:
        keys = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigurationError(f'{name} is not JSON: give a list such as ["newest", "older"]') from error
    return key_list(keys, name)


def seconds_left(context: Any) -> float:
    """Return how long an invocation can still take, in seconds, by its Lambda context."""
    ask = getattr(context, "get_remaining_time_in_millis", None)
    return LONGEST_SECONDS if ask is None else int(ask()) / 1000


def time_to_answer(left: float) -> float:
    """Return how long an invocation may work, in seconds, so that it still answers: all but a second, or a tenth.

    Args:
        left: how long it can still take; see `seconds_left`.
    """
    return left - min(_MARGIN_SECONDS, left * _MARGIN_SHARE)
