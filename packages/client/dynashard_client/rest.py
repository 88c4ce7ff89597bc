"""REST: requests of direct invocation as HTTP requests, and their answers as results."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import quote, urlencode

import urllib3

from dynashard.entity import EntityDefinition
from dynashard.errors import (
    ConfigurationError,
    DynashardError,
    EngineUnavailableError,
    InputError,
    NotFoundError,
    TableThrottledError,
)
from dynashard_client.answers import Outcome, error_of, refusal_in
from dynashard_client.client_transport import Request
from dynashard_client.retries import LostError
from dynashard_serving.documents import TENANT, written
from dynashard_serving.refusals import Refusal

Token = str | Callable[[], str]
_PROBLEM: Final = "application/problem+json"
_CREATED: Final = 201
_ACCEPTED: Final = 202
_REFUSED: Final = 400
_TOO_MANY: Final = 429
_SERVER_ERROR: Final = 500
_CODES: Final = {401: "unauthenticated", 403: "forbidden", 404: "no_such_route", 413: "body_too_large"}
"""Of refusals that the gateway itself answers."""
_PLAIN: Final = ("index", "order", "direction", "limit", "cursor", "prefix", "from", "to", "distinct")
"""Members of a listing that are query parameters as they are."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an entity is served.

    Attributes:
        path: its path below `/v1`.
        address: the order of the key fields in an item's path; that of the key if empty.
    """

    path: str
    address: tuple[str, ...] = ()


class RestTransport:
    """Sends requests to the API.

    Args:
        url: of the API, with or without `/v1`.
        token: the bearer token, or what gives one for each request.
        places: where entities are served, by their names.
        timeout: for an answer, in seconds.
    """

    def __init__(self, url: str, token: Token, places: Mapping[str, Place], *, timeout: float = 35.0) -> None:
        self._root = url.rstrip("/").removesuffix("/v1") + "/v1"
        self._token = token
        self._places = places
        self._pool = urllib3.PoolManager(
            retries=False, timeout=urllib3.Timeout(connect=5.0, read=timeout), headers={"Accept": "application/json"}
        )

    def ask(self, entity: EntityDefinition[Any], request: Request) -> Any:
        """Ask once; see `ClientTransport.ask`."""
        operations: Mapping[str, Callable[[EntityDefinition[Any], Request], Any]] = {
            "create": self._create,
            "get": self._get,
            "put": self._put,
            "update": self._update,
            "delete": self._delete,
            "list": self._list,
            "count": self._count,
            "batch_get": self._batch_get,
            "batch_write": self._batch_write,
        }
        return operations[request["operation"]](entity, request)

    def call(self, name: str, request: Request) -> Any:
        """Refuse the call, because systems that are not entities have paths of their own over REST."""
        raise ConfigurationError(f"{request['operation']} of {name} goes over Lambda: ask the paths of REST themselves")

    def _create(self, entity: EntityDefinition[Any], request: Request) -> Any:
        key = request.get("idempotency_key")
        headers = {} if key is None else {"Idempotency-Key": key}
        status, document = self._sent("POST", self._path(entity), request["item"], headers)
        # An item that lies on the queue has no revision yet.
        return request["item"] if status == _ACCEPTED else document

    def _get(self, entity: EntityDefinition[Any], request: Request) -> Any:
        query = {"consistent": "true"} if request.get("consistent") else {}
        if request.get("include"):
            query["include"] = ",".join(request["include"])
        asked = f"?{urlencode(query)}" if query else ""
        return self._sent("GET", self._address(entity, request["key"]) + asked)[1]

    def _put(self, entity: EntityDefinition[Any], request: Request) -> Any:
        path = self._address(entity, request["item"])
        status, document = self._sent("PUT", path, request["item"], _if_match(request))
        return {"item": document, "created": status == _CREATED}

    def _update(self, entity: EntityDefinition[Any], request: Request) -> Any:
        headers = {"Content-Type": "application/merge-patch+json", **_if_match(request)}
        return self._sent("PATCH", self._address(entity, request["key"]), request["patch"], headers)[1]

    def _delete(self, entity: EntityDefinition[Any], request: Request) -> None:
        self._sent("DELETE", self._address(entity, request["key"]), headers=_if_match(request))

    def _list(self, entity: EntityDefinition[Any], request: Request) -> Any:
        query: list[tuple[str, str]] = [(name, str(request[name])) for name in _PLAIN if request.get(name) is not None]
        for member in ("partition", "sort", "filters"):
            for name, value in (request.get(member) or {}).items():
                values = value if member == "partition" and isinstance(value, list) else [value]
                query += [(name, _text(each)) for each in values if name != TENANT]
        if request.get("fields") is not None:
            query.append(("fields", ",".join(request["fields"])))
        if request.get("consistent"):
            query.append(("consistent", "true"))
        return self._sent("GET", f"{self._path(entity)}?{urlencode(query)}")[1]

    def _count(self, entity: EntityDefinition[Any], request: Request) -> int:
        """REST counts nothing: the pages are read, with one field of each item."""
        asked = {**request, "fields": [entity.key_fields[-1]], "limit": 1000}
        count = 0
        while True:
            page = self._list(entity, asked)
            count += len(page["items"])
            if page["cursor"] is None:
                return count
            asked["cursor"] = page["cursor"]

    def _batch_get(self, entity: EntityDefinition[Any], request: Request) -> list[Outcome[Any]]:
        asked = {"consistent": request.get("consistent")}
        return [_outcome(partial(self._get, entity, {**asked, "key": key})) for key in request["keys"]]

    def _batch_write(self, entity: EntityDefinition[Any], request: Request) -> dict[str, list[Outcome[Any]]]:
        puts = [partial(self._put, entity, {"item": item}) for item in request.get("put", ())]
        deletes = [partial(self._gone, entity, {"key": key}) for key in request.get("delete", ())]
        return {
            name: [_outcome(write, read=False) for write in each] for name, each in (("put", puts), ("delete", deletes))
        }

    def _gone(self, entity: EntityDefinition[Any], request: Request) -> None:
        """A batch deletes whether or not there is an item."""
        with suppress(NotFoundError):
            self._delete(entity, request)

    def _path(self, entity: EntityDefinition[Any]) -> str:
        return f"{self._root}/{self._place(entity).path}"

    def _place(self, entity: EntityDefinition[Any]) -> Place:
        if entity.name not in self._places:
            raise ConfigurationError(f"the path of {entity.name} is not known: give it to Client.rest with `entities`")
        return self._places[entity.name]

    def _address(self, entity: EntityDefinition[Any], document: Mapping[str, Any]) -> str:
        fields = self._place(entity).address or tuple(name for name in entity.key_fields if name != TENANT)
        missing = [name for name in fields if document.get(name) is None]
        if missing:
            raise InputError(f"the key of {entity.name} needs {missing[0]}", field=missing[0])
        return "/".join([self._path(entity), *(quote(_text(document[name]), safe="") for name in fields)])

    def _sent(
        self, method: str, url: str, document: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        token = self._token if isinstance(self._token, str) else self._token()
        sent = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/json",
            "Accept-Encoding": "gzip",
            **(headers or {}),
        }
        body = None
        if document is not None:
            sent.setdefault("Content-Type", "application/json")
            body = written(document).encode()
        try:
            answer = self._pool.request(method, url, body=body, headers=sent, redirect=False)
        except urllib3.exceptions.HTTPError as error:
            raise LostError(
                EngineUnavailableError(f"No answer came ({error}): what was asked for may have been done.")
            ) from error
        if answer.status >= _REFUSED:
            _refuse(answer)
        return answer.status, json.loads(answer.data) if answer.data else None

    def close(self) -> None:
        """Give back the connections."""
        self._pool.clear()


def _outcome(do: Callable[[], Any], *, read: bool = True) -> Outcome[Any]:
    try:
        result = do()
    except LostError as lost:
        return Outcome(error=lost.error)
    except DynashardError as error:
        return Outcome(error=error)
    return Outcome(result if read else None)


def _if_match(request: Request) -> dict[str, str]:
    revision = request.get("if_match")
    return {} if revision is None else {"If-Match": f'"{revision}"'}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else written(value)


def _refuse(answer: urllib3.BaseHTTPResponse) -> None:
    """Raise the error of a refusal by the API, or by the gateway, whose refusals have few details."""
    problem = _problem_in(answer)
    if problem is None:
        _refuse_as_gateway(answer.status)
        return
    header = answer.headers.get("Retry-After", "")
    refusal = refusal_in(problem, status=answer.status, retry_after=int(header) if header.isdigit() else None)
    error = error_of(refusal, problem.get("request_id"))
    raise LostError(error) if refusal.code == "internal_error" else error


def _problem_in(answer: urllib3.BaseHTTPResponse) -> Mapping[str, Any] | None:
    if answer.headers.get("Content-Type", "").partition(";")[0].strip() != _PROBLEM:
        return None
    try:
        problem = json.loads(answer.data)
    except ValueError:
        return None
    return problem if isinstance(problem, dict) and "code" in problem else None


def _refuse_as_gateway(status: int) -> None:
    if status == _TOO_MANY:
        raise TableThrottledError("The gateway takes no more requests now: try again.", operation="", aws_code="")
    if status >= _SERVER_ERROR:
        raise LostError(
            EngineUnavailableError(f"The gateway answered {status}: what was asked for may have been done.")
        )
    message = f"The gateway answered {status}; is the token good, and the address right?"
    raise error_of(Refusal(_CODES.get(status, "refused"), status, message))
