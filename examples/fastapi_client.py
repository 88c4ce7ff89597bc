"""A service of another team, with FastAPI: it answers from a Dynashard backend, whose client its requests share.

pip install "dynashard-client[async]" fastapi uvicorn
BACKEND_URL=http://127.0.0.1:8000 BACKEND_TOKEN=... uvicorn fastapi_client:app
"""

import os
from asyncio import gather
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, Query, Request
from fastapi.responses import JSONResponse

from dynashard_client import AsyncClient, AsyncItems, DynashardError, Item


class User(Item, path="users"):
    """The fields of a user that this service uses."""

    id: str | None = None
    email: str
    display_name: str


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Keep one client for as long as the process serves."""
    async with AsyncClient.rest(os.environ["BACKEND_URL"], token=lambda: os.environ["BACKEND_TOKEN"]) as client:
        app.state.users = client.collection(User)
        yield


def users_of(request: Request) -> AsyncItems[User]:
    """Return the users, which all requests share."""
    users: AsyncItems[User] = request.app.state.users
    return users


app = FastAPI(title="Names", lifespan=lifespan)
Users = Annotated[AsyncItems[User], Depends(users_of)]


@app.get("/names/{user_id}")
async def name(users: Users, user_id: str) -> str:
    """Return the name of one user."""
    return (await users.get(user_id)).display_name


@app.get("/names")
async def names(users: Users, user_id: Annotated[list[str], Query(max_length=50)]) -> list[str | None]:
    """Return the names of several users, who are read at the same time; null for those who do not exist."""
    found = await gather(*map(users.find, user_id))
    return [user.display_name if user else None for user in found]


@app.exception_handler(DynashardError)
async def refused(_: Request, error: DynashardError) -> JSONResponse:
    """Answer what the backend refuses with its status and code."""
    headers = {"Retry-After": str(error.retry_after)} if error.retry_after else {}
    return JSONResponse({"code": error.code, "detail": str(error)}, error.status, headers)
