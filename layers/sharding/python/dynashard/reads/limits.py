"""How much one call may list."""

from typing import Final

MAX_LIMIT: Final = 1000
DEFAULT_LIMIT: Final = 50
MAX_PARTITIONS: Final = 100
"""Logical partitions of one listing."""
