"""What the engine answers instead of a result."""

from typing import Any, Final

from dynashard.transport.interface import Wire

_NAMESPACE: Final = "com.amazonaws.dynamodb.v20120810#"
_FAILED: Final = "The conditional request failed"


class RefusedError(Exception):
    """A refused request, with the body of DynamoDB's answer, whose HTTP status is 400."""

    def __init__(self, code: str, message: str, **more: Any) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.body: Wire = {"__type": _NAMESPACE + code, "message": message, **more}


def invalid(message: str) -> RefusedError:
    """Return the refusal of a request that is wrong, or that this engine does not know."""
    return RefusedError("ValidationException", message)


def condition_failed(item: Wire | None) -> RefusedError:
    """Return the refusal of a write whose condition does not hold, with the stored item if it was asked for."""
    more = {} if item is None else {"Item": item}
    return RefusedError("ConditionalCheckFailedException", _FAILED, **more)
