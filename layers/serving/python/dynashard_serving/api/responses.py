"""What a route answers."""

from collections.abc import Mapping
from typing import Final, Generic, TypeVar

JSON: Final = "application/json"
UNDECODABLE: Final = "Undecodable-Items"
"""The header with the number of stored items that a page leaves out; absent if there are none."""
Body = TypeVar("Body", bound=str | bytes)


class Response(Generic[Body]):
    """An answer.

    Attributes:
        status_code: HTTP's.
        content_type: the media type of the body; None if there is no body.
        body: text or bytes.
        headers: by name, the content type included.
        items: how many items a page has, for the metrics; None for any other answer.
    """

    items: int | None = None

    def __init__(
        self,
        status_code: int,
        content_type: str | None = None,
        body: Body | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status_code = int(status_code)
        self.content_type = content_type
        self.body = body
        self.headers = dict(headers or {})
        if content_type:
            self.headers.setdefault("Content-Type", content_type)
