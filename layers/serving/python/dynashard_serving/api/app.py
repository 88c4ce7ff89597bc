"""The composed API: the route of every request, and around it its errors, its log line and its metrics."""

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from dynashard.reads import allowing
from dynashard.runtime import SYSTEM, Runtime
from dynashard.transport.deadline import within
from dynashard.transport.interface import Transport, metered
from dynashard_serving.api import problems
from dynashard_serving.api.answers import answer_of, path_of
from dynashard_serving.api.observing import Observed, Observer
from dynashard_serving.api.problems import ProblemError, problem_of
from dynashard_serving.api.request import TenantClaim, tenant_of
from dynashard_serving.api.resource import PREFIX
from dynashard_serving.api.responses import Response
from dynashard_serving.api.routes import UNKNOWN, Endpoint, Routes
from dynashard_serving.api.settings import Settings
from dynashard_serving.backend import Backend, open_backend
from dynashard_serving.domain import Domain, declared
from dynashard_serving.environment import seconds_left, time_to_answer
from dynashard_serving.limits import MAX_QUERIES, READING_SHARE
from dynashard_serving.refusals import Refusal, expected, one_line
from dynashard_serving.shedding import LoadSignal

if TYPE_CHECKING:
    from dynashard_serving.api.deferred import Deferred
    from dynashard_serving.api.queue_sender import QueueSender
    from dynashard_serving.idempotency import IdempotentCreates

Answer = dict[str, Any]
Clock = Callable[[], float]

_INTERNAL_ERROR = 500
_ROOT = f"{PREFIX}/"


class _Request(NamedTuple):
    """A request and where it leads; `endpoint` is None if nothing is served at its path."""

    event: Mapping[str, Any]
    context: Any
    method: str
    path: str
    endpoint: Endpoint | None

    @property
    def expensive(self) -> bool:
        """Whether it asks for many items: a listing, or sums of many."""
        return self.endpoint is not None and self.endpoint.expensive and self.method in ("GET", "HEAD")


class App:
    """The API. Threads may share it."""

    def __init__(
        self,
        routes: Routes,
        observer: Observer,
        tenant_claim: TenantClaim,
        clock: Clock,
        *,
        max_queries: int = MAX_QUERIES,
        load: LoadSignal | None = None,
    ) -> None:
        self._routes = routes
        self._observer = observer
        self._tenant_claim = tenant_claim
        self._max_queries = max_queries
        self._clock = clock
        self._load = load or LoadSignal(clock)

    def handle(self, event: Mapping[str, Any], context: Any = None) -> Answer:
        """Answer one event of an HTTP API (payload format 2.0).

        Every error becomes a problem document; nothing the request does makes this raise.
        """
        if not _is_http_event(event):
            refused = ProblemError("malformed_event", "This function answers events of an HTTP API, format 2.0.")
            body = _problem_text(problem_of(refused)[0], _request_id(event, context))
            return {"statusCode": refused.status, "headers": {"Content-Type": problems.CONTENT_TYPE}, "body": body}
        path, method = path_of(event), str(event["requestContext"]["http"]["method"])
        endpoint = self._routes.find(path)
        perform = None if endpoint is None else endpoint.handler(method)
        request = _Request(event, context, method, path, endpoint)
        if perform is None:
            return answer_of(self._answered(request, lambda: self._routes.refuse(method, path)))
        return answer_of(self._answered(request, lambda: perform(event, path, context)))

    def _answered(self, request: "_Request", perform: Callable[[], Response[Any]]) -> Response[Any]:
        """Answer a request within its time and its allowance, and leave its line in the log."""
        started = self._clock()
        request_id = _request_id(request.event, request.context)
        code, logged = None, None
        left = seconds_left(request.context)
        with within(time_to_answer(left)), metered() as meter, allowing(self._max_queries, left * READING_SHARE):
            try:
                if request.expensive:
                    self._load.refuse_expensive()
                response = perform()
            except Exception as error:  # noqa: BLE001 - the one place where every error becomes an answer
                response, code, logged = self._refusal(error, request_id)
        seconds = self._clock() - started
        self._load.observe(meter, seconds, expensive=request.expensive, code=code)
        response.headers["X-Request-Id"] = request_id
        if request.method == "HEAD":
            response.body = ""
        self._observer.answered(
            Observed(
                request_id=request_id,
                method=request.method,
                route=UNKNOWN if request.endpoint is None else request.endpoint.template,
                status=int(response.status_code),
                tenant=self._tenant(request.event),
                milliseconds=seconds * 1000,
                meter=meter,
                code=code,
                error=logged,
                items=getattr(response, "items", None),
                item=_item_of(request, response),
                revision=_revision_of(response),
                caller=_caller(request.event),
            )
        )
        return response

    def _refusal(self, error: Exception, request_id: str) -> tuple[Response[Any], str, str | None]:
        """Return the answer, its code, and the error for the log if the fault is on our side."""
        (problem, headers), logged = problem_of(error), None
        if problem.status >= _INTERNAL_ERROR:
            logged = one_line(error)
            if not expected(error):
                self._observer.failed(request_id, error)
        body = _problem_text(problem, request_id)
        every = {**headers, "Cache-Control": "no-store"}
        answer = Response(problem.status, content_type=problems.CONTENT_TYPE, body=body, headers=every)
        return answer, problem.code, logged

    def _tenant(self, event: Mapping[str, Any]) -> str | None:
        try:
            return tenant_of(event, self._tenant_claim)
        except ProblemError:
            return None


