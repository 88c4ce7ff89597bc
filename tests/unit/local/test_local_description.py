"""The API's description of itself: many ask for it at once, and changed code is described soon."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import orjson
import pytest

from dynashard_local.gateway.description import Description
from dynashard_local.gateway.events import HttpRequest, HttpResponse

pytestmark = pytest.mark.unit

Scene = Callable[["Api", Description], Awaitable[None]]


class Api:
    """A gateway that answers once `answers` is set, and a clock."""

    def __init__(self) -> None:
        self.answers = asyncio.Event()
        self.asked = 0
        self.now = 0.0
        self.status = 200
        self.scopes = ["users:read"]

    async def answer(self, request: HttpRequest) -> HttpResponse:
        assert (request.method, request.path) == ("GET", "/v1/openapi.json")
        self.asked += 1
        await self.answers.wait()
        schemes = {"bearer": {"x-scopes": self.scopes}}
        return HttpResponse(self.status, (), orjson.dumps({"components": {"securitySchemes": schemes}}))


def played(scene: Scene) -> None:
    async def play() -> None:
        api: Any = Api()
        await scene(api, Description(api, lambda: api.now))

    asyncio.run(play())


def test_all_that_ask_at_once_share_one_call() -> None:
    async def scene(api: Api, description: Description) -> None:
        asking = [asyncio.create_task(description.scopes()) for _ in range(8)]
        await asyncio.sleep(0)
        api.answers.set()

        assert await asyncio.gather(*asking) == [["users:read"]] * 8
        assert api.asked == 1

    played(scene)


def test_one_that_goes_away_does_not_take_the_answer_from_the_others() -> None:
    async def scene(api: Api, description: Description) -> None:
        first, other = (asyncio.create_task(description.scopes()) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        api.answers.set()

        assert await other == ["users:read"]
        assert api.asked == 1

    played(scene)


def test_it_is_remembered_for_a_second() -> None:
    async def scene(api: Api, description: Description) -> None:
        api.answers.set()
        found: list[Sequence[str]] = []
        for api.now in (0.0, 0.9, 1.0):
            found.append(await description.scopes())
            api.scopes = ["users:write"]

        assert found == [["users:read"], ["users:read"], ["users:write"]]
        assert api.asked == 2

    played(scene)


def test_an_api_that_cannot_describe_itself_has_no_scopes() -> None:
    async def scene(api: Api, description: Description) -> None:
        api.answers.set()
        api.status = 500

        assert list(await description.scopes()) == []

    played(scene)
