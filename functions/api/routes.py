"""Which path and method leads to which operation."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from http import HTTPStatus
from typing import Any, Final

from domain import COPIES
from dynashard_serving.backend import Backend
from dynashard_serving.documents import written
from dynashard_serving.idempotency import IdempotentCreates
from dynashard_serving.limits import MAX_BODY_BYTES
from dynashard_serving.operations.items import Items
from dynashard_serving.operations.listings import Listings
from functions.api import VERSION, documentation
from functions.api.attachments import body_limit
from functions.api.deferred import Deferred
from functions.api.extra_endpoint import ExtraEndpoint
from functions.api.family_listing import FamilyResource, FamilyRoute
from functions.api.items import ItemRoutes
from functions.api.listing import ListingRoute
from functions.api.problems import ProblemError
from functions.api.request import ApiRequest
from functions.api.resource import PREFIX, Resource
from functions.api.responses import Response
from functions.api.settings import Settings
from functions.api.waiting import Waiting

Operation = Callable[[ApiRequest], Response[Any]]
Handler = Callable[[Mapping[str, Any], str, Any], Response[Any]]
"""Answers an event with its path, which has no stage any more, and Lambda's context."""
UNKNOWN: Final = "unknown"
"""The route of requests that lead nowhere, in logs and metrics."""


@dataclass(frozen=True)
class Endpoint:
    """A set of paths and what each method does there.

    Attributes:
        template: the path as documentation writes it.
        rule: a regular expression for the paths. Powertools' own placeholders would refuse most of Unicode.
        handlers: by method.
        expensive: reading here costs many times what a single item costs: it is refused first when load is shed.
    """

    template: str
    rule: str
    handlers: Mapping[str, Handler]
    expensive: bool = False

    def matches(self, path: str) -> bool:
        """Whether a path is one of these."""
        return path == self.template if self._literal else self._pattern.fullmatch(path) is not None

    def handler(self, method: str) -> Handler | None:
        """Return what a method does here; None if it is not served. `HEAD` goes where `GET` goes."""
        return self.handlers.get("GET" if method == "HEAD" else method)

    @property
    def root(self) -> str:
        """The beginning that its paths have in common, such as `/v1/users`."""
        return root_of(self.template)

    @cached_property
    def _literal(self) -> bool:
        return self.rule == re.escape(self.template)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        # Only when the first such path comes: a function compiles a few of its dozens of patterns.
        return re.compile(self.rule)


def root_of(path: str) -> str:
    """Return the first two segments of a path."""
    end = path.find("/", len(PREFIX) + 1)
    return path if end < 0 else path[:end]


