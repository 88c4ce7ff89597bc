"""The one place where the layer replaces a private part of botocore.

Botocore has no public way to send a body unchanged. A test compares the result with that of botocore's own part.
"""

from collections.abc import Mapping
from typing import Any, Final

from dynashard.errors import ConfigurationError
from dynashard.transport.wire_format import body_of

_SERIALIZER: Final = "_serializer"


def replace_serializer(client: Any) -> None:
    """Replace the part of a new DynamoDB client; raises `ConfigurationError` if this botocore has no such part."""
    if getattr(client, "__dict__", {}).get(_SERIALIZER) is None:
        raise ConfigurationError(
            f"This botocore's clients have no {_SERIALIZER}: install the version in requirements/sharding.txt."
        )
    setattr(client, _SERIALIZER, WireSerializer(client.meta.service_model.metadata))


class WireSerializer:
    """Sends a request's mapping unchanged: it is DynamoDB JSON already."""

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        self._content_type = f"application/x-amz-json-{metadata['jsonVersion']}"
        self._prefix = metadata["targetPrefix"]

    def serialize_to_request(self, parameters: Mapping[str, Any], operation_model: Any) -> dict[str, Any]:
        """Return the request to sign and send; raises `InvalidValueError` if JSON cannot express a value of it."""
        return {
            "url_path": "/",
            "query_string": "",
            "method": "POST",
            "headers": {"X-Amz-Target": f"{self._prefix}.{operation_model.name}", "Content-Type": self._content_type},
            "body": body_of(operation_model.name, parameters),
        }
