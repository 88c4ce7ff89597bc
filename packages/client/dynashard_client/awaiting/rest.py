"""Requests to the API over REST, sent with httpx by the event loop of the task that asks."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from inspect import isawaitable
from threading import Lock
from typing import Any, Final

import httpx

from dynashard_client.arguments import authorization, check_token
from dynashard_client.resource import Resource
from dynashard_client.rest import CONNECT_SECONDS
from dynashard_client.rest_steps import HttpAnswer, HttpRequest, RestApi, lost
from dynashard_client.retries import unsent
from dynashard_client.steps import Request, awaited

AsyncToken = str | Callable[[], str] | Callable[[], Awaitable[str]]

_NOT_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout)


class AsyncRestTransport:
    """Sends requests to the API. Each event loop has connections of its own, because no other can use them.

    Args:
        url: of the API, with or without `/v1`.
        token: the bearer token, or what gives one for each request, which may be awaited.
        timeout: for an answer, in seconds.
        connections: requests of one event loop that are under way at a time; further ones wait for their turn.
    """

    def __init__(self, url: str, token: AsyncToken, *, timeout: float = 35.0, connections: int = 100) -> None:
        check_token(token)
        self._api = RestApi(url)
        self._token = token
        self._timeout = {"timeout": httpx.Timeout(timeout, connect=CONNECT_SECONDS).as_dict()}
        self._certificates = ssl.create_default_context()
        self._most = connections
        self._opened: dict[asyncio.AbstractEventLoop, Connections] = {}
        self._opening = Lock()

    async def ask(self, resource: Resource[Any], request: Request) -> Any:
        """Ask once; see `ClientTransport.ask`."""
        return await awaited(self._api.ask(resource, request), self._sent)

    async def call(self, name: str, request: Request) -> Any:
        """Refuse the call; see `RestApi.call`."""
        return self._api.call(name, request)

    async def _sent(self, request: HttpRequest) -> HttpAnswer:
        token = self._token if isinstance(self._token, str) else self._token()
        if isawaitable(token):
            token = await token
        headers = {**request.headers, "Authorization": authorization(token)}
        try:
            sent = httpx.Request(
                request.method, request.url, headers=headers, content=request.body, extensions=self._timeout
            )
            return await self._answer(sent)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            # Some have no text, such as those of timeouts.
            reason = str(error) or type(error).__name__
            raise unsent(reason) if isinstance(error, _NOT_SENT) else lost(reason) from error

    async def _answer(self, request: httpx.Request) -> HttpAnswer:
        async with self._connections().one() as connection:
            answer = await connection.handle_async_request(request)
            answer.request = request
            return HttpAnswer(answer.status_code, answer.headers, await answer.aread())

    def _connections(self) -> "Connections":
        """Return the connections of the running loop; those of loops that are closed are dropped."""
        loop = asyncio.get_running_loop()
        found = self._opened.get(loop)
        if found is None:
            with self._opening:
                for each in [each for each in self._opened if each.is_closed()]:
                    del self._opened[each]
                found = self._opened[loop] = Connections(self._certificates, self._most)
        return found

    async def close(self) -> None:
        """Close the connections of the running loop."""
        with self._opening:
            opened = self._opened.pop(asyncio.get_running_loop(), None)
        if opened is not None:
            await opened.close()


class Connections:
    """The connections of one event loop.

    Each is a transport of httpx with a single connection: one with all of them looks at every connection for each
    request, so a hundred requests at once took most of their CPU time for that. It is not httpx's client, which follows
    variables of proxies and keeps cookies.
    """

    def __init__(self, certificates: ssl.SSLContext, most: int) -> None:
        self._certificates = certificates
        self._free = asyncio.Semaphore(most)
        self._idle: list[httpx.AsyncHTTPTransport] = []

    @asynccontextmanager
    async def one(self) -> AsyncGenerator[httpx.AsyncHTTPTransport]:
        """Lend a connection, the one that was used last; wait for one if the most are in use."""
        async with self._free:
            connection = self._idle.pop() if self._idle else self._new()
            try:
                yield connection
            except BaseException:
                # A task that is cancelled while httpx releases a connection leaves it taken for ever.
                await connection.aclose()
                raise
            self._idle.append(connection)

    def _new(self) -> httpx.AsyncHTTPTransport:
        limits = httpx.Limits(max_connections=1, max_keepalive_connections=1)
        return httpx.AsyncHTTPTransport(verify=self._certificates, limits=limits, trust_env=False)

    async def close(self) -> None:
        """Close the connections that are not in use."""
        while self._idle:
            await self._idle.pop().aclose()
