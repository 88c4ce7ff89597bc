"""The two places where the layer reaches behind botocore's public face.

Botocore has no public way to send a body as it is, or to keep an endpoint that cannot change. Both parts are
replaced on the client that was just built, here and nowhere else; `replace_parts` refuses a botocore in which
they are gone, and a test compares what each part answers with what botocore's own would have.
"""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from dynashard.errors import ConfigurationError, InvalidValueError

_SERIALIZER: Final = "_serializer"
_RESOLVER: Final = "_ruleset_resolver"


def replace_parts(client: Any) -> None:
    """Give a new DynamoDB client the lean serialiser and an endpoint resolved once.

    Raises:
        ConfigurationError: this botocore has no such parts.
    """
    for name in (_SERIALIZER, _RESOLVER):
        if getattr(client, "__dict__", {}).get(name) is None:
            raise ConfigurationError(
                f"This botocore's clients have no {name}: install the version in requirements/sharding.txt."
            )
    setattr(client, _SERIALIZER, WireSerializer(client.meta.service_model.metadata))
    setattr(client, _RESOLVER, FixedEndpoint(getattr(client, _RESOLVER)))


class WireSerializer:
    """Sends a request's mapping as it is: it is DynamoDB's JSON already."""

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        self._content_type = f"application/x-amz-json-{metadata['jsonVersion']}"
        self._prefix = metadata["targetPrefix"]

    def serialize_to_request(self, parameters: Mapping[str, Any], operation_model: Any) -> dict[str, Any]:
        """Build what botocore sends.

        Raises:
            InvalidValueError: the mapping holds something that JSON cannot say.
        """
        try:
            body = orjson.dumps(parameters)
        except TypeError as error:
            raise InvalidValueError(
                f"The request is no DynamoDB JSON ({error}): encode its values with dynashard.codec."
            ) from error
        return {
            "url_path": "/",
            "query_string": "",
            "method": "POST",
            "headers": {"X-Amz-Target": f"{self._prefix}.{operation_model.name}", "Content-Type": self._content_type},
            "body": body,
        }


class FixedEndpoint:
    """Remembers the one endpoint a client has.

    With account-id endpoints off, DynamoDB's rules depend on the client's settings alone; botocore would
    evaluate them again for each request.
    """

    def __init__(self, resolver: Any) -> None:
        self._resolver = resolver
        self._resolved: Any = None

    def construct_endpoint(self, operation_model: Any, call_args: Any, request_context: Any) -> Any:
        """Botocore asks once a request; only the first question is answered by the rules."""
        if self._resolved is None:
            self._resolved = self._resolver.construct_endpoint(
                operation_model=operation_model, call_args=call_args, request_context=request_context
            )
        return self._resolved

    def auth_schemes_to_signing_ctx(self, auth_schemes: Any) -> Any:
        """Botocore asks where an endpoint says how to sign."""
        return self._resolver.auth_schemes_to_signing_ctx(auth_schemes)
