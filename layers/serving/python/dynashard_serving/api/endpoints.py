"""The endpoints of everything that is served: of the API itself, and of each kind of declaration.

Modules are imported when the first request needs them, so that a function that has just started answers a GET without
all that writes, lists and documents.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dynashard.errors import DynashardError
from dynashard.service import Dynashard
from dynashard_serving.api import VERSION
from dynashard_serving.api.copy_wait import CopyWait
from dynashard_serving.api.item_reads import ItemReadRoute
from dynashard_serving.api.problems import ProblemError
from dynashard_serving.api.request import ApiRequest, TenantClaim
from dynashard_serving.api.resource import PREFIX, Resource
from dynashard_serving.api.response import Response, computed_response, json_response
from dynashard_serving.api.routes import Endpoint, Handler, Operation
from dynashard_serving.api.settings import Settings
from dynashard_serving.declare import Endpoint as ComputedRead
from dynashard_serving.declare import (
    Exposed,
    FamilyListing,
    ItemRead,
    Root,
    ServedCounter,
    ServedEdges,
    ServedRollUps,
    item_reads_of,
)
from dynashard_serving.domain import Domain
from dynashard_serving.exposure import Quota
from dynashard_serving.limits import MAX_BODY_BYTES, MAX_MIXED_BYTES
from dynashard_serving.operations.item_reads import ItemReads
from dynashard_serving.operations.served import Served

if TYPE_CHECKING:
    from dynashard_patterns.copies.materializer import Materializer
    from dynashard_serving.api.batches import BatchRoute
    from dynashard_serving.api.deferred_writes import DeferredWrites
    from dynashard_serving.api.item_writes import ItemWriteRoutes
    from dynashard_serving.api.listings import ListingRoute
    from dynashard_serving.api.queue_sender import QueueSender
    from dynashard_serving.api.quotas import Quotas
    from dynashard_serving.idempotency import IdempotentCreates
    from dynashard_serving.operations.item_writes import ItemWrites

HEALTH: Final = f"{PREFIX}/health"


class Authenticated(Struct, frozen=True):
    """Handles an event by an operation, unless its token names no tenant or its body is too large."""

    operation: Operation
    claim: TenantClaim
    max_body: int

    def __call__(self, event: Mapping[str, Any], path: str, context: Any) -> Response[Any]:
        """Answer an event; see `Handler`."""
        return self.operation(ApiRequest.from_event(event, path, self.claim, context, max_body=self.max_body))


class Parts(Struct, frozen=True):
    """What endpoints are made of.

    Attributes:
        settings: the settings of the function.
        domain: what is served.
        backend: the entities.
        idempotent: opens what answers repeated creates once.
        sender: opens the way to the queues, if the settings name any.
        quotas: opens what counts requests.
        clock: epoch seconds.
    """

    settings: Settings
    domain: Domain
    backend: Dynashard
    idempotent: "Callable[[], IdempotentCreates]"
    sender: "Callable[[], QueueSender]"
    quotas: "Callable[[], Quotas]"
    clock: Callable[[], float]

    def handlers(self, operations: Mapping[str, Operation], *, max_body: int = MAX_BODY_BYTES) -> Mapping[str, Handler]:
        """Return operations as handlers of events."""
        claim = self.settings.tenant
        return {method: Authenticated(operation, claim, max_body) for method, operation in operations.items()}

    def limited(
        self,
        path: str,
        quota: Quota | None,
        operations: Mapping[str, Operation],
        requests_in: Callable[[ApiRequest], int] = lambda _: 1,
    ) -> Mapping[str, Operation]:
        """Return operations of what is served at a path within its quota, if it has one."""
        if quota is None:
            return operations
        from dynashard_serving.api.quotas import Limited  # noqa: PLC0415 - few resources have quotas

        return {
            method: Limited(operation, path, quota, self.quotas, requests_in)
            for method, operation in operations.items()
        }


def makers_of(parts: Parts) -> Mapping[str, Callable[[], Sequence[Endpoint]]]:
    """Return what makes the endpoints of each root; see `Routes`."""
    settings, domain = parts.settings, parts.domain
    makers: dict[str, Callable[[], Sequence[Endpoint]]] = {
        HEALTH: lambda: [_of_the_api(HEALTH, partial(_health, parts.backend))]
    }
    if settings.serves_documentation:
        document = f"{PREFIX}/openapi.json"
        makers[document] = lambda: [_of_the_api(document, partial(_document, domain))]
        makers[f"{PREFIX}/docs"] = partial(_pages, local=settings.environment == "local")
    for path, load in domain.roots.items():
        makers[f"{PREFIX}/{path}"] = partial(_of_declaration, parts, load)
    return makers


def _of_declaration(parts: Parts, load: Callable[[], Root]) -> list[Endpoint]:
    served = load()
    if isinstance(served, Exposed):
        return EntityEndpoints(parts, served).all()
    if isinstance(served, FamilyListing):
        return _of_family(parts, served)
    if isinstance(served, ServedCounter):
        return _of_counters(parts, served)
    if isinstance(served, ServedEdges):
        return _of_edges(parts, served)
    if isinstance(served, ServedRollUps):
        from dynashard_serving.operations.roll_ups import roll_ups_endpoint  # noqa: PLC0415

        return _of_read(parts, roll_ups_endpoint(served))
    return _of_read(parts, served)


class EntityEndpoints:
    """The endpoints of an entity. What lists and what writes is loaded by the first request for it."""

    def __init__(self, parts: Parts, exposed: Exposed) -> None:
        self._parts = parts
        self._entity = exposed.entity
        self._resource = Resource(Served(exposed))

    def all(self) -> list[Endpoint]:
        """Return the paths of reads about items, that of all items and that of each, with the served operations."""
        resource = self._resource
        reads = ItemReadRoute(resource, ItemReads(self._parts.backend.collection), CopyWait(self._materializers))
        of_all: dict[str, tuple[str, Operation]] = {
            "list": ("GET", self._list),
            "create": ("POST", self._create),
        }
        of_one: dict[str, tuple[str, Operation]] = {
            "get": ("GET", reads.get),
            "put": ("PUT", self._put),
            "update": ("PATCH", self._patch),
            "delete": ("DELETE", self._delete),
        }
        # They come before the item, whose last id may hold slashes.
        endpoints = [_of_item_read(self._parts, resource, each) for each in item_reads_of(self._entity)]
        endpoints += self._of_many(
            dict(operation for name, operation in of_one.items() if name in resource.exposed.operations)
        )
        for template, rule, operations in (
            (resource.root, re.escape(resource.root), of_all),
            (resource.template, re.escape(resource.root) + r"/[\s\S]+", of_one),
        ):
            served = dict(operations[name] for name in operations if name in resource.exposed.operations)
            if served:
                handlers = self._parts.handlers(self._limited(served), max_body=self._max_body)
                endpoints.append(Endpoint(template, rule, handlers, expensive=operations is of_all))
        return endpoints

    def _of_many(self, of_one: Mapping[str, Operation]) -> list[Endpoint]:
        """The paths of counts and batches. Items may have the same paths, so `of_one` is served there too."""
        resource, handlers = self._resource, self._parts.handlers
        single = len(resource.served.address) == 1
        items = handlers(self._limited(of_one), max_body=self._max_body) if single else {}
        batched = self._limited({"POST": self._batch}, self._requests_in)
        of_many: tuple[tuple[str, str, Mapping[str, Handler]], ...] = (
            ("count", resource.counts, handlers(self._limited({"GET": self._count}))),
            ("batch", resource.batches, handlers(batched, max_body=MAX_MIXED_BYTES)),
        )
        return [
            Endpoint(path, re.escape(path), served, expensive=name == "count", others=items)
            for name, path, served in of_many
            if resource.served.serves(name)
        ]

    def _limited(
        self, operations: Mapping[str, Operation], requests_in: Callable[[ApiRequest], int] = lambda _: 1
    ) -> Mapping[str, Operation]:
        """Return operations within the quota of the resource, if it has one."""
        exposed = self._resource.exposed
        return self._parts.limited(exposed.path, exposed.quota, operations, requests_in)

    def _list(self, incoming: ApiRequest) -> Response[Any]:
        return self._listing.page(incoming)

    def _count(self, incoming: ApiRequest) -> Response[Any]:
        return self._listing.count(incoming)

    @staticmethod
    def _requests_in(incoming: ApiRequest) -> int:
        """Return how many requests a batch counts as; 1 if it will be refused, because it is none."""
        from dynashard_serving.api.batches import batch_of  # noqa: PLC0415

        try:
            return max(1, len(batch_of(incoming).requests))
        except (DynashardError, ProblemError):
            return 1

    def _batch(self, incoming: ApiRequest) -> Response[Any]:
        return self._batches.run(incoming)

    def _create(self, incoming: ApiRequest) -> Response[Any]:
        return self._creates(incoming)

    def _put(self, incoming: ApiRequest) -> Response[Any]:
        return self._writes.put(incoming)

    def _patch(self, incoming: ApiRequest) -> Response[Any]:
        return self._writes.patch(incoming)

    def _delete(self, incoming: ApiRequest) -> Response[Any]:
        return self._writes.delete(incoming)

    @property
    def _max_body(self) -> int:
        """The largest body that is accepted, in bytes, before Lambda's own limit."""
        return MAX_BODY_BYTES + sum(each.max_bytes for each in self._resource.served.definition.attachments.values())

    def _materializers(self) -> "list[Materializer]":
        copies = self._parts.domain.declarations.copies
        return [each.materializer(self._parts.backend) for each in copies if each.of is self._entity]

    @cached_property
    def _listing(self) -> "ListingRoute":
        from dynashard_serving.api.listings import ListingRoute  # noqa: PLC0415
        from dynashard_serving.operations.listings import Listings  # noqa: PLC0415

        return ListingRoute(self._resource, Listings(self._parts.backend.collection))

    @cached_property
    def _item_writes(self) -> "ItemWrites":
        from dynashard_serving.operations.item_writes import ItemWrites  # noqa: PLC0415

        return ItemWrites(self._parts.backend.collection, self._parts.idempotent(), self._parts.clock)

    @cached_property
    def _writes(self) -> "ItemWriteRoutes":
        from dynashard_serving.api.item_writes import ItemWriteRoutes  # noqa: PLC0415

        return ItemWriteRoutes(self._resource, self._item_writes, self._deferred_writes())

    @cached_property
    def _batches(self) -> "BatchRoute":
        from dynashard_serving.api.batches import BatchRoute  # noqa: PLC0415
        from dynashard_serving.operations.batches import Batches  # noqa: PLC0415
        from dynashard_serving.operations.mixed_batches import MixedBatches  # noqa: PLC0415

        batches = Batches(self._parts.backend.collection, self._parts.clock, self._item_writes)
        return BatchRoute(self._resource, MixedBatches(batches, self._item_writes))

    @cached_property
    def _creates(self) -> Operation:
        """What creates: at once, or through the queue."""
        parts = self._parts
        if not self._resource.exposed.queued or parts.settings.queue_url is None:
            return self._writes.create
        from dynashard_serving.api.queued_creates import QueuedCreates  # noqa: PLC0415

        items = parts.backend.collection(self._entity)
        return QueuedCreates(self._resource, items, parts.sender(), parts.settings.queue_url, parts.clock).create

    def _deferred_writes(self) -> "DeferredWrites | None":
        parts = self._parts
        if parts.settings.operations_queue_url is None:
            return None
        from dynashard_serving.api.deferred_writes import DeferredWrites, transacted  # noqa: PLC0415
        from dynashard_serving.operation_records import Operation as Record  # noqa: PLC0415

        if not transacted(self._resource.served):
            return None
        return DeferredWrites(
            self._resource,
            parts.backend.collection(self._entity),
            parts.backend.collection(Record),
            sender=parts.sender(),
            queue_url=parts.settings.operations_queue_url,
            clock=parts.clock,
        )


