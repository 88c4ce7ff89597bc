"""The release of all distributions of this repository; a test holds each pyproject.toml against it."""

from typing import Final

VERSION: Final = "0.1.0"
