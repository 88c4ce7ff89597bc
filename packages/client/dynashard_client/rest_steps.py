"""REST: requests of direct invocation as HTTP requests, and their answers as results. No I/O."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeVar
from urllib.parse import quote, urlencode

from dynashard_client.answers import Outcome, refusal_in, refused
from dynashard_client.batches import divided
from dynashard_client.documents import TENANT, written
from dynashard_client.errors import (
    ConfigurationError,
    DynashardError,
    EngineUnavailableError,
    FieldError,
    InputError,
    NotFoundError,
    RefusedError,
    TableThrottledError,
    ValidationFailedError,
)
from dynashard_client.resource import Resource
from dynashard_client.retries import LostError
from dynashard_client.steps import Request, Steps

T = TypeVar("T")
_PROBLEM: Final = "application/problem+json"
_CREATED: Final = 201
_ACCEPTED: Final = 202
_REDIRECTED: Final = 300
"""From here on no status is a success. Redirects are not followed, because they would take the token elsewhere."""
_TOO_MANY: Final = 429
_SERVER_ERROR: Final = 500
_CODES: Final = {401: "unauthenticated", 403: "forbidden", 404: "no_such_route", 413: "body_too_large"}
"""Of refusals that the gateway itself answers."""
_PLAIN: Final = ("index", "order", "direction", "limit", "cursor", "prefix", "from", "to", "distinct")
"""Members of a listing that are query parameters as they are."""
_OPERATORS: Final = frozenset({"eq", "ne", "gt", "gte", "lt", "lte", "in", "prefix", "contains", "exists"})
ANY: Final = "*"
"""Stands for any revision."""
_DOTS: Final = (".", "..")
_MOST_COUNTED: Final = 100_000
"""Items that the API counts in one request."""
_NO_BATCHES: Final = frozenset({"method_not_allowed", "no_such_route"})
"""Codes of backends of an earlier release, and of resources without batches."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request as it is sent, without the token.

    Attributes:
        method, url: what is asked for, where.
        headers: all but `Authorization`.
        body: JSON; None if there is none.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer as it came.

    Attributes:
        status: of HTTP.
        headers: in which names are found in any case.
        body: not compressed.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


RestSteps = Steps[HttpRequest, T]
"""Work that yields requests, each of which is answered by an `HttpAnswer`, or raises `LostError`."""


