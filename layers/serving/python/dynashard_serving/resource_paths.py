"""Which paths resources may have."""

from collections import Counter
from collections.abc import Sequence

from dynashard.errors import ConfigurationError

RESERVED = frozenset({"health", "docs"})


def refuse_paths(paths: Sequence[str]) -> None:
    """Raise `ConfigurationError` for a path that is invalid or used twice."""
    for path, times in Counter(paths).items():
        if not path.replace("-", "").isalnum() or not path.isascii():
            raise ConfigurationError(f"/{path} cannot be a resource: use ASCII letters, digits and - only")
        if path in RESERVED:
            raise ConfigurationError(f"/{path} cannot be a resource: the API itself answers there; choose another path")
        if times > 1:
            raise ConfigurationError(f"/{path} cannot be a resource {times} times: give each entity a path of its own")
