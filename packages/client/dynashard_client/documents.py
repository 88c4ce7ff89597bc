"""Items as JSON documents: the names that the backend gives their parts, and how they are written."""

from typing import Any, Final

from pydantic_core import to_json

REVISION: Final = "revision"
"""Name of the revision inside a document; read-only."""
TENANT: Final = "tenant_id"
"""The field with the tenant, whose value comes from the caller's identity."""
MAX_SORT_KEY_BYTES: Final = 1024
"""The most bytes of a sort key."""

Document = dict[str, Any]


def written(document: Any) -> str:
    """Return a document as JSON text."""
    return to_json(document).decode()
