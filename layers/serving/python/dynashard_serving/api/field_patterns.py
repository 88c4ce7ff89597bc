"""Patterns of the texts that keys and URLs can carry."""

from typing import Any

from dynashard.entity import EntityDefinition
from dynashard_serving.api.resource import Resource

_SPECIAL = frozenset("\\]^-")


def refused_by_keys(definition: EntityDefinition[Any], name: str) -> str:
    """Return the characters that no key can carry in a field, in the manner of a class of a regular expression.

    Key templates also refuse longer texts that end a field, which a class cannot express.
    """
    indexed = (field for index in definition.indexes.values() for field in index.partition.fields)
    refused = {":"} if name in {*definition.partition_fields, *indexed} else set()
    if name in definition.sort_fields:
        parts = [part for part in definition.sort.parts if not isinstance(part, str) and part.name == name]
        around = {text for part in parts for text in (part.after, part.before)}
        refused |= definition.sort.reserved | {text for text in around if len(text) == 1}
    return "".join(f"\\{each}" if each in _SPECIAL else each for each in sorted(refused))


def refused_by_address(resource: Resource, name: str) -> str:
    """Return the characters that no URL can carry in a field of the address: see `acceptance.refuse_unaddressable`."""
    if name not in resource.path_fields:
        return ""
    return ("?" if name == resource.path_fields[-1] else "?/") + r"\x00-\x1f\x7f-\x9f"


def without(refused: str) -> str:
    """Return the pattern of texts without these characters."""
    return f"^[^{refused}]*$"
