"""Commands to try on the local API, made from its own description: those of its first resource that has an example."""

import json
import shlex
from collections.abc import Mapping
from typing import Any, Final

from dynashard_local.gateway.description import Description

_JSON: Final = "application/json"
_PLACEHOLDER: Final = '"example"'
"""What stands in an example for a text without one of its own."""


async def first_steps(description: Description, url: str) -> str:
    """Return shell commands that sign in, create an item and list it, for a stack at this URL.

    They are those of the health check if the API cannot describe itself, or creates nothing. Cost: as
    `Description.document`.
    """
    return commands_of(await description.document(), url)


def commands_of(document: Mapping[str, Any], url: str) -> str:
    """Return the commands for an OpenAPI document."""
    created = [
        (path, _example(document, methods["post"]))
        for path, methods in document.get("paths", {}).items()
        if "get" in methods and _JSON in methods.get("post", {}).get("requestBody", {}).get("content", {})
    ]
    if not created:
        return f"  curl {url}/v1/health"
    # The first one whose example says the most.
    path, example = min(created, key=lambda each: each[1].count(_PLACEHOLDER))
    signed = '-H "Authorization: Bearer $TOKEN"'
    return (
        f"""  TOKEN=$(curl -s {url}/local/tokens -d '{{"tenant_id": "abc"}}' """
        rf"""| sed 's/.*"token":"\([^"]*\)".*/\1/')"""
        f"\n  curl {url}{path} {signed} -H 'Content-Type: {_JSON}' \\\n       -d {shlex.quote(example)}"
        f"\n  curl {url}{path} {signed}"
    )


def _example(document: Mapping[str, Any], operation: Mapping[str, Any]) -> str:
    """Return the required fields of an operation's example as JSON, so that a second create makes another item."""
    content = operation["requestBody"]["content"][_JSON]
    name, example = content["schema"].get("$ref", "").rpartition("/")[2], content.get("example", {})
    required = document["components"]["schemas"].get(name, {}).get("required", example)
    return json.dumps({field: value for field, value in example.items() if field in required})