def _of_family(parts: Parts, listing: FamilyListing) -> list[Endpoint]:
    from dynashard_serving.api.listings import FamilyResource, FamilyRoute  # noqa: PLC0415

    resource = FamilyResource(listing, parts.domain.access_of)
    route = FamilyRoute(resource, parts.backend.collection)
    page = parts.limited(listing.path, listing.quota, {"GET": route.page})
    return [Endpoint(resource.root, re.escape(resource.root), parts.handlers(page), expensive=True)]


def _of_counters(parts: Parts, served: ServedCounter) -> list[Endpoint]:
    from dynashard_serving.api.counters import VERBS, CounterPaths, CounterRoutes  # noqa: PLC0415
    from dynashard_serving.operations.counters import Counts  # noqa: PLC0415

    paths = CounterPaths(served)
    routes = CounterRoutes(paths, Counts(parts.backend, served, parts.clock))
    limited = partial(parts.limited, served.path, served.quota)
    changes = {"add": routes.add, "take": routes.take}
    endpoints = [
        Endpoint(*paths.changing(verb), parts.handlers(limited({"POST": changes[verb]})))
        for verb in VERBS
        if verb in served.operations
    ]
    of_one = {"get": ("GET", routes.get), "delete": ("DELETE", routes.delete)}
    if operations := dict(of_one[name] for name in of_one if name in served.operations):
        endpoints.append(Endpoint(paths.one, paths.rule, parts.handlers(limited(operations))))
    return endpoints


