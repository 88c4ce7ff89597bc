"""The REST API: one Lambda function behind an HTTP API."""

from typing import Final

VERSION: Final = "0.1.0"
"""Version of the API, in its OpenAPI document and at `/v1/health`."""
