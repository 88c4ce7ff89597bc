"""What the functions are told by their environment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from dynashard.errors import ConfigurationError
from dynashard.hosting.environment import number, required
from dynashard.resharding.growth import GrowthSettings

DEFAULT_CONCURRENCY: Final = 8


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the functions that change shard counts, read once.

    Attributes:
        table: name of the table of items.
        topology_table: name of the table of shard counts.
        environment: `dev`, `prod` or `local`; a dimension of the metrics.
        lease: how long a view of the shard counts may be used, in seconds.
        operation: the longest that an operation of the API may take, in seconds.
        skew: how far two clocks may be apart, in seconds.
        concurrency: tasks of one change that are worked on at once.
        slice_seconds: how long a function works on a task before it hands over to the next.
        growth: how counts shrink by themselves.
        endpoint: URL of DynamoDB, None for the region's own.
    """

    table: str
    topology_table: str
    environment: str = "dev"
    lease: float = 30.0
    operation: float = 30.0
    skew: float = 1.0
    concurrency: int = DEFAULT_CONCURRENCY
    slice_seconds: float = 240.0
    growth: GrowthSettings = field(default_factory=GrowthSettings)
    endpoint: str | None = None

    def __post_init__(self) -> None:
        if self.lease <= 0:
            raise ConfigurationError("TOPOLOGY_LEASE_SECONDS must be above 0")
        if self.operation < 0 or self.skew < 0:
            raise ConfigurationError("TOPOLOGY_OPERATION_SECONDS and TOPOLOGY_SKEW_SECONDS must not be below 0")
        if self.concurrency < 1 or self.slice_seconds <= 0:
            raise ConfigurationError("CONCURRENCY must be at least 1, and SLICE_SECONDS above 0")

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """Read the settings from environment variables.

        Raises:
            ConfigurationError: one is missing or cannot be used; the message names it.
        """
        return cls(
            table=required(environ, "TABLE_NAME"),
            topology_table=required(environ, "TOPOLOGY_TABLE"),
            environment=environ.get("ENVIRONMENT", "dev"),
            lease=number(environ, "TOPOLOGY_LEASE_SECONDS", 30.0),
            operation=number(environ, "TOPOLOGY_OPERATION_SECONDS", 30.0),
            skew=number(environ, "TOPOLOGY_SKEW_SECONDS", 1.0),
            concurrency=int(number(environ, "CONCURRENCY", DEFAULT_CONCURRENCY)),
            slice_seconds=number(environ, "SLICE_SECONDS", 240.0),
            growth=growth_from(environ),
            endpoint=environ.get("DYNAMODB_ENDPOINT") or None,
        )


def growth_from(environ: Mapping[str, str]) -> GrowthSettings:
    """How counts change by themselves, from environment variables.

    Raises:
        ConfigurationError: one cannot be used; the message names it.
    """
    # What else the mode could be is refused by the settings themselves.
    mode: Any = environ.get("GROWTH_MODE", "on")
    return GrowthSettings(
        mode,
        number(environ, "GROWTH_COOLDOWN_SECONDS", 300.0),
        number(environ, "GROWTH_QUIET_SECONDS", 86_400.0),
    )
