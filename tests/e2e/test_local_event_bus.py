"""Events of the local stack, end to end: a write over REST, server-sent events, and the command line."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.e2e.local_process import LocalProcess

pytestmark = pytest.mark.e2e


def streamed(stack: LocalProcess, query: dict[str, str], headers: dict[str, str]) -> Iterator[tuple[int, Any]]:
    """Yield events with their numbers, as a browser reads them."""
    with httpx.stream("GET", f"{stack.url}/local/events", params=query, headers=headers, timeout=60) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        number = 0
        for line in answer.iter_lines():
            name, _, value = line.partition(": ")
            if name == "id":
                number = int(value)
            elif name == "data":
                yield number, json.loads(value)


def test_what_is_written_over_rest_is_followed_by_others(local_stack: LocalProcess) -> None:
    api = local_stack.client("events")
    query = {"tenant_id": "events", "since": "0"}

    made = api.post("/v1/incidents", json={"id": "i1", "title": "Down"}).json()
    closed = api.patch("/v1/incidents/i1", json={"state": "CLOSED"}).json()
    assert api.delete("/v1/incidents/i1").status_code == 204
    api.post("/v1/users", json={"id": "u1", "email": "u@x.org", "display_name": "U"})

    events = streamed(local_stack, query, {})
    found = [next(events) for _ in range(3)]
    assert [(each["detail"]["revision"], each["detail"]["previous"]) for _, each in found] == [
        (made["revision"], None),
        (closed["revision"], made["revision"]),
        (None, closed["revision"]),
    ]
    assert [each["detail-type"].split()[1] for _, each in found] == ["created", "updated", "deleted"]
    assert found[1][1]["detail"]["after"]["state"] == "CLOSED"

    # A browser that connects again names the last event that it has seen.
    again = streamed(local_stack, query, {"last-event-id": str(found[1][0])})
    assert next(again) == found[2]


def test_a_mistyped_parameter_of_the_stream_is_refused(local_stack: LocalProcess) -> None:
    answer = local_stack.client(None).get("/local/events", params={"tenant": "abc"})

    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "tenant")
    assert local_stack.client(None).get("/local/events", params={"since": "x"}).status_code == 422