def _of_edges(parts: Parts, served: ServedEdges) -> list[Endpoint]:
    from dynashard_serving.api.edges import EdgePaths, EdgeRoutes  # noqa: PLC0415

    paths = EdgePaths(served)
    routes = EdgeRoutes(served, paths, parts.backend)
    limited = partial(parts.limited, served.path, served.quota)
    of_all, counts = {"GET": routes.list, "POST": routes.add}, {"GET": routes.count}
    of_one = {"GET": routes.get, "DELETE": routes.remove}
    return [
        Endpoint(paths.root, re.escape(paths.root), parts.handlers(limited(of_all)), expensive=True),
        Endpoint(paths.counts, re.escape(paths.counts), parts.handlers(limited(counts))),
        Endpoint(paths.pair, paths.rule, parts.handlers(limited(of_one))),
    ]


def _of_read(parts: Parts, declared: ComputedRead) -> list[Endpoint]:
    from dynashard_serving.api.parameters import model_of  # noqa: PLC0415
    from dynashard_serving.operations.computed import computed, permit_to  # noqa: PLC0415

    def read(incoming: ApiRequest) -> Response[Any]:
        permit_to(declared, incoming.caller)
        found = computed(declared, parts.backend, incoming.caller, model_of(declared.request, incoming.query))
        return computed_response(found, many=declared.many)

    root = f"{PREFIX}/{declared.path}"
    reads = parts.limited(declared.path, declared.quota, {"GET": read})
    return [Endpoint(root, re.escape(root), parts.handlers(reads), expensive=True)]


