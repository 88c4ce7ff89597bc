"""Settings of functions, read once from their environment variables."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from math import isfinite
from typing import Annotated, Any, Final, Self

from msgspec import Struct
from msgspec.structs import fields

from dynashard.cursor_keys import key_list
from dynashard.errors import ConfigurationError
from dynashard.growth.settings import DEFAULTS, GrowthMode, GrowthSettings
from dynashard.key_clock import DEFAULT_BOUNDS, ClockBounds
from dynashard.transport.deadline import LONGEST_OPERATION
from dynashard.transport.selection import DEFAULT, TransportName, transport_name
from dynashard_serving.limits import MAX_QUERIES
from dynashard_serving.tenants import DEFAULT_PATTERN, DEFAULT_TENANTS, TenantRule

ENVIRONMENTS: Final = ("dev", "prod", "local")


def required(environ: Mapping[str, str], name: str) -> str:
    """Return a variable that has no default.

    Raises:
        ConfigurationError: it is not set.
    """
    value = environ.get(name)
    if not value:
        raise ConfigurationError(f"{name} is not set: the function cannot start without it")
    return value


class Variable(Struct, frozen=True):
    """The environment variable of a field of settings: `Annotated[str, Variable("NAME")]`."""

    name: str
    read: Callable[[str, str], Any] = lambda _, text: text


def values_of(settings: type[Struct], environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of a structure's fields that name a `Variable`. Those that are not set keep their defaults.

    Raises:
        ConfigurationError: a variable without a default is not set, or one is unusable; the message names it.
    """
    values = {}
    for field in fields(settings):
        for variable in getattr(field.type, "__metadata__", ()):
            if field.required:
                required(environ, variable.name)
            if (text := environ.get(variable.name)) is not None:
                values[field.name] = variable.read(variable.name, text)
    return values


def number(name: str, text: str) -> float:
    """Read a number.

    Raises:
        ConfigurationError: the text is not a finite number.
    """
    with suppress(ValueError):
        if isfinite(value := float(text)):
            return value
    raise ConfigurationError(f"{name} is {text!r}: give a number")


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