class Routes:
    """Everything that is served. Without `deferred`, because there is no queue, every write is done at once.

    Attributes:
        endpoints: all of it.
    """

    def __init__(
        self,
        settings: Settings,
        resources: Sequence[Resource],
        backend: Backend,
        idempotent: IdempotentCreates,
        families: Sequence[FamilyResource] = (),
        *,
        extra_endpoints: Sequence[ExtraEndpoint] = (),
        deferred: Deferred | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._tenant_claim = settings.tenant
        self._deferred = deferred
        self.endpoints = [_endpoint(f"{PREFIX}/health", {"GET": _health})]
        if settings.serves_documentation:
            self.endpoints += _documentation(
                resources, families, extra_endpoints, local=settings.environment == "local"
            )
        for resource in resources:
            self.endpoints += self._of_resource(resource, backend, idempotent)
        for family in families:
            listed = FamilyRoute(family, backend.collection)
            listing = Endpoint(
                family.root, re.escape(family.root), self._handlers({"GET": listed.page}), expensive=True
            )
            self.endpoints.append(listing)
        for extra in extra_endpoints:
            handles = {method: partial(served.handle, backend) for method, served in extra.methods.items()}
            served = self._handlers(handles)
            self.endpoints.append(Endpoint(extra.template, extra.rule, served, expensive=extra.expensive))
        self._by_root: dict[str, list[Endpoint]] = {}
        for endpoint in self.endpoints:
            self._by_root.setdefault(endpoint.root, []).append(endpoint)

    def _of_resource(self, resource: Resource, backend: Backend, idempotent: IdempotentCreates) -> list[Endpoint]:
        items = ItemRoutes(resource, Items(backend.collection, idempotent, self._clock))
        listing = ListingRoute(resource, Listings(backend.collection))
        waiting = Waiting(
            resource, [each.materializer(backend.entities) for each in COPIES if each.of is resource.entity]
        )
        of_all = {"list": ("GET", listing.page), "create": ("POST", items.create)}
        of_one = {
            "get": ("GET", waiting.where_preferred(items.read)),
            "put": ("PUT", items.put),
            "update": ("PATCH", items.patch),
            "delete": ("DELETE", items.delete),
        }
        endpoints = []
        for template, rule, operations in (
            (resource.root, re.escape(resource.root), of_all),
            (resource.template, re.escape(resource.root) + r"/[\s\S]+", of_one),
        ):
            accepting = operations if self._deferred is None else self._deferred.of(resource, operations)
            served = dict(accepting[name] for name in operations if name in resource.operations)
            if served:
                handlers = self._handlers(served, max_body=body_limit(resource))
                endpoints.append(Endpoint(template, rule, handlers, expensive=operations is of_all))
        return endpoints

    def _handlers(self, operations: Mapping[str, Operation], *, max_body: int = MAX_BODY_BYTES) -> dict[str, Handler]:
        return {method: partial(self._handle, operation, max_body) for method, operation in operations.items()}

    def _handle(
        self, operation: Operation, max_body: int, event: Mapping[str, Any], path: str, context: Any
    ) -> Response[Any]:
        return operation(ApiRequest.from_event(event, path, self._tenant_claim, context, max_body=max_body))

    def find(self, path: str) -> Endpoint | None:
        """Return the endpoint that a path leads to; None if nothing is served there."""
        return next((endpoint for endpoint in self._by_root.get(root_of(path), ()) if endpoint.matches(path)), None)

    def refuse(self, method: str, path: str) -> Response[Any]:
        """Refuse a request without an endpoint: 405 with `Allow` if the path is served, else 404."""
        endpoint = self.find(path)
        if endpoint is None:
            raise ProblemError("no_such_route", f"Nothing is served at this path; resources live below {PREFIX}/.")
        allowed = [*endpoint.handlers, *(["HEAD"] if "GET" in endpoint.handlers else [])]
        raise ProblemError(
            "method_not_allowed",
            f"{method} is not served at this path; {', '.join(allowed)} are.",
            headers={"Allow": ", ".join(allowed)},
        )


def _endpoint(path: str, handlers: Mapping[str, Handler]) -> Endpoint:
    return Endpoint(path, re.escape(path), handlers)


def _health(*_: Any) -> Response[str]:
    body = written({"status": "ok", "version": VERSION})
    return Response(HTTPStatus.OK, content_type="application/json", body=body, headers={"Cache-Control": "no-store"})


def _documentation(
    resources: Sequence[Resource],
    families: Sequence[FamilyResource],
    extra_endpoints: Sequence[ExtraEndpoint],
    *,
    local: bool,
) -> list[Endpoint]:
    def openapi(*_: Any) -> Response[str]:
        from functions.api.openapi import document_of  # noqa: PLC0415 - no other request needs JSON Schemas

        document = document_of(resources, families, extra_endpoints, now=datetime.now(UTC))
        return Response(HTTPStatus.OK, content_type="application/json", body=written(document))

    def page(*_: Any) -> Response[str]:
        return documentation.page(local=local)

    def asset(name: str, event: Mapping[str, Any], *_: Any) -> Response[bytes]:
        return documentation.asset(name, event)

    return [
        _endpoint(f"{PREFIX}/openapi.json", {"GET": openapi}),
        _endpoint(f"{PREFIX}/docs", {"GET": page}),
        *(_endpoint(f"{PREFIX}/docs/{name}", {"GET": partial(asset, name)}) for name in documentation.ASSETS),
    ]
