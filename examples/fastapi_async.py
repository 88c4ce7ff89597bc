"""Readings over HTTP with FastAPI, whose routes are coroutines: no thread waits for DynamoDB.

    pip install "dynashard[async]" fastapi uvicorn
    uvicorn fastapi_async:app

It works where the SDK's own variables lead, as own_tables.py does.
"""

from asyncio import gather
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from dynashard import AsyncCollection, AsyncDynashard, Entity, Key, Shards, connect, new_id
from dynashard.errors import DynashardError

OURS = 500
"""The least status of an error that is not the caller's, whose message is for the log."""


class Reading(
    Entity,
    name="awaited.v1.Reading",
    key=Key(partition="{site}", sort="{id}"),
    shards=Shards(start=4, max=256),
):
    """What a sensor has measured."""

    site: str
    id: str = new_id()
    sensor: str = Field(min_length=1, max_length=100)
    value: float


class Readings(BaseModel):
    """A page. It may be short; only a missing cursor ends the listing."""

    items: list[Reading]
    cursor: str | None


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Open the tables for as long as the process serves."""
    async with AsyncDynashard(
        connect(), table="awaited", topology_table="awaited-topology", cursor_keys=["a secret of 16 bytes or more"]
    ) as db:
        await db.create_tables()
        app.state.readings = db.collection(Reading)
        yield


def readings_of(request: Request) -> AsyncCollection[Reading]:
    """Return the collection that all requests share."""
    readings: AsyncCollection[Reading] = request.app.state.readings
    return readings


app = FastAPI(title="Readings", lifespan=lifespan)
Stored = Annotated[AsyncCollection[Reading], Depends(readings_of)]


@app.post("/readings", status_code=201)
async def create(readings: Stored, reading: Reading) -> Reading:
    """Store a reading. The id may be left out."""
    return await readings.create(reading)


@app.get("/sites/{site}/readings")
async def listing(
    readings: Stored, site: str, limit: Annotated[int, Query(ge=1, le=100)] = 20, cursor: str | None = None
) -> Readings:
    """List a site's readings, the newest first. Send the cursor of a page to get the next one."""
    page = await readings.list(site=site, order="ordered", reverse=True, limit=limit, cursor=cursor)
    return Readings(items=list(page), cursor=page.cursor)


@app.get("/latest")
async def latest(readings: Stored, site: Annotated[list[str], Query(max_length=50)]) -> list[Reading | None]:
    """Return the newest reading of each of several sites, which are read at the same time."""

    async def newest(of: str) -> Reading | None:
        async for reading in readings.list(site=of, order="ordered", reverse=True, limit=1):
            return reading
        return None

    return await gather(*map(newest, site))


@app.exception_handler(DynashardError)
async def refused(_: Request, error: DynashardError) -> JSONResponse:
    """Map the whole tree of errors in one place: each has a status, a code, and a message for callers."""
    ours = error.status >= OURS and not error.retryable
    problem = {"status": error.status, "code": error.code, "detail": "Internal error." if ours else error.message}
    headers = {"Retry-After": "1"} if error.retryable else {}
    return JSONResponse(problem, error.status, headers, "application/problem+json")
