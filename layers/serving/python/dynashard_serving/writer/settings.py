"""The settings of the function."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from dynashard.errors import ConfigurationError
from dynashard_serving.settings import TableSettings, Variable, pattern, required, values_of, whole_number
from dynashard_serving.tenants import DEFAULT_TENANTS, TenantRule

QUEUE_URLS: Final = ("QUEUE_URL", "OPERATIONS_QUEUE_URL")
"""The queue of new items, in any order; and that of writes that callers wait for, in order for each item."""


class Settings(TableSettings, frozen=True, kw_only=True):
    """Settings of the writer, read once.

    Attributes:
        queues: URLs of the queues by their names.
        dead_letters: URLs of their dead-letter queues by the same names.
        workers: writes at a time.
        tenants: which texts are tenants.
    """

    queues: Mapping[str, str]
    dead_letters: Mapping[str, str]
    workers: Annotated[int, Variable("LANES", whole_number)] = 16
    tenants: Annotated[TenantRule, Variable("TENANT_PATTERN", pattern)] = DEFAULT_TENANTS

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.workers < 1:
            raise ConfigurationError("LANES: use at least 1")

    @classmethod
    def values_from(cls, environ: Mapping[str, str]) -> dict[str, Any]:
        """As of `TableSettings`, and the queues, each by its name."""
        pairs = [
            (required(environ, name), required(environ, f"{name.removesuffix('_URL')}_DEAD_LETTERS_URL"))
            for name in QUEUE_URLS
        ]
        return {
            **values_of(cls, environ),
            "queues": {queue_name(url): url for url, _ in pairs},
            "dead_letters": {queue_name(url): dead for url, dead in pairs},
        }


def queue_name(url: str) -> str:
    """The name of the queue with this URL, which is also how its ARN ends."""
    return url.rpartition("/")[2]
