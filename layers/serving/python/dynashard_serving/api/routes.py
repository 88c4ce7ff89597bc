"""Which path and method leads to which operation."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property, partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, cast

from dynashard_serving.api import VERSION
from dynashard_serving.api.attachments import body_limit
from dynashard_serving.api.item_reads import ItemReadRoute
from dynashard_serving.api.problems import ProblemError
from dynashard_serving.api.request import ApiRequest
from dynashard_serving.api.resource import PREFIX, Resource
from dynashard_serving.api.responses import Response
from dynashard_serving.api.settings import Settings
from dynashard_serving.api.waiting import Waiting
from dynashard_serving.backend import Backend
from dynashard_serving.declare import Exposed, FamilyListing, Root
from dynashard_serving.documents import written
from dynashard_serving.domain import Domain
from dynashard_serving.limits import MAX_BODY_BYTES
from dynashard_serving.operations.item_reads import ItemReads

if TYPE_CHECKING:
    from dynashard_patterns.copies.materializer import Materializer
    from dynashard_serving.api.deferred import Deferred
    from dynashard_serving.api.items import ItemRoutes
    from dynashard_serving.api.listing import ListingRoute
    from dynashard_serving.idempotency import IdempotentCreates

Operation = Callable[[ApiRequest], Response[Any]]
Handler = Callable[[Mapping[str, Any], str, Any], Response[Any]]
"""Answers an event with its path, which has no stage any more, and Lambda's context."""
UNKNOWN: Final = "unknown"
"""The route of requests that lead nowhere, in logs and metrics."""
HEALTH: Final = f"{PREFIX}/health"