def _of_item_read(parts: Parts, resource: Resource, declared: ItemRead) -> Endpoint:
    suffix = f"/{declared.path}"

    def read(incoming: ApiRequest) -> Response[Any]:
        from dynashard_serving.api.parameters import model_of  # noqa: PLC0415
        from dynashard_serving.operations.computed import about_item  # noqa: PLC0415

        key = resource.key_of(replace(incoming, path=incoming.path.removesuffix(suffix)))
        found = about_item(
            declared,
            resource.served,
            parts.backend,
            caller=incoming.caller,
            key=key,
            request=lambda: model_of(declared.request, incoming.query),
        )
        return computed_response(found, many=declared.many)

    rule = re.escape(resource.root) + r"/[^/]+" * (len(resource.served.address) - 1) + r"/[\s\S]+" + re.escape(suffix)
    reads = parts.limited(resource.exposed.path, resource.exposed.quota, {"GET": read})
    return Endpoint(f"{resource.template}{suffix}", rule, parts.handlers(reads), expensive=True)


def _of_the_api(path: str, handler: Handler) -> Endpoint:
    return Endpoint(path, re.escape(path), {"GET": handler})


def _health(backend: Dynashard, *_: Any) -> Response[str]:
    off = backend.key_clock.offset.seconds
    clock = {} if off is None else {"clock_off_seconds": round(off, 1)}
    return json_response({"status": "ok", "version": VERSION, **clock}, headers={"Cache-Control": "no-store"})


def _document(domain: Domain, *_: Any) -> Response[str]:
    from dynashard_serving.api.openapi.document import document_of  # noqa: PLC0415

    return json_response(document_of(domain, now=datetime.now(UTC)))


def _pages(*, local: bool) -> list[Endpoint]:
    from dynashard_serving.api.openapi import page  # noqa: PLC0415

    def asset(name: str, event: Mapping[str, Any], *_: Any) -> Response[bytes]:
        return page.asset(name, event)

    return [
        _of_the_api(f"{PREFIX}/docs", lambda *_: page.page(local=local)),
        *(_of_the_api(f"{PREFIX}/docs/{name}", partial(asset, name)) for name in page.ASSETS),
    ]
