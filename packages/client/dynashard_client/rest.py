"""Requests to the API over REST, sent with urllib3 by the thread that asks."""

from collections.abc import Callable
from typing import Any, Final

import urllib3

from dynashard_client.arguments import authorization, check_token
from dynashard_client.resource import Resource
from dynashard_client.rest_steps import HttpAnswer, HttpRequest, RestApi, lost
from dynashard_client.retries import unsent
from dynashard_client.steps import Request, run

Token = str | Callable[[], str]
CONNECT_SECONDS: Final = 5.0
"""For a connection."""
MOST_KEPT: Final = 100
"""Connections that are kept for the next requests; more threads than this open one for each request."""


class RestTransport:
    """Sends requests to the API.

    Args:
        url: of the API, with or without `/v1`.
        token: the bearer token, or what gives one for each request.
        timeout: for an answer, in seconds.
    """

    def __init__(self, url: str, token: Token, *, timeout: float = 35.0) -> None:
        check_token(token)
        self._api = RestApi(url)
        self._token = token
        self._pool = urllib3.PoolManager(
            retries=False, maxsize=MOST_KEPT, timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=timeout)
        )

    def ask(self, resource: Resource[Any], request: Request) -> Any:
        """Ask once; see `ClientTransport.ask`."""
        return run(self._api.ask(resource, request), self._sent)

    def call(self, name: str, request: Request) -> Any:
        """Refuse the call; see `RestApi.call`."""
        return self._api.call(name, request)

    def _sent(self, request: HttpRequest) -> HttpAnswer:
        token = self._token if isinstance(self._token, str) else self._token()
        headers = {**request.headers, "Authorization": authorization(token)}
        try:
            answer = self._pool.request(request.method, request.url, body=request.body, headers=headers, redirect=False)
        except (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError) as error:
            raise unsent(error) from error
        except urllib3.exceptions.HTTPError as error:
            raise lost(str(error)) from error
        return HttpAnswer(answer.status, answer.headers, answer.data)

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()