@dataclass(eq=False, repr=False)
class Endpoint:
    """A set of paths and what each method does there.

    Attributes:
        template: the path as documentation writes it.
        rule: a regular expression for the paths.
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


Endpoints = Callable[[], Sequence[Endpoint]]


class Routes:
    """Everything that is served. Without `deferred`, because there is no queue, every write is done at once.

    The endpoints of a root, such as `/v1/users`, are made when the first request comes for it: only then are the
    entity's model and the modules of its endpoints loaded. So a wrong exposure of one entity fails its own requests.
    """

    def __init__(
        self,
        settings: Settings,
        domain: Domain,
        backend: Backend,
        idempotent: Callable[[], "IdempotentCreates"],
        *,
        deferred: "Deferred | None" = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._domain = domain
        self._tenant_claim = settings.tenant
        self._backend = backend
        self._idempotent = idempotent
        self._deferred = deferred
        self._makers: dict[str, Endpoints] = {HEALTH: lambda: [_endpoint(HEALTH, {"GET": _health})]}
        if settings.serves_documentation:
            describe = partial(_document, domain)
            self._makers[f"{PREFIX}/openapi.json"] = lambda: [_endpoint(f"{PREFIX}/openapi.json", {"GET": describe})]
            self._makers[f"{PREFIX}/docs"] = partial(_pages, local=settings.environment == "local")
        for path, load in domain.roots.items():
            self._makers[f"{PREFIX}/{path}"] = partial(self._of_served, load)
        self._by_root: dict[str, Sequence[Endpoint]] = {}

    def _of_served(self, load: Callable[[], Root]) -> list[Endpoint]:
        served = load()
        if isinstance(served, Exposed):
            return self._of_resource(served)
        if isinstance(served, FamilyListing):
            return self._of_family(served)
        from dynashard_serving.api.extra_endpoints import extra_endpoints  # noqa: PLC0415 - only for its requests

        endpoints = []
        for extra in extra_endpoints(served):
            handles = {method: partial(each.handle, self._backend) for method, each in extra.methods.items()}
            endpoints.append(Endpoint(extra.template, extra.rule, self._handlers(handles), expensive=extra.expensive))
        return endpoints

    def _of_resource(self, exposed: Exposed) -> list[Endpoint]:
        resource = Resource(exposed)
        reads, writes = ItemReadRoute(resource, ItemReads(self._backend.collection)), self._writes(resource)
        waiting = Waiting(resource, partial(_materializers, self._domain, resource, self._backend))
        of_all = {
            "list": ("GET", _listing(resource, self._backend)),
            "create": ("POST", writes("create")),
        }
        of_one = {
            "get": ("GET", waiting.where_preferred(reads.read)),
            "put": ("PUT", writes("put")),
            "update": ("PATCH", writes("patch")),
            "delete": ("DELETE", writes("delete")),
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

    def _writes(self, resource: Resource) -> Callable[[str], Operation]:
        """Return what gives the writes of a resource by their names."""

        @cache
        def routes() -> "ItemRoutes":
            # The first read does without all that writes.
            from dynashard_serving.api.items import ItemRoutes  # noqa: PLC0415
            from dynashard_serving.operations.item_writes import ItemWrites  # noqa: PLC0415

            return ItemRoutes(resource, ItemWrites(self._backend.collection, self._idempotent(), self._clock))

        def write(name: str) -> Operation:
            return lambda incoming: cast("Response[Any]", getattr(routes(), name)(incoming))

        return write

    def _of_family(self, family: FamilyListing) -> list[Endpoint]:
        from dynashard_serving.api.family_listing import FamilyResource, FamilyRoute  # noqa: PLC0415 - only for its requests

        resource = FamilyResource(family)
        listed = FamilyRoute(resource, self._backend.collection)
        handlers = self._handlers({"GET": listed.page})
        return [Endpoint(resource.root, re.escape(resource.root), handlers, expensive=True)]

    def _handlers(self, operations: Mapping[str, Operation], *, max_body: int = MAX_BODY_BYTES) -> dict[str, Handler]:
        return {method: partial(self._handle, operation, max_body) for method, operation in operations.items()}

    def _handle(
        self, operation: Operation, max_body: int, event: Mapping[str, Any], path: str, context: Any
    ) -> Response[Any]:
        return operation(ApiRequest.from_event(event, path, self._tenant_claim, context, max_body=max_body))

    @property
    def endpoints(self) -> list[Endpoint]:
        """All of it; makes what was not made yet."""
        return [endpoint for root in self._makers for endpoint in self._of_root(root)]

    def _of_root(self, root: str) -> Sequence[Endpoint]:
        if root not in self._makers:
            return ()
        # Two threads may each make them; those of the first are kept.
        return self._by_root.get(root) or self._by_root.setdefault(root, self._makers[root]())

    def find(self, path: str) -> Endpoint | None:
        """Return the endpoint that a path leads to; None if nothing is served there."""
        for endpoint in self._of_root(root_of(path)):
            if endpoint.matches(path):
                return endpoint
        return None

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


def _listing(resource: Resource, backend: Backend) -> Operation:
    @cache
    def route() -> "ListingRoute":
        # The first request for an item does without all that lists.
        from dynashard_serving.api.listing import ListingRoute  # noqa: PLC0415
        from dynashard_serving.operations.listings import Listings  # noqa: PLC0415

        return ListingRoute(resource, Listings(backend.collection))

    return lambda incoming: route().page(incoming)


def _materializers(domain: Domain, resource: Resource, backend: Backend) -> list["Materializer"]:
    copies = domain.declarations.copies
    return [each.materializer(backend.entities) for each in copies if each.of is resource.entity]


def _document(domain: Domain, *_: Any) -> Response[str]:
    from dynashard_serving.api.openapi import document_of  # noqa: PLC0415 - no other request needs JSON Schemas

    document = document_of(domain, now=datetime.now(UTC))
    return Response(HTTPStatus.OK, content_type="application/json", body=written(document))


def _pages(*, local: bool) -> list[Endpoint]:
    from dynashard_serving.api import documentation  # noqa: PLC0415 - only for people who read

    def page(*_: Any) -> Response[str]:
        return documentation.page(local=local)

    def asset(name: str, event: Mapping[str, Any], *_: Any) -> Response[bytes]:
        return documentation.asset(name, event)

    return [
        _endpoint(f"{PREFIX}/docs", {"GET": page}),
        *(_endpoint(f"{PREFIX}/docs/{name}", {"GET": partial(asset, name)}) for name in documentation.ASSETS),
    ]