class RestApi:
    """What each operation asks of the API, and what its answers mean.

    Args:
        url: of the API, with or without `/v1`.
    """

    def __init__(self, url: str) -> None:
        self._root = url.rstrip("/").removesuffix("/v1") + "/v1"

    def ask(self, resource: Resource[Any], request: Request) -> RestSteps[Any]:
        """Ask once; see `ClientTransport.ask`."""
        operations: Mapping[str, Callable[[Resource[Any], Request], RestSteps[Any]]] = {
            "create": self._create,
            "get": self._get,
            "put": self._put,
            "update": self._update,
            "delete": self._delete,
            "list": self._list,
            "count": self._count,
            "batch_get": self._batch_get,
            "batch_write": self._batch_write,
            "batch": self._batch,
        }
        return operations[request["operation"]](resource, request)

    def call(self, name: str, request: Request) -> NoReturn:
        """Refuse the call, because systems that are not entities have paths of their own over REST."""
        raise ConfigurationError(f"{request['operation']} of {name} goes over Lambda: ask the paths of REST themselves")

    def _create(self, resource: Resource[Any], request: Request) -> RestSteps[Any]:
        key = request.get("idempotency_key")
        headers = {} if key is None else {"Idempotency-Key": key}
        status, document = yield from self._sent("POST", self._path(resource), request["item"], headers)
        # An item that lies on the queue has no revision yet.
        return request["item"] if status == _ACCEPTED else document

    def _get(self, resource: Resource[Any], request: Request) -> RestSteps[Any]:
        query = {"consistent": "true"} if request.get("consistent") else {}
        query |= {name: ",".join(request[name]) for name in ("include", "fields") if request.get(name) is not None}
        asked = f"?{urlencode(query)}" if query else ""
        return (yield from self._sent("GET", self._address(resource, request["key"]) + asked))[1]

    def _put(self, resource: Resource[Any], request: Request) -> RestSteps[Any]:
        path = self._address(resource, request["item"])
        headers = {"Prefer": "return=minimal"} if request.get("minimal") else {}
        status, document = yield from self._sent("PUT", path, request["item"], {**headers, **_if_match(request)})
        return {"item": document, "created": status == _CREATED}

    def _update(self, resource: Resource[Any], request: Request) -> RestSteps[Any]:
        kind = "merge-patch" if isinstance(request["patch"], Mapping) else "json-patch"
        headers = {"Content-Type": f"application/{kind}+json", **_if_match(request)}
        return (yield from self._sent("PATCH", self._address(resource, request["key"]), request["patch"], headers))[1]

    def _delete(self, resource: Resource[Any], request: Request) -> RestSteps[None]:
        yield from self._sent("DELETE", self._address(resource, request["key"]), headers=_if_match(request))

    def _list(self, resource: Resource[Any], request: Request) -> RestSteps[Any]:
        return (yield from self._sent("GET", f"{self._path(resource)}?{urlencode(_query_of(request))}"))[1]

    def _count(self, resource: Resource[Any], request: Request) -> RestSteps[Any]:
        up_to = request.get("up_to")
        query = [*_query_of(request), ("up_to", str(_MOST_COUNTED if up_to is None else up_to))]
        try:
            counted = (yield from self._sent("GET", f"{self._path(resource)}/count?{urlencode(query)}"))[1]
        except NotFoundError:
            # A backend of an earlier release takes this for the address of an item.
            counted = {"exact": False}
        if up_to is not None and "count" in counted:
            return counted
        return counted["count"] if counted["exact"] else (yield from self._paged(resource, request))

    def _paged(self, resource: Resource[Any], request: Request) -> RestSteps[int]:
        """Count more than one request may: the pages are read, with one field of each item."""
        asked = {**request, "fields": [resource.address[-1]], "limit": 1000}
        count = 0
        while True:
            page = yield from self._list(resource, asked)
            count += len(page["items"])
            if page["cursor"] is None:
                return count
            asked["cursor"] = page["cursor"]

    def _batch(self, resource: Resource[Any], request: Request) -> RestSteps[Any]:
        path = f"{self._path(resource)}/batch"
        return (yield from self._sent("POST", path, {"requests": request["requests"]}))[1]["outcomes"]

    def _batch_get(self, resource: Resource[Any], request: Request) -> RestSteps[Sequence[Any]]:
        consistent = {"consistent": True} if request.get("consistent") else {}
        gets = [{"operation": "get", "key": key, **consistent} for key in request["keys"]]
        return self._each(resource, gets, lambda get: _outcome(self._get(resource, get)))

    def _batch_write(self, resource: Resource[Any], request: Request) -> RestSteps[dict[str, Sequence[Any]]]:
        puts = [{"operation": "put", "item": item} for item in request.get("put", ())]
        deletes = [{"operation": "delete", "key": key} for key in request.get("delete", ())]

        def put(each: Request) -> RestSteps[Outcome[Any]]:
            return _outcome(self._put(resource, {**each, "minimal": True}), read=False)

        def gone(each: Request) -> RestSteps[Outcome[Any]]:
            return _outcome(self._gone(resource, each), read=False)

        stored = yield from self._each(resource, puts, put)
        deleted = yield from self._each(resource, deletes, gone)
        return {"put": [_without_item(each) for each in stored], "delete": [_without_item(each) for each in deleted]}

    def _each(
        self, resource: Resource[Any], requests: Sequence[Request], alone: Callable[[Request], RestSteps[Outcome[Any]]]
    ) -> RestSteps[list[Any]]:
        """The outcomes of requests in batches; each is sent alone to a backend that takes no batch of them."""
        outcomes: list[Any] = []
        for places in divided(requests):
            part = [requests[place] for place in places]
            try:
                outcomes += yield from self._batch(resource, {"requests": part})
            except RefusedError as refused:
                if refused.code not in _NO_BATCHES:
                    raise
                for each in part:
                    outcomes.append((yield from alone(each)))
        return outcomes

    def _gone(self, resource: Resource[Any], request: Request) -> RestSteps[None]:
        """A batch deletes whether or not there is an item."""
        with suppress(NotFoundError):
            yield from self._delete(resource, request)

    def _path(self, resource: Resource[Any]) -> str:
        return f"{self._root}/{resource.path}"

    def _address(self, resource: Resource[Any], document: Mapping[str, Any]) -> str:
        missing = [name for name in resource.address if document.get(name) is None]
        if missing:
            message = f"The key of {resource.name} needs {missing[0]}."
            raise InputError(message, errors=[FieldError(missing[0], message, InputError.code)])
        values = {name: _text(document[name]) for name in resource.address}
        _refuse_unaddressable(resource, values)
        return "/".join([self._path(resource), *(quote(value, safe="") for value in values.values())])

    def _sent(
        self, method: str, url: str, document: Any = None, headers: Mapping[str, str] | None = None
    ) -> RestSteps[tuple[int, Any]]:
        sent = {"Accept": "application/json", "Accept-Encoding": "gzip", **(headers or {})}
        body = None
        if document is not None:
            sent.setdefault("Content-Type", "application/json")
            body = written(document).encode()
        answer: HttpAnswer = yield HttpRequest(method, url, sent, body)
        if answer.status >= _REDIRECTED:
            _refuse(answer)
        return answer.status, _document(answer) if answer.body else None