def build_app(
    settings: Settings,
    transport: Transport,
    *,
    domain: Domain | None = None,
    runtime: Runtime = SYSTEM,
    sender: "QueueSender | None" = None,
) -> App:
    """Compose the API of a domain, by default of the package `domain`; raises as `declared`."""
    domain = domain or declared()
    observer = Observer(
        settings.environment,
        metrics=settings.environment != "local",
        item_keys=settings.log_item_keys,
        level=settings.log_level,
    )
    backend = open_backend(settings, transport, domain.models, observer, runtime=runtime)
    clock = runtime.clock

    @cache
    def idempotent() -> "IdempotentCreates":
        from dynashard_serving.idempotency import IdempotentCreates  # noqa: PLC0415 - only for writes

        return IdempotentCreates(settings.idempotency_table, transport, clock=clock)

    routes = Routes(
        settings,
        domain,
        backend,
        idempotent,
        deferred=_deferred(settings, backend, sender, clock),
        clock=clock,
    )
    load = LoadSignal(clock, runtime.random)
    return App(routes, observer, settings.tenant, clock, max_queries=settings.max_queries, load=load)


def _deferred(settings: Settings, backend: Backend, sender: "QueueSender | None", clock: Clock) -> "Deferred | None":
    """Return what accepts for later, if the settings name queues."""
    if settings.queue_url is None and settings.operations_queue_url is None:
        return None
    from dynashard_serving.api.deferred import Deferred  # noqa: PLC0415 - only where there are queues
    from dynashard_serving.api.queue_sender import QueueSender  # noqa: PLC0415
    from dynashard_serving.aws_services import sqs_client  # noqa: PLC0415

    queues = sender or QueueSender(sqs_client)
    return Deferred(backend, queues, settings.queue_url, settings.operations_queue_url, clock)


def _problem_text(problem: Refusal, request_id: str) -> str:
    # All ASCII: a problem may quote what the caller sent, half a surrogate pair included.
    return json.dumps(problem.problem(request_id))


def _item_of(request: _Request, response: Response[Any]) -> str | None:
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


def _caller(event: Mapping[str, Any]) -> str | None:
    """Return the subject of the verified token; None if there is none."""
    try:
        subject = event["requestContext"]["authorizer"]["jwt"]["claims"]["sub"]
    except (KeyError, TypeError):
        return None
    return subject if isinstance(subject, str) else None


def _is_http_event(event: Any) -> bool:
    try:
        context = event["requestContext"]
        path, stage, method = event["rawPath"], context["stage"], context["http"]["method"]
    except (KeyError, TypeError):
        return False
    return isinstance(path, str) and isinstance(stage, str) and isinstance(method, str)


def _request_id(event: Any, context: Any) -> str:
    request = event.get("requestContext") if isinstance(event, dict) else None
    found = request.get("requestId") if isinstance(request, dict) else None
    return str(found or getattr(context, "aws_request_id", None) or "unknown")
