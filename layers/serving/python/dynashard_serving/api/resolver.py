"""Powertools' resolver with all routes, for requests that the route table has no operation for.

It is imported with the first such request.
"""

from collections.abc import Callable, Mapping
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Request
from aws_lambda_powertools.event_handler import Response as PowertoolsResponse
from aws_lambda_powertools.event_handler.api_gateway import Router
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from dynashard_serving.api.responses import Response
from dynashard_serving.api.routes import Handler, Routes

Next = Callable[[Any], PowertoolsResponse[Any]]
Around = Callable[[Mapping[str, Any], str, Any, Callable[[], Any]], Any]
"""Answers an event with its path and Lambda's context by a function, whose errors it answers too."""


class Resolver(APIGatewayHttpResolver):
    """Powertools' resolver with the request kept on the object.

    Powertools keeps the request on the class of all resolvers, where threads would see each other's. Here each
    thread has a resolver of its own, and an attribute of the object hides the class's.
    """

    def resolve(self, event: Mapping[str, Any], context: Any) -> dict[str, Any]:
        """Answer one event."""
        self.current_event = APIGatewayProxyEventV2(dict(event))
        self.lambda_context = context
        self.append_context(lambda_context=context)  # type: ignore[no-untyped-call]
        return super().resolve(event, context)


def resolver_of(routes: Routes, around: Around) -> Resolver:
    """Return a new resolver of all routes that answers every request by `around`."""
    made = Resolver(debug=False)
    made.use(middlewares=[_middleware(around)])
    made.include_router(_router(routes))
    made.not_found(lambda _: routes.refuse(made.current_event.http_method, made.current_event.path))
    return made


def powertools_response(response: Response[Any]) -> PowertoolsResponse[Any]:
    """Return a response as Powertools' own."""
    made = PowertoolsResponse(response.status_code, response.content_type, response.body, {**response.headers})
    made.items = response.items  # type: ignore[attr-defined]
    return made


def _middleware(around: Around) -> Callable[[Resolver, Next], PowertoolsResponse[Any]]:
    def answer(resolver: Resolver, following: Next) -> PowertoolsResponse[Any]:
        event = resolver.current_event
        found = around(event.raw_event, event.path, resolver.lambda_context, lambda: following(resolver))
        return powertools_response(found) if isinstance(found, Response) else found

    # A function, not a method: Powertools keeps what it learns about a middleware's signature on it.
    return answer


def _router(routes: Routes) -> Router:
    """Return a router of all endpoints. `HEAD` goes where `GET` goes."""
    router = Router()  # type: ignore[no-untyped-call]
    for endpoint in routes.endpoints:
        for method, handler in endpoint.handlers.items():
            methods = ["GET", "HEAD"] if method == "GET" else [method]
            router.route(endpoint.rule, method=methods)(_entry(handler))
    return router


def _entry(handler: Handler) -> Callable[[Request], PowertoolsResponse[Any]]:
    def entry(request: Request) -> PowertoolsResponse[Any]:
        event = request.resolved_event
        return powertools_response(handler(event.raw_event, event.path, request.context.get("lambda_context")))

    return entry
