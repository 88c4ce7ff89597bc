"""Counters over HTTP: read, added to, taken from."""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from dynashard.errors import NotFoundError
from dynashard_serving.api.headers import idempotency_key
from dynashard_serving.api.parameters import consistent_only, model_of
from dynashard_serving.api.request import ApiRequest, path_values
from dynashard_serving.api.resource import PREFIX
from dynashard_serving.api.response import Response, json_response
from dynashard_serving.declare import ServedCounter
from dynashard_serving.operations.counters import Counts, ValueWanted, Verb, counter_fields

VERBS: Final[tuple[Verb, Verb]] = ("add", "take")


class CounterPaths:
    """The paths of counters: of each one, and of its changes.

    Attributes:
        root: the path below which they are.
        one: the path of a counter, as documentation writes it.
        rule: a regular expression for it.
    """

    def __init__(self, served: ServedCounter) -> None:
        self.root = f"{PREFIX}/{served.path}"
        self.fields = counter_fields(served.counter)
        self.one = "/".join([self.root, *(f"{{{name}}}" for name in self.fields)])
        self.rule = re.escape(self.root) + (r"/[\s\S]+" if self.fields else "")

    def changing(self, verb: Verb) -> tuple[str, str]:
        """Return the path of a change as documentation writes it, and a regular expression for it."""
        return f"{self.one}/{verb}", f"{self.rule}/{verb}"

    def key_of(self, path: str) -> Mapping[str, str]:
        """Return the fields of a path that name a counter; raises `NotFoundError` if some are missing."""
        if not self.fields:
            return {}
        values = path_values(path, f"{self.root}/", len(self.fields))
        if values is None:
            raise NotFoundError(f"{path} is not the address of a counter: {self.one}")
        return dict(zip(self.fields, values, strict=True))


class CounterRoutes:
    """The routes of counters."""

    def __init__(self, paths: CounterPaths, counts: Counts) -> None:
        self._paths = paths
        self._counts = counts

    def get(self, incoming: ApiRequest) -> Response[Any]:
        """`GET`: 200, with 0 if nothing was ever counted."""
        wanted = model_of(ValueWanted, incoming.query)
        key = self._paths.key_of(incoming.path)
        return json_response(self._counts.value(incoming.caller, key, approximate=wanted.approximate))

    def delete(self, incoming: ApiRequest) -> Response[Any]:
        """`DELETE`: 204."""
        consistent_only(incoming.query, allowed=False)
        self._counts.delete(incoming.caller, self._paths.key_of(incoming.path))
        return Response(HTTPStatus.NO_CONTENT, body="")

    def add(self, incoming: ApiRequest) -> Response[Any]:
        """`POST` of an addition: 200, or 409 if the ceiling does not allow it."""
        return self._change("add", incoming)

    def take(self, incoming: ApiRequest) -> Response[Any]:
        """`POST` of a taking: 200, or 409 if the floor does not allow it."""
        return self._change("take", incoming)

    def _change(self, verb: Verb, incoming: ApiRequest) -> Response[Any]:
        consistent_only(incoming.query, allowed=False)
        key = self._paths.key_of(incoming.path.removesuffix(f"/{verb}"))
        repeats = idempotency_key(incoming.headers)
        done = self._counts.change(verb, incoming.caller, key, incoming.json_object, repeats)
        return json_response(done.document, headers={"Idempotency-Replayed": "true"} if done.replayed else {})
