"""The API: what surrounds every request, in order, and the composition of all of it.

A request passes these layers from the first to the last, and its answer passes them back:

    App.handle              event of API Gateway to route, response to API Gateway's answer   request, response
    Observer                the line with its metrics                                         request_log
    RequestBounds           the next five, which surround direct invocations too              request_bounds
    within                  the deadline: the time that Lambda leaves, less that of an answer
    metered                 the units and attempts of this request
    allowing                how many Queries it may send, and until when
    problem_of              any error becomes a problem document                              problems
    refuse_expensive        listings are refused first if DynamoDB is overloaded              shedding
    Authenticated           the event is read; its token must name a tenant                   endpoints, request
    Limited                 a resource's quota of requests per tenant, if it has one          quotas
    ItemReadRoute, ...      request to operation, result to response                          item_reads, listings, ...
    ItemReads, ...          the operation, the same over REST and direct invocation           operations
    Collection              the library, which tries contended writes again
    CountingTransport       throttles are counted, for the growth of shard counts             backend
    TracedTransport         calls are reported to X-Ray, if `TRACE_CALLS` is on               backend, telemetry
    Attempts                retries within the deadline, with backoff and a quota
    DirectTransport         the connection to DynamoDB
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from dynashard.runtime import SYSTEM, Runtime
from dynashard.service import Dynashard
from dynashard.transport.interface import Transport
from dynashard_serving.api.endpoints import Parts, makers_of
from dynashard_serving.api.problems import CONTENT_TYPE, ProblemError, problem_of, problem_response, problem_text
from dynashard_serving.api.request import TenantClaim, caller_of, is_http_event, path_of, request_id_of, tenant_of
from dynashard_serving.api.request_log import Observed, Observer
from dynashard_serving.api.resource import PREFIX
from dynashard_serving.api.response import UNDECODABLE, Response, gateway_answer
from dynashard_serving.api.routes import UNKNOWN, Endpoint, Routes
from dynashard_serving.api.settings import Settings
from dynashard_serving.backend import open_backend
from dynashard_serving.domain import Domain, declared
from dynashard_serving.limits import seconds_left
from dynashard_serving.refusals import expected, one_line
from dynashard_serving.request_bounds import RequestBounds
from dynashard_serving.shedding import LoadSignal

if TYPE_CHECKING:
    from dynashard_serving.api.queue_sender import QueueSender
    from dynashard_serving.api.quotas import Quotas
    from dynashard_serving.idempotency import IdempotentCreates

Answer = dict[str, Any]

_INTERNAL_ERROR = 500
_READING = ("GET", "HEAD")
_ROOT = f"{PREFIX}/"


class _Routed(Struct, frozen=True):
    """A request and where it leads; `endpoint` is None if nothing is served at its path."""

    event: Mapping[str, Any]
    context: Any
    method: str
    path: str
    endpoint: Endpoint | None


class _Performed(NamedTuple):
    """The response to a request, the code of its refusal, and the error for the log if the fault is on our side."""

    response: Response[Any]
    code: str | None = None
    logged: str | None = None


class App:
    """The API. Threads may share it."""

    def __init__(self, routes: Routes, observer: Observer, tenant_claim: TenantClaim, bounds: RequestBounds) -> None:
        self._routes = routes
        self._observer = observer
        self._tenant_claim = tenant_claim
        self._bounds = bounds

    def handle(self, event: Mapping[str, Any], context: Any = None) -> Answer:
        """Answer one event of an HTTP API (payload format 2.0).

        Every error becomes a problem document; nothing the request does makes this raise.
        """
        if not is_http_event(event):
            return _malformed(event, context)
        path, method = path_of(event), str(event["requestContext"]["http"]["method"])
        return gateway_answer(self._answered(_Routed(event, context, method, path, self._routes.find(path))))

    def _answered(self, request: _Routed) -> Response[Any]:
        """Answer a request within its bounds, and leave its line in the log."""
        endpoint, request_id = request.endpoint, request_id_of(request.event, request.context)
        (response, code, logged), used = self._bounds.run(
            lambda: self._performed(request),
            lambda error: self._refused(error, request_id),
            left=seconds_left(request.context),
            expensive=endpoint is not None and endpoint.expensive and request.method in _READING,
        )
        response.headers["X-Request-Id"] = request_id
        if code is None and request.method in _READING and (number := used.meter.undecodable):
            response.headers[UNDECODABLE] = str(number)
        if request.method == "HEAD":
            response.body = ""
        self._observer.answered(
            Observed(
                request_id=request_id,
                method=request.method,
                route=UNKNOWN if endpoint is None else endpoint.template,
                status=response.status_code,
                tenant=self._tenant_of(request.event),
                milliseconds=used.seconds * 1000,
                meter=used.meter,
                code=code,
                error=logged,
                items=response.items,
                item=_item_of(request, response),
                revision=_revision_of(response),
                caller=caller_of(request.event),
                described=response.described,
            )
        )
        return response

    def _performed(self, request: _Routed) -> _Performed:
        handler = None if request.endpoint is None else request.endpoint.handler(request.method)
        if handler is None:
            raise self._routes.refusal(request.method, request.path)
        return _Performed(handler(request.event, request.path, request.context))

    def _refused(self, error: Exception, request_id: str) -> _Performed:
        (refusal, headers), logged = problem_of(error), None
        if refusal.status >= _INTERNAL_ERROR:
            logged = one_line(error)
            if not expected(error):
                self._observer.failed(request_id, error)
        return _Performed(problem_response(refusal, headers, request_id), refusal.code, logged)

    def _tenant_of(self, event: Mapping[str, Any]) -> str | None:
        try:
            return tenant_of(event, self._tenant_claim)
        except ProblemError:
            return None


def build_app(
    settings: Settings,
    transport: Transport,
    *,
    domain: Domain | None = None,
    backend: Dynashard | None = None,
    runtime: Runtime = SYSTEM,
    sender: "QueueSender | None" = None,
) -> App:
    """Compose the API of a domain, by default of the package `domain`; raises as `declared`.

    `backend` and `sender` are opened from the settings unless they are given.
    """
    domain = domain or declared()
    observer = Observer(
        settings.measured_as,
        metrics=settings.environment != "local",
        item_keys=settings.log_item_keys,
        level=settings.log_level,
    )
    parts = Parts(
        settings,
        domain,
        backend or open_backend(settings, transport, domain.models, observer, runtime=runtime),
        idempotent=cache(lambda: _idempotent_creates(settings, transport, runtime.clock)),
        sender=cache(lambda: sender or _queue_sender()),
        quotas=cache(lambda: _quotas(settings, transport, runtime.clock)),
        clock=runtime.clock,
    )
    load = LoadSignal(runtime.clock, runtime.random)
    bounds = RequestBounds(runtime.clock, load, max_queries=settings.max_queries)
    return App(Routes(makers_of(parts)), observer, settings.tenant, bounds)


def _idempotent_creates(settings: Settings, transport: Transport, clock: Callable[[], float]) -> "IdempotentCreates":
    from dynashard_serving.idempotency import IdempotentCreates  # noqa: PLC0415 - only for writes

    return IdempotentCreates(settings.idempotency_table, transport, clock=clock)


def _quotas(settings: Settings, transport: Transport, clock: Callable[[], float]) -> "Quotas":
    from dynashard_serving.api.quotas import Quotas  # noqa: PLC0415 - only for resources with a quota

    return Quotas(settings.idempotency_table, transport, clock)


def _queue_sender() -> "QueueSender":
    from dynashard_serving.api.queue_sender import QueueSender  # noqa: PLC0415 - only where there are queues
    from dynashard_serving.aws_services import sqs_client  # noqa: PLC0415

    return QueueSender(sqs_client)


def _malformed(event: Any, context: Any) -> Answer:
    refusal, _ = problem_of(ProblemError("malformed_event", "This function answers events of an HTTP API, format 2.0."))
    body = problem_text(refusal, request_id_of(event, context))
    return {"statusCode": refusal.status, "headers": {"Content-Type": CONTENT_TYPE}, "body": body}


def _item_of(request: _Routed, response: Response[Any]) -> str | None:
    """Return the path below the version of the item that a request is about; None if it is about none."""
    if request.endpoint is None:
        return None
    path = response.headers.get("Location", request.path) if request.method == "POST" else request.path
    if "{" not in request.endpoint.template and path is request.path:
        return None
    return path.removeprefix(_ROOT)


def _revision_of(response: Response[Any]) -> str | None:
    tag = response.headers.get("ETag")
    return None if tag is None else tag.strip('"')
