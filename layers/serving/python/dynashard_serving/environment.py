"""Settings from an environment: what functions read alike, with one line that names what is missing or wrong."""

import json
from collections.abc import Mapping
from typing import Any, Final

from dynashard.cursor_keys import key_list
from dynashard.errors import ConfigurationError
from dynashard_serving.tenants import DEFAULT_PATTERN, TenantRule

LONGEST_SECONDS: Final = 30.0
"""How long a request may take where nobody says."""

_MARGIN_SECONDS: Final = 1.0
_MARGIN_SHARE: Final = 0.1


def required(environ: Mapping[str, str], name: str) -> str:
    """A variable that has no default.

    Raises:
        ConfigurationError: it is not set.
    """
    value = environ.get(name)
    if not value:
        raise ConfigurationError(f"{name} is not set: the function cannot start without it")
    return value


def number(environ: Mapping[str, str], name: str, default: float) -> float:
    """A number, or its default where the variable is not set.

    Raises:
        ConfigurationError: it is no number.
    """
    value = environ.get(name)
    if value is None:
        return default
    try:
        return float(value)
    except ValueError as error:
        raise ConfigurationError(f"{name} is {value!r}: give a number") from error


def tenant_rule(environ: Mapping[str, str]) -> TenantRule:
    """Return which texts are tenants, as `TENANT_PATTERN` says.

    Raises:
        ConfigurationError: it is not a pattern of the form that is allowed.
    """
    try:
        return TenantRule(environ.get("TENANT_PATTERN", DEFAULT_PATTERN))
    except ValueError as error:
        raise ConfigurationError(f"TENANT_PATTERN: {error}") from error


def signing_keys(environ: Mapping[str, str], name: str) -> tuple[str, ...]:
    """A JSON list of signing keys, newest first; empty where the variable is not set.

    Raises:
        ConfigurationError: it is something else.
    """
    value = environ.get(name)
    if not value:
        return ()
    try:
        keys = json.loads(value)
    except json.JSONDecodeError as error:
        raise ConfigurationError(f'{name} is no JSON: give a list such as ["newest", "older"]') from error
    return key_list(keys, name)


def seconds_left(context: Any) -> float:
    """How long an invocation can still take, in seconds, by the context that its function was given."""
    ask = getattr(context, "get_remaining_time_in_millis", None)
    return LONGEST_SECONDS if ask is None else int(ask()) / 1000


def time_to_answer(left: float) -> float:
    """How long an invocation may work, in seconds, so that it still answers: all but a second, or a tenth if less.

    Args:
        left: how long it can still take; see `seconds_left`.
    """
    return left - min(_MARGIN_SECONDS, left * _MARGIN_SHARE)
