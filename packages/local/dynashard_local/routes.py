"""Reads the gateway's routes, authorizers and CORS settings from the template."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dynashard_local.errors import LocalStackError
from dynashard_local.template import Resource, Templates

DEFAULT_ROUTE = "$default"
LOCAL_PAGES: Final = r"https?://(localhost|127\.0\.0\.1)(:\d+)?"
"""The origins of pages that are served from this machine, on any port."""


@dataclass(frozen=True, slots=True)
class Authorizer:
    """A JWT authorizer."""

    audience: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Route:
    """One route. `key` is `GET /v1/users/{id}`, or `$default`; `function` is the function's name."""

    key: str
    function: str
    authorizer: Authorizer | None = None
    scopes: tuple[str, ...] = ()
    expensive: bool = False
    """Whether the gateway has separate limits for it, so that its calls are refused before others."""

    method: str = field(init=False)
    """HTTP method, or `ANY`."""
    segments: tuple[str, ...] = field(init=False)
    """The path's segments."""
    greedy: bool = field(init=False)
    """Whether the last segment stands for all that follow."""

    def __post_init__(self) -> None:
        method, _, path = ("ANY", "", "/{proxy+}") if self.key == DEFAULT_ROUTE else self.key.partition(" ")
        object.__setattr__(self, "method", method)
        object.__setattr__(self, "segments", tuple(path.strip("/").split("/")))
        object.__setattr__(self, "greedy", self.segments[-1].endswith("+}"))

    @property
    def rank(self) -> tuple[bool, bool, tuple[bool, ...], bool]:
        """Smaller is more specific: whole paths, then greedy ones, then `$default`; a method before `ANY`."""
        variables = tuple(segment.startswith("{") for segment in self.segments)
        return self.key == DEFAULT_ROUTE, self.greedy, variables, self.method == "ANY"

    def match(self, method: str, path: str) -> dict[str, str] | None:
        """Return the path parameters if the route matches a request, else None."""
        return self.match_segments(path.strip("/").split("/")) if self.method in ("ANY", method) else None

    def match_segments(self, given: Sequence[str]) -> dict[str, str] | None:
        """Return the path parameters if the route matches the segments of a path, else None."""
        length = len(self.segments)
        if len(given) != length and not (self.greedy and len(given) > length):
            return None
        parameters: dict[str, str] = {}
        for segment, part in zip(self.segments, given, strict=False):
            if not segment.startswith("{"):
                if segment != part:
                    return None
            elif segment.endswith("+}"):
                parameters[segment[1:-2]] = "/".join(given[length - 1 :])
            elif part:
                parameters[segment[1:-1]] = part
            else:
                return None
        return {} if self.key == DEFAULT_ROUTE else parameters


@dataclass(frozen=True, slots=True)
class Cors:
    """The gateway's answers to browsers of other origins; none by default.

    `pattern` admits further origins, besides those that are listed.
    """

    origins: tuple[str, ...] = ()
    pattern: str = ""
    methods: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    exposed: tuple[str, ...] = ()
    max_age_seconds: int = 0
    credentials: bool = False

    @property
    def applies(self) -> bool:
        """Whether any other origin is allowed."""
        return bool(self.origins or self.pattern)

    def lines(self, origin: str) -> list[tuple[str, str]]:
        """Return the headers for an answer to this origin; none if it is not allowed."""
        listed = origin in self.origins or "*" in self.origins
        if not listed and not (self.pattern and re.fullmatch(self.pattern, origin)):
            return []
        lines = [("access-control-allow-origin", "*" if "*" in self.origins else origin), ("vary", "origin")]
        if self.credentials:
            lines.append(("access-control-allow-credentials", "true"))
        if self.exposed:
            lines.append(("access-control-expose-headers", ",".join(self.exposed)))
        return lines

    def preflight(self, origin: str) -> list[tuple[str, str]]:
        """Return the headers for the answer to a preflight request of this origin."""
        lines = self.lines(origin)
        if lines:
            lines.append(("access-control-allow-methods", ",".join(self.methods)))
            lines.append(("access-control-allow-headers", ",".join(self.headers)))
            lines.append(("access-control-max-age", str(self.max_age_seconds)))
        return lines


