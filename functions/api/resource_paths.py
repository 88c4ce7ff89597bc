"""Which paths resources may have."""

from collections import Counter
from collections.abc import Sequence

from dynashard.errors import ConfigurationError

RESERVED = frozenset({"health", "docs", "openapi.json"})


def refuse_paths(paths: Sequence[str]) -> None:
    """Raise `ConfigurationError` for a path that is invalid or used twice."""
    for path, times in Counter(paths).items():
        if times > 1 or path in RESERVED or not path.replace("-", "").isalnum() or not path.isascii():
            raise ConfigurationError(
                f"/{path} cannot be a resource: a path is ASCII letters, digits and -, belongs to one entity, "
                f"and is none of {', '.join(sorted(RESERVED))}"
            )