def lost(reason: str) -> LostError:
    """Return the error of a request that no answer came to."""
    return LostError(EngineUnavailableError(f"No answer came ({reason}): what was asked for may have been done."))


def _document(answer: HttpAnswer) -> Any:
    try:
        return json.loads(answer.body)
    except ValueError as error:
        raise lost(f"status {answer.status} without valid JSON") from error


def _query_of(request: Request) -> list[tuple[str, str]]:
    """The query parameters of a listing or a count."""
    query: list[tuple[str, str]] = [(name, str(request[name])) for name in _PLAIN if request.get(name) is not None]
    for name, value in (request.get("partition") or {}).items():
        values = value if isinstance(value, list) else [value]
        query += [(name, _text(each)) for each in values if name != TENANT]
    for member in ("sort", "filters"):
        for name, value in (request.get(member) or {}).items():
            query += _conditions(name, value)
    if request.get("fields") is not None:
        query.append(("fields", ",".join(request["fields"])))
    if request.get("consistent"):
        query.append(("consistent", "true"))
    return query


def _conditions(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """The parameters of one field: with a mapping of operators, such as `created_at[gte]`, one for each."""
    if not isinstance(value, Mapping) or not value or not value.keys() <= _OPERATORS:
        yield name, _text(value)
        return
    for operator, operand in value.items():
        parameter = name if operator == "eq" else f"{name}[{operator}]"
        if operator != "in":
            yield parameter, _text(operand)
            continue
        members = [_text(member) for member in operand]
        # A comma separates values, unless the parameter is given several times.
        plain = not any("," in member for member in members)
        for text in [",".join(members)] if plain else (*members, members[-1]):
            yield parameter, text


def _without_item(outcome: Outcome[Any] | Mapping[str, Any]) -> Outcome[Any] | Mapping[str, Any]:
    """The outcome of a write in a batch that stores and deletes whether or not there is an item."""
    if not isinstance(outcome, Mapping):
        return outcome
    done = outcome["ok"] or outcome["error"]["code"] == NotFoundError.code
    return Outcome() if done else outcome


def _outcome(steps: RestSteps[Any], *, read: bool = True) -> RestSteps[Outcome[Any]]:
    try:
        result = yield from steps
    except LostError as lost:
        return Outcome(error=lost.error)
    except DynashardError as error:
        return Outcome(error=error)
    return Outcome(result if read else None)


def _if_match(request: Request) -> dict[str, str]:
    revision = request.get("if_match")
    return {} if revision is None else {"If-Match": revision if revision == ANY else f'"{revision}"'}


def _refuse_unaddressable(resource: Resource[Any], values: Mapping[str, str]) -> None:
    """Refuse a key that no path can carry: its path would lead to another item, or to another resource.

    Senders resolve `.` and `..`. The gateway cuts a path at a decoded `?`, and passes on a decoded `/`, which divides
    fields before the last one.
    """
    for name, value in values.items():
        inner = name != resource.address[-1]
        if not value or value in _DOTS or "?" in value or (inner and "/" in value):
            message = f"{name} of {resource.name} is {value!r}, which no path can carry. Use direct invocation."
            raise ValidationFailedError(message, errors=[FieldError(name, message, "unaddressable")])


def _text(value: Any) -> str:
    return value if isinstance(value, str) else written(value)


def _refuse(answer: HttpAnswer) -> None:
    """Raise the error of a refusal by the API, or by the gateway, whose refusals have few details."""
    problem = _problem_in(answer)
    if problem is None:
        _refuse_as_gateway(answer.status)
        return
    header = answer.headers.get("Retry-After", "")
    retry_after = int(header) if header.isascii() and header.isdecimal() else None
    error = refusal_in(problem, status=answer.status, retry_after=retry_after, request_id=problem.get("request_id"))
    raise LostError(error) if error.code == "internal_error" else error


def _problem_in(answer: HttpAnswer) -> Mapping[str, Any] | None:
    if answer.headers.get("Content-Type", "").partition(";")[0].strip() != _PROBLEM:
        return None
    try:
        problem = json.loads(answer.body)
    except ValueError:
        return None
    return problem if isinstance(problem, dict) and "code" in problem else None


def _refuse_as_gateway(status: int) -> None:
    if status == _TOO_MANY:
        raise TableThrottledError("The gateway takes no more requests now: try again.", retry_after=1)
    if status >= _SERVER_ERROR:
        raise LostError(
            EngineUnavailableError(f"The gateway answered {status}: what was asked for may have been done.")
        )
    message = f"The gateway answered {status}; is the token good, and the address right?"
    raise refused(_CODES.get(status, "refused"), message, status=status)