FROM_THIS_MACHINE: Final = Cors(
    pattern=LOCAL_PAGES, methods=("*",), headers=("*", "authorization"), exposed=("*",), max_age_seconds=600
)
"""What holds if the template has no CORS settings: a front end in development runs on a port of its own."""


@dataclass(frozen=True, slots=True)
class RouteTable:
    """The routes of the gateway, most specific first, and its CORS settings."""

    routes: Sequence[Route]
    cors: Cors = field(default_factory=Cors)

    def match(self, method: str, path: str) -> tuple[Route, dict[str, str]] | None:
        """Return the most specific route for a request, with its path parameters; None for a 404."""
        given = path.strip("/").split("/")
        for route in self.routes:
            if route.method in ("ANY", method) and (parameters := route.match_segments(given)) is not None:
                return route, parameters
        return None

    @property
    def audience(self) -> tuple[str, ...]:
        """Every audience that an authorizer accepts."""
        return tuple(
            dict.fromkeys(name for route in self.routes if route.authorizer for name in route.authorizer.audience)
        )


def route_table(templates: Templates) -> RouteTable:
    """Return the routes of the template's HTTP APIs.

    Raises:
        LocalStackError: there is no route, or one that the local gateway cannot serve.
    """
    limited = _limited(templates)
    routes = [_route(templates, resource, limited) for resource in templates.of_type("AWS::ApiGatewayV2::Route")]
    if not routes:
        raise LocalStackError("The template has no AWS::ApiGatewayV2::Route: there is nothing to serve.")
    return RouteTable(sorted(routes, key=lambda route: route.rank), _cors(templates))


def _limited(templates: Templates) -> frozenset[str]:
    """Return the keys of routes with separate limits in a stage."""
    stages = templates.of_type("AWS::ApiGatewayV2::Stage")
    return frozenset(key for stage in stages for key in stage.properties.get("RouteSettings") or {})


def _route(templates: Templates, resource: Resource, limited: frozenset[str]) -> Route:
    properties = resource.properties
    key = templates.resolve(resource.stack, properties["RouteKey"])
    kind = properties.get("AuthorizationType", "NONE")
    authorizer = None
    if kind == "JWT":
        at = templates.at(resource.stack, properties["AuthorizerId"])
        if at is None:
            raise LocalStackError(f"Route {key} names an authorizer that the template does not have.")
        jwt = templates.resolve(at.stack, at.properties["JwtConfiguration"])
        authorizer = Authorizer(tuple(jwt["Audience"]))
    elif kind != "NONE":
        raise LocalStackError(f"Route {key} has authorization {kind}, which the local gateway does not have.")
    scopes = tuple(properties.get("AuthorizationScopes", ()))
    return Route(key, _function(templates, resource, key), authorizer, scopes, expensive=key in limited)


def _function(templates: Templates, route: Resource, key: str) -> str:
    for part in _parts(route.properties.get("Target")):
        integration = templates.at(route.stack, part)
        if integration is None or integration.type != "AWS::ApiGatewayV2::Integration":
            continue
        for uri_part in _parts(integration.properties.get("IntegrationUri")):
            function = templates.at(integration.stack, uri_part)
            if function is not None and function.type == "AWS::Lambda::Function":
                return function.name
    raise LocalStackError(f"Route {key} does not lead to a function of the template.")


def _parts(value: Any) -> Iterable[Any]:
    """Return the parts of a joined value."""
    if isinstance(value, Mapping) and "Fn::Join" in value:
        return list(value["Fn::Join"][1])
    return [value]


def _cors(templates: Templates) -> Cors:
    for api in templates.of_type("AWS::ApiGatewayV2::Api"):
        declared = templates.resolve(api.stack, api.properties.get("CorsConfiguration") or {})
        if declared:
            return Cors(
                origins=tuple(declared.get("AllowOrigins", ())),
                methods=tuple(declared.get("AllowMethods", ())),
                headers=tuple(declared.get("AllowHeaders", ())),
                exposed=tuple(declared.get("ExposeHeaders", ())),
                max_age_seconds=int(declared.get("MaxAge", 0)),
                credentials=bool(declared.get("AllowCredentials", False)),
            )
    return FROM_THIS_MACHINE
