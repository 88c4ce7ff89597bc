"""`GET /local/events`: the events of the local bus as server-sent events, which browsers read by `EventSource`."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Final

import orjson
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from dynashard_local.bus.entity_names import full_name
from dynashard_local.bus.following import Follower, Wanted
from dynashard_local.bus.store import EventStore

PATH: Final = "/local/events"
POLL_SECONDS: Final = 0.2
QUIET_POLLS: Final = 75
"""Polls without an event after which a comment is sent, so that nothing between takes the connection for dead."""
_STREAM: Final = "text/event-stream"
_NUMBER: Final = re.compile("[0-9]{1,18}")
_HEADERS: Final = {"cache-control": "no-store"}
_PARAMETERS: Final = ("tenant_id", "entity", "since")


class EventStream:
    """Streams the events of a store."""

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._naming = asyncio.Lock()

    async def answer(self, request: Request) -> Response:
        """Stream events from now on, or after the number in `Last-Event-ID` or `since`; 0 is the beginning.

        A browser that comes back with a number that is larger than any has it of data that were removed since. It gets
        all events.
        """
        query = request.query_params
        if unknown := [name for name in query if name not in _PARAMETERS]:
            return _refused(unknown[0], f"Unknown parameter; use some of {', '.join(_PARAMETERS)}.")
        seen, last = request.headers.get("last-event-id"), self._store.last
        since = seen or query.get("since") or str(last)
        if _NUMBER.fullmatch(since) is None:
            return _refused("since", "Use the number of an event, or 0 for all.")
        start = 0 if seen and int(seen) > last else int(since)
        entity = query.get("entity")
        try:
            named = None if entity is None else await self._named(entity)
        except LookupError as error:
            return _refused("entity", str(error))
        follower = Follower(self._store, Wanted(query.get("tenant_id"), named), start)
        # The answer to HEAD would not end either.
        lines = iter(()) if request.method == "HEAD" else _lines(follower)
        return StreamingResponse(lines, media_type=_STREAM, headers=_HEADERS)

    async def _named(self, entity: str) -> str:
        # One at a time: an unknown name takes a process, and the threads that wait for these are those of all streams.
        async with self._naming:
            return await asyncio.to_thread(full_name, entity)


async def _lines(follower: Follower) -> AsyncIterator[bytes]:
    quiet = 0
    yield b": events of the local bus\n\n"
    while True:
        found = await asyncio.to_thread(list, follower.new())
        for number, document in found:
            yield b"id: %d\nevent: %s\ndata: %s\n\n" % (
                number,
                document["detail-type"].encode(),
                orjson.dumps(document),
            )
        quiet = 0 if found else quiet + 1
        if quiet == QUIET_POLLS:
            quiet = 0
            yield b": nothing new\n\n"
        await asyncio.sleep(POLL_SECONDS)


def _refused(field: str, message: str) -> Response:
    return JSONResponse({"message": message, "errors": [{"field": field, "message": message}]}, status_code=422)
