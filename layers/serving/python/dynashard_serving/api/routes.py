"""Which path and method leads to which operation."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from msgspec import Struct

from dynashard_serving.api.problems import ProblemError
from dynashard_serving.api.request import ApiRequest
from dynashard_serving.api.resource import PREFIX
from dynashard_serving.api.response import Response

Operation = Callable[[ApiRequest], Response[Any]]
"""Answers a request of a caller with a tenant."""
Handler = Callable[[Mapping[str, Any], str, Any], Response[Any]]
"""Answers an event with its path, which has no stage any more, and Lambda's context."""
UNKNOWN: Final = "unknown"
"""The route of requests that lead nowhere, in logs and metrics."""


class Endpoint(Struct, frozen=True, eq=False, dict=True):
    """A set of paths and what each method does there.

    Attributes:
        template: the path as documentation writes it.
        rule: a regular expression for the paths.
        handlers: by method.
        others: handlers by method of what may have one of these paths too, such as an item with the id `count`.
        expensive: reading here costs many times what a single item costs: it is refused first when load is shed.
    """

    template: str
    rule: str
    handlers: Mapping[str, Handler]
    expensive: bool = False
    others: Mapping[str, Handler] = {}

    def matches(self, path: str) -> bool:
        """Whether a path is one of these."""
        return path == self.template if self._literal else self._pattern.fullmatch(path) is not None

    def handler(self, method: str) -> Handler | None:
        """Return what a method does here; None if it is not served. `HEAD` goes where `GET` goes."""
        name = "GET" if method == "HEAD" else method
        return self.handlers.get(name) or self.others.get(name)

    @cached_property
    def _literal(self) -> bool:
        return self.rule == re.escape(self.template)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        # Only when the first such path comes: a function compiles a few of its dozens of patterns.
        return re.compile(self.rule)


class Routes:
    """Finds the endpoint of a path.

    Args:
        makers: by root, such as `/v1/users`: what makes its endpoints when the first request comes for it. Only then
            are the entity's model and the modules of its endpoints loaded, so a wrong exposure of one entity fails its
            own requests.
    """

    def __init__(self, makers: Mapping[str, Callable[[], Sequence[Endpoint]]]) -> None:
        self._makers = makers
        self._by_root: dict[str, Sequence[Endpoint]] = {}

    def find(self, path: str) -> Endpoint | None:
        """Return the endpoint that a path leads to; None if nothing is served there."""
        # The root is the first two segments.
        end = path.find("/", len(PREFIX) + 1)
        root = path if end < 0 else path[:end]
        for endpoint in self._by_root.get(root) or self._made(root):
            if endpoint.matches(path):
                return endpoint
        return None

    def refusal(self, method: str, path: str) -> ProblemError:
        """Return the refusal of a request that leads nowhere: 405 with `Allow` if the path is served, else 404."""
        endpoint = self.find(path)
        if endpoint is None:
            return ProblemError("no_such_route", f"Nothing is served at this path; resources live below {PREFIX}/.")
        allowed = [*endpoint.handlers, *(["HEAD"] if "GET" in endpoint.handlers else [])]
        return ProblemError(
            "method_not_allowed",
            f"{method} is not served at this path; {', '.join(allowed)} are.",
            headers={"Allow": ", ".join(allowed)},
        )

    def _made(self, root: str) -> Sequence[Endpoint]:
        if root not in self._makers:
            return ()
        # Two threads may each make them; those of the first are kept.
        return self._by_root.setdefault(root, self._makers[root]())
