"""What the function is told by its environment."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

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
        dead_letter_queue: URL of the queue for changes that cannot be handled; None if they go to a file.
        dead_letter_file: the file that takes its place on the local stack.
        endpoint: URL of DynamoDB, None for the region's own.
    """

    table: str
    topology_table: str
    environment: str = "dev"
    lease: float = 30.0
    dead_letter_queue: str | None = None
    dead_letter_file: Path | None = None
    endpoint: str | None = None

    def __post_init__(self) -> None:
        if not self.lease > 0:
            raise ConfigurationError("TOPOLOGY_LEASE_SECONDS must be above 0")
        if (self.dead_letter_queue is None) == (self.dead_letter_file is None):
            raise ConfigurationError(
                "set either DEAD_LETTER_QUEUE or DEAD_LETTER_FILE: what cannot be handled must be kept somewhere"
            )

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """Read the settings from environment variables.

        Raises:
            ConfigurationError: one is missing or cannot be used; the message names it.
        """
        file = environ.get("DEAD_LETTER_FILE")
        return cls(
            table=required(environ, "TABLE_NAME"),
            topology_table=required(environ, "TOPOLOGY_TABLE"),
            environment=environ.get("ENVIRONMENT", "dev"),
            lease=number(environ, "TOPOLOGY_LEASE_SECONDS", 30.0),
            # On the local stack a file takes the place of the queue that the template names.
            dead_letter_queue=None if file else environ.get("DEAD_LETTER_QUEUE") or None,
            dead_letter_file=Path(file) if file else None,
            endpoint=environ.get("DYNAMODB_ENDPOINT") or None,
        )
