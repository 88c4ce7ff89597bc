"""The two places where the layer replaces private parts of botocore.

Botocore has no public way to send a body unchanged, or to keep an endpoint that cannot change. A test compares the
results of both replacements with those of botocore's own.
"""

from collections.abc import Mapping
from typing import Any, Final

from dynashard.errors import ConfigurationError
from dynashard.transport.wire_format import body_of

_SERIALIZER: Final = "_serializer"
_RESOLVER: Final = "_ruleset_resolver"


def replace_parts(client: Any) -> None:
    """Replace both parts of a new DynamoDB client; raises `ConfigurationError` if this botocore has no such parts."""
    for name in (_SERIALIZER, _RESOLVER):
        if getattr(client, "__dict__", {}).get(name) is None:
            raise ConfigurationError(
                f"This botocore's clients have no {name}: install the version in requirements/sharding.txt."
            )
    setattr(client, _SERIALIZER, WireSerializer(client.meta.service_model.metadata))
    setattr(client, _RESOLVER, FixedEndpoint(getattr(client, _RESOLVER)))


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


class FixedEndpoint:
    """Resolves the endpoint of a client once.

    Botocore evaluates its rules for each request, although without account-id endpoints only the client's settings
    decide.
    """

    def __init__(self, resolver: Any) -> None:
        self._resolver = resolver
        self._resolved: Any = None

    def construct_endpoint(self, operation_model: Any, call_args: Any, request_context: Any) -> Any:
        """Return the endpoint; only the first call evaluates the rules."""
        if self._resolved is None:
            self._resolved = self._resolver.construct_endpoint(
                operation_model=operation_model, call_args=call_args, request_context=request_context
            )
        return self._resolved

    def auth_schemes_to_signing_ctx(self, auth_schemes: Any) -> Any:
        """Return what the endpoint says about signing."""
        return self._resolver.auth_schemes_to_signing_ctx(auth_schemes)
