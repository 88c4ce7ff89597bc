"""The scopes that the API names, for tokens that may do everything."""

import time
from collections.abc import Callable, Sequence
from typing import Final

import orjson

from dynashard_local.gateway.events import HttpRequest
from dynashard_local.gateway.http_api import Gateway

DESCRIPTION: Final = "/v1/openapi.json"
KEPT_SECONDS: Final = 1
"""How long they are remembered: changed code is served about as soon."""
_OK: Final = 200


class KnownScopes:
    """Every scope that the API names, by its own description: its process has the domain's present code."""

    def __init__(self, gateway: Gateway, clock: Callable[[], float] = time.monotonic) -> None:
        self._gateway = gateway
        self._clock = clock
        self._known: Sequence[str] = ()
        self._until = clock()

    async def scopes(self) -> Sequence[str]:
        """Return all; none if the API cannot describe itself. Cost: one call of the function, at most once a second."""
        if self._clock() >= self._until:
            answer = await self._gateway.answer(HttpRequest("GET", DESCRIPTION))
            try:
                document = orjson.loads(answer.body) if answer.status == _OK else {}
            except orjson.JSONDecodeError:
                document = {}
            schemes = document.get("components", {}).get("securitySchemes", {})
            self._known, self._until = schemes.get("bearer", {}).get("x-scopes", ()), self._clock() + KEPT_SECONDS
        return self._known
