"""What the function is told by its environment."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from dynashard.errors import ConfigurationError
from dynashard.hosting.environment import number, required


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the function, read once.

    Attributes:
        table: name of the table of items.
        topology_table: name of the table of shard counts.
        environment: `dev`, `prod` or `local`; a dimension of the metrics.
        lease: how long a view of the shard counts may be used, in seconds.
        dead_letter_queue: URL of the queue for changes that cannot be handled.
        growth_mode, growth_cooldown_seconds, growth_quiet_seconds: as of `ServingSettings`.
        endpoint: URL of DynamoDB, None for the region's own.
    """

    table: str
    topology_table: str
    dead_letter_queue: str
    environment: str = "dev"
    lease: float = 30.0
    growth_mode: Literal["on", "dry_run", "off"] = "on"
    growth_cooldown_seconds: float = 300.0
    growth_quiet_seconds: float = 86_400.0
    endpoint: str | None = None

    def __post_init__(self) -> None:
        if not self.lease > 0:
            raise ConfigurationError("TOPOLOGY_LEASE_SECONDS must be above 0")

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """Read the settings from environment variables.

        Raises:
            ConfigurationError: one is missing or cannot be used; the message names it.
        """
        mode: Any = environ.get("GROWTH_MODE", "on")
        return cls(
            table=required(environ, "TABLE_NAME"),
            topology_table=required(environ, "TOPOLOGY_TABLE"),
            environment=environ.get("ENVIRONMENT", "dev"),
            lease=number(environ, "TOPOLOGY_LEASE_SECONDS", 30.0),
            growth_mode=mode,
            growth_cooldown_seconds=number(environ, "GROWTH_COOLDOWN_SECONDS", 300.0),
            growth_quiet_seconds=number(environ, "GROWTH_QUIET_SECONDS", 86_400.0),
            dead_letter_queue=required(environ, "DEAD_LETTER_QUEUE"),
            endpoint=environ.get("DYNAMODB_ENDPOINT") or None,
        )
