"""Calls of the API that tests of incidents share."""

from typing import Any

from tests.api_caller import Caller


def incident(caller: Caller, name: str, **fields: Any) -> dict[str, Any]:
    """Create an incident, and return it as answered."""
    made = caller.post("/v1/incidents", {"id": name, "title": "Errors", **fields})
    assert made.status == 201, made.json
    return dict(made.json)
