"""What the function is told by its environment."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

from dynashard.errors import ConfigurationError
from dynashard.hosting.environment import number, required

QUEUE_URLS: Final = ("QUEUE_URL", "OPERATIONS_QUEUE_URL")
"""What is only added, in any order; and what somebody waits for, in order for each item."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the writer, read once.

    Attributes:
        table: name of the table of items.
        topology_table: name of the table of shard counts.
        queues: URLs of the queues by their names.
        dead_letters: URLs of their dead-letter queues by the same names.
        environment: `dev`, `prod` or `local`; a dimension of the metrics.
        lease: how long a view of the shard counts may be used, in seconds.
        lanes: writes at a time.
        growth_mode, growth_cooldown_seconds, growth_quiet_seconds: as of `ServingSettings`.
        endpoint: URL of DynamoDB, None for the region's own.
    """

    table: str
    topology_table: str
    queues: Mapping[str, str]
    dead_letters: Mapping[str, str]
    environment: str = "dev"
    lease: float = 30.0
    lanes: int = 16
    growth_mode: Literal["on", "dry_run", "off"] = "on"
    growth_cooldown_seconds: float = 300.0
    growth_quiet_seconds: float = 86_400.0
    endpoint: str | None = None

    def __post_init__(self) -> None:
        if self.lease <= 0 or self.lanes < 1:
            raise ConfigurationError("TOPOLOGY_LEASE_SECONDS must be above 0, and LANES at least 1")

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """Read the settings from environment variables.

        Raises:
            ConfigurationError: one is missing or cannot be used; the message names it.
        """
        pairs = [
            (required(environ, name), required(environ, f"{name.removesuffix('_URL')}_DEAD_LETTERS_URL"))
            for name in QUEUE_URLS
        ]
        mode: Any = environ.get("GROWTH_MODE", "on")
        return cls(
            table=required(environ, "TABLE_NAME"),
            topology_table=required(environ, "TOPOLOGY_TABLE"),
            queues={queue_name(url): url for url, _ in pairs},
            dead_letters={queue_name(url): dead for url, dead in pairs},
            environment=environ.get("ENVIRONMENT", "dev"),
            lease=number(environ, "TOPOLOGY_LEASE_SECONDS", 30.0),
            lanes=int(number(environ, "LANES", 16)),
            growth_mode=mode,
            growth_cooldown_seconds=number(environ, "GROWTH_COOLDOWN_SECONDS", 300.0),
            growth_quiet_seconds=number(environ, "GROWTH_QUIET_SECONDS", 86_400.0),
            endpoint=environ.get("DYNAMODB_ENDPOINT") or None,
        )


def queue_name(url: str) -> str:
    """The name of the queue with this URL, which is also how its ARN ends."""
    return url.rpartition("/")[2]
