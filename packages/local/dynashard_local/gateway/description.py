"""What the API says about itself: its process has the domain's present code, which this one has not."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson

from dynashard_local.gateway.events import HttpRequest
from dynashard_local.gateway.http_api import Gateway

PATH: Final = "/v1/openapi.json"
KEPT_SECONDS: Final = 1
"""How long it is remembered: changed code is served about as soon."""
_OK: Final = 200


class Description:
    """The OpenAPI document of the API.

    All that ask for it at the same time share one call of the function. A new process takes a second to write the
    document, and a client of many threads would let as many processes do so for its tokens.
    """

    def __init__(self, gateway: Gateway, clock: Callable[[], float] = time.monotonic) -> None:
        self._gateway = gateway
        self._clock = clock
        self._known: Mapping[str, Any] = {}
        self._until = clock()
        self._asked: asyncio.Task[Mapping[str, Any]] | None = None

    async def document(self) -> Mapping[str, Any]:
        """Return it; empty if the API cannot describe itself. Cost: one call of the function, at most once a second."""
        if self._clock() < self._until:
            return self._known
        if self._asked is None:
            self._asked = asyncio.create_task(self._read())
        # One that goes away does not take the answer from the others.
        return await asyncio.shield(self._asked)

    async def scopes(self) -> Sequence[str]:
        """Return every scope that the API names; none if it cannot describe itself. Cost: as `document`."""
        schemes = (await self.document()).get("components", {}).get("securitySchemes", {})
        named: Sequence[str] = schemes.get("bearer", {}).get("x-scopes", ())
        return named

    async def _read(self) -> Mapping[str, Any]:
        try:
            answer = await self._gateway.answer(HttpRequest("GET", PATH))
            self._known = orjson.loads(answer.body) if answer.status == _OK else {}
        except orjson.JSONDecodeError:
            self._known = {}
        finally:
            self._asked = None
        self._until = self._clock() + KEPT_SECONDS
        return self._known
