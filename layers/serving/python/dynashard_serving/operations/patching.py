"""Patches of both kinds, which differ in their JSON: a merge patch (RFC 7396) is an object, a JSON Patch a list.

What applies a JSON Patch is loaded by the first one.
"""

from collections.abc import Collection
from typing import Any

from dynashard_serving.documents import Document, patched, patched_fields
from dynashard_serving.operations.served import Served

Patch = Document | list[Any]


def fields_named(patch: Patch) -> Collection[str]:
    """Return the fields that a patch changes, or may change."""
    if isinstance(patch, dict):
        return patch.keys()
    from dynashard_serving.operations import json_patches  # noqa: PLC0415

    return json_patches.changed(patch)


def attachments_read(served: Served, patch: Patch) -> tuple[str, ...]:
    """Return the attachments that a patch can only be applied with if they are read."""
    if isinstance(patch, dict):
        return patched_fields(served.entity, patch)
    from dynashard_serving.operations import json_patches  # noqa: PLC0415

    named = json_patches.named(patch)
    return tuple(name for name in served.definition.attachments if name in named)


def refuse_malformed(served: Served, patch: list[Any]) -> None:
    """Refuse a JSON Patch that is wrong whatever the item is; see `json_patches.refuse_malformed`."""
    from dynashard_serving.operations import json_patches  # noqa: PLC0415

    json_patches.refuse_malformed(patch, served.server_fields)


def document_after(served: Served, before: Document, patch: Patch) -> Document:
    """Return the document of an item after a patch, with the attachments that it removes as None.

    Raises:
        PatchConflictError, ValidationFailedError: a JSON Patch does not fit the item, or would make it too large.
    """
    if isinstance(patch, dict):
        return patched(served.entity, before, patch)
    from dynashard_serving.operations import json_patches  # noqa: PLC0415

    attachments = served.definition.attachments
    more = sum(each.max_bytes for each in attachments.values())
    after = json_patches.patched(before, patch, more_bytes=more)
    removed = {name: None for name in attachments if name in before and name not in after}
    return {**after, **removed}
