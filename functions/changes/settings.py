"""What the function is told by its environment."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dynashard_serving.environment import required
from dynashard_serving.settings import TableSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(TableSettings):
    """Settings of the function, read once.

    Attributes:
        dead_letter_queue: URL of the queue for changes that cannot be handled.
    """

    dead_letter_queue: str

    @classmethod
    def values_from(cls, environ: Mapping[str, str]) -> dict[str, Any]:
        """As of `TableSettings`, and the one that this adds."""
        return {**TableSettings.values_from(environ), "dead_letter_queue": required(environ, "DEAD_LETTER_QUEUE")}