class TableSettings(Struct, frozen=True, kw_only=True, eq=False):
    """Settings of a function that reads and writes items, read once.

    Attributes:
        table: name of the table of items.
        topology_table: name of the table of shard counts.
        environment: `dev`, `prod` or `local`: its purpose.
        environment_name: the name of the environment in `cdk.json`; empty if nothing names it.
        topology_lease_seconds: how long a view of the shard counts may be used.
        topology_operation_seconds: how long one request to the table may take, retries included: changes of shard
            counts wait for that long between their phases.
        topology_clock_seconds: how far a clock may be off, where counts depend on the time of keys. A process whose
            clock is further off writes no such items.
        topology_ahead_seconds: how far the time of a key that is written may be ahead of the writer's clock.
        growth_mode: whether shard counts grow by themselves: `on`, `dry_run` (only reported) or `off`.
        growth_cooldown_seconds: how long a count is left alone after it changed.
        growth_quiet_seconds: how long a count must be unchanged before it shrinks; not below the cooldown.
        growth_most_minutes: how long a resize may be expected to take that starts by itself and moves items.
        growth_mover_share: the part of each shard's units that moving items may take.
        endpoint: URL of DynamoDB, None for the region's own.
        transport: what signs and sends requests to DynamoDB: `botocore` or `direct`.
        log_item_keys: whether log lines name items and callers.
        trace_calls: whether calls of DynamoDB are reported to X-Ray.
    """

    table: Annotated[str, Variable("TABLE_NAME")]
    topology_table: Annotated[str, Variable("TOPOLOGY_TABLE")]
    environment: Annotated[str, Variable("ENVIRONMENT")] = "dev"
    environment_name: Annotated[str, Variable("ENVIRONMENT_NAME")] = ""
    topology_lease_seconds: Annotated[float, Variable("TOPOLOGY_LEASE_SECONDS", number)] = 30.0
    topology_operation_seconds: Annotated[float, Variable("TOPOLOGY_OPERATION_SECONDS", number)] = LONGEST_OPERATION
    topology_clock_seconds: Annotated[float, Variable("TOPOLOGY_CLOCK_SECONDS", number)] = DEFAULT_BOUNDS.off
    topology_ahead_seconds: Annotated[float, Variable("TOPOLOGY_AHEAD_SECONDS", number)] = DEFAULT_BOUNDS.ahead
    growth_mode: Annotated[GrowthMode, Variable("GROWTH_MODE")] = DEFAULTS.mode
    growth_cooldown_seconds: Annotated[float, Variable("GROWTH_COOLDOWN_SECONDS", number)] = DEFAULTS.cooldown_seconds
    growth_quiet_seconds: Annotated[float, Variable("GROWTH_QUIET_SECONDS", number)] = DEFAULTS.quiet_seconds
    growth_most_minutes: Annotated[float, Variable("GROWTH_MOST_MINUTES", number)] = DEFAULTS.most_minutes
    growth_mover_share: Annotated[float, Variable("GROWTH_MOVER_SHARE", number)] = DEFAULTS.mover_share
    endpoint: Annotated[str | None, Variable("DYNAMODB_ENDPOINT", optional)] = None
    transport: Annotated[TransportName, Variable("TRANSPORT")] = DEFAULT
    log_item_keys: Annotated[bool, Variable("LOG_ITEM_KEYS", flag)] = True
    trace_calls: Annotated[bool, Variable("TRACE_CALLS", flag)] = False

    # Some settings are secrets: no settings are shown.
    __repr__ = object.__repr__

    def __post_init__(self) -> None:
        transport_name(self.transport)
        if self.environment not in ENVIRONMENTS:
            raise ConfigurationError(f"ENVIRONMENT is {self.environment!r}: use {', '.join(ENVIRONMENTS)}")
        if not self.topology_lease_seconds > 0:
            raise ConfigurationError("TOPOLOGY_LEASE_SECONDS must be above 0")
        if not self.topology_operation_seconds > 0:
            raise ConfigurationError("TOPOLOGY_OPERATION_SECONDS must be above 0: no request could be sent")
        if min(self.topology_clock_seconds, self.topology_ahead_seconds) < 0:
            raise ConfigurationError("TOPOLOGY_CLOCK_SECONDS and TOPOLOGY_AHEAD_SECONDS must not be below 0")
        try:
            _ = self.growth
        except ConfigurationError as error:
            # The library names its settings as its own callers write them, such as `mover_share`.
            of_growth = [each for each in self.__struct_fields__ if each.startswith("growth_")]
            named = [each.upper() for each in of_growth if each.removeprefix("growth_") in str(error)]
            raise ConfigurationError(f"{' and '.join(named)}: {error}") from error

    @property
    def measured_as(self) -> str:
        """The environment in the dimension of metrics, which environments of one purpose do not share."""
        return self.environment_name or self.environment

    @property
    def clocks(self) -> ClockBounds:
        """What all processes assume about clocks and keys."""
        return ClockBounds(off=self.topology_clock_seconds, ahead=self.topology_ahead_seconds)

    @property
    def growth(self) -> GrowthSettings:
        """How shard counts change by themselves."""
        return GrowthSettings(
            self.growth_mode,
            self.growth_cooldown_seconds,
            self.growth_quiet_seconds,
            most_minutes=self.growth_most_minutes,
            mover_share=self.growth_mover_share,
            environment="" if self.environment == "local" else self.measured_as,
        )

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """Read the settings from environment variables.

        Raises:
            ConfigurationError: one is missing or cannot be used; the message names it.
        """
        return cls(**cls.values_from(environ))

    @classmethod
    def values_from(cls, environ: Mapping[str, str]) -> dict[str, Any]:
        """Return the values of the fields; see `values_of`."""
        return values_of(cls, environ)


class ServingSettings(TableSettings, frozen=True, kw_only=True):
    """Settings of a function that serves items to callers.

    Attributes:
        idempotency_table: name of the table of idempotency records.
        cursor_keys: keys that sign cursors, newest first; empty if they are in Secrets Manager.
        cursor_secret_arn: the secret `{"keys": [...]}`, newest first.
        tenants: which texts are tenants.
        max_queries: the most Queries that one request may send.
        caller_required: whether a direct invocation is refused that does not say for whom it asks.
    """

    idempotency_table: Annotated[str, Variable("IDEMPOTENCY_TABLE")]
    cursor_keys: Annotated[tuple[str, ...], Variable("CURSOR_KEYS", signing_keys)] = ()
    cursor_secret_arn: Annotated[str | None, Variable("CURSOR_SECRET_ARN", optional)] = None
    tenants: Annotated[TenantRule, Variable("TENANT_PATTERN", pattern)] = DEFAULT_TENANTS
    max_queries: Annotated[int, Variable("MAX_QUERIES_PER_REQUEST", whole_number)] = MAX_QUERIES
    caller_required: Annotated[bool, Variable("CALLER_REQUIRED", flag)] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if bool(self.cursor_keys) == bool(self.cursor_secret_arn):
            raise ConfigurationError("Set either CURSOR_KEYS or CURSOR_SECRET_ARN: cursors must be signed")
        if self.max_queries < 1:
            raise ConfigurationError(f"MAX_QUERIES_PER_REQUEST is {self.max_queries}; it must be at least 1")
