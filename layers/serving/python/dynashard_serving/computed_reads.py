"""Reads that a domain computes: what `endpoint` above a function declares, of no item or about one.

They are served by `GET` over REST, and as `get` or `list` in direct invocation.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args, get_origin, get_type_hints

from msgspec import Struct, structs
from pydantic import BaseModel

from dynashard.entity import Entity, definition
from dynashard.errors import DeclarationError
from dynashard_serving.access import Access, Caller, check_access
from dynashard_serving.documents import TENANT
from dynashard_serving.exposure import Quota, check_quota, exposure_of

if TYPE_CHECKING:
    from dynashard.service import Dynashard

F = TypeVar("F", bound=Callable[..., Any])


class Endpoint(Struct, frozen=True):
    """A read that a domain computes. A domain writes `endpoint` above a function, which makes one.

    Attributes:
        path: the REST path below `/v1`.
        read: takes the entities, the tenant, and a request.
        request: the model of the request: query parameters over REST, members of a direct invocation.
        answer: the model of the answer, or of each item of it.
        many: whether it answers with a list.
        summary: what it reads, in a few words.
        text: what it reads, in sentences.
        tag: as in `Exposed`.
        access: who may read it; None for every caller of the tenant. The owner is a field of the request.
        of_caller: whether `read` takes the `Caller`, who has a tenant and a subject, instead of the tenant.
        quota: as in `Exposed`.
    """

    path: str
    read: "Callable[[Dynashard, Any, Any], Any]"
    request: type[BaseModel]
    answer: type[BaseModel]
    many: bool
    summary: str
    text: str
    tag: str | None = None
    access: Access | None = None
    of_caller: bool = False
    quota: Quota | None = None


class ItemRead(Struct, frozen=True):
    """A read that a domain computes about an item. A domain writes `endpoint` with `of` above a function, for one.

    Attributes:
        of: the entity of the item.
        path: the last segment of its REST path, after that of the item, such as `on-call`.
        read: takes the entities, the item, and a request.
        request: as of `Endpoint`.
        answer: as of `Endpoint`.
        many: as of `Endpoint`.
        summary: what it reads, in a few words.
        text: what it reads, in sentences.
        access: who may read it, besides the right to `get` the item.
    """

    of: type[Entity]
    path: str
    read: "Callable[[Dynashard, Any, Any], Any]"
    request: type[BaseModel]
    answer: type[BaseModel]
    many: bool
    summary: str
    text: str
    access: Access | None = None


_ENDPOINTS: Final[dict[Callable[..., Any], Endpoint | ItemRead]] = {}


def endpoint(
    path: str,
    *,
    of: type[Entity] | None = None,
    summary: str = "",
    text: str = "",
    tag: str | None = None,
    access: Access | None = None,
    quota: Quota | None = None,
) -> Callable[[F], F]:
    """Serve the function below: over REST by `GET` of the path, in direct invocation as `get`, or as `list` of a list.

        @endpoint(path="revenue")
        def revenue(db: Dynashard, tenant_id: str, wanted: RevenueWanted) -> Revenue: ...

        @endpoint(path="on-call", of=Schedule)
        def on_call(db: Dynashard, schedule: Schedule, wanted: OnCallWanted) -> OnCall: ...

    The request and the answer, or each item of a `list[...]`, are pydantic models. The tenant is the caller's; write
    `caller: Caller` instead of `tenant_id: str` to know who asks. A read
    of an item is served below the item's path, as `/v1/schedules/red/day/on-call`, and is named `schedules/on-call` in
    direct invocation. The item is read first, consistently; without one, the answer is 404.

    Args:
        path: the REST path below `/v1`, or below that of the item.
        of: the entity of the item that it reads about; None if it is of no item.
        summary: what it reads, in a few words; the first line of the docstring if left out.
        text: what it reads, in sentences; the same line if left out.
        tag: as in `Exposed`; reads of an item have that of the entity.
        access: who may read it; the owner is a field of the request. A read about an item needs the right to `get` the
            item too.
        quota: as in `Exposed`. Reads about an item count among the requests of the entity's resource, and have none.

    Raises:
        DeclarationError: the function does not have such parameters and such an answer, or a read about items has a
            quota.
    """

    def declared(function: F) -> F:
        found = structs.replace(_endpoint(function, path, (summary, text), tag, access), quota=quota)
        check_quota(quota, function.__qualname__)
        fields = [name for name in found.request.model_fields if name != TENANT]
        check_access(access, function.__qualname__, ["list" if found.many else "get"], fields)
        _ENDPOINTS[function] = found if of is None else _of_item(function, found, of)
        return function

    return declared


def endpoint_of(function: Callable[..., Any]) -> Endpoint | None:
    """Return how a function is served, by the `endpoint` above it; None without one."""
    found = _ENDPOINTS.get(function)
    return found if isinstance(found, Endpoint) else None


def item_read_of(function: object) -> ItemRead | None:
    """Return how a function is served that reads about an item; None if it is none."""
    found = _ENDPOINTS.get(function) if callable(function) and not isinstance(function, type) else None
    return found if isinstance(found, ItemRead) else None


def item_reads_of(model: type[Entity]) -> list[ItemRead]:
    """Return the reads about items of an entity, as far as the modules that declare them are imported."""
    return [each for each in _ENDPOINTS.values() if isinstance(each, ItemRead) and each.of is model]


def _endpoint(
    function: Callable[..., Any], path: str, texts: tuple[str, str], tag: str | None, access: Access | None
) -> Endpoint:
    summary, text = texts
    hints = get_type_hints(function)
    answer, parameters = hints.pop("return", None), list(hints.values())
    many = get_origin(answer) is list
    model = get_args(answer)[0] if many else answer
    if len(parameters) != len(("db", "tenant_id", "request")) or not _is_model(parameters[-1]) or not _is_model(model):
        raise DeclarationError(
            function.__qualname__,
            f"cannot be served as /{path}: write (db: Dynashard, tenant_id: str, request: A) -> B, or -> list[B], "
            "where A and B are pydantic models",
        )
    first = (function.__doc__ or "").strip().partition("\n")[0]
    if not (summary or first):
        raise DeclarationError(function.__qualname__, f"cannot be served as /{path}: write a docstring, or summary=")
    title, of_caller = summary or first.rstrip("."), parameters[1] is Caller
    return Endpoint(path, function, parameters[-1], model, many, title, text or first, tag, access, of_caller)


def _of_item(function: Callable[..., Any], found: Endpoint, model: type[Entity]) -> ItemRead:
    """Return a read of items of an entity; raises `DeclarationError` if it cannot be served below their paths."""
    path, exposed = found.path, exposure_of(model)
    problem = None
    if exposed is None or "get" not in exposed.operations:
        problem = f"{definition(model).name} is not served with get, so its items have no path: write @serve above it"
    elif not path.replace("-", "").isalnum() or not path.isascii():
        problem = "the path is one segment of ASCII letters, digits and -"
    elif path in {each.path for each in item_reads_of(model)}:
        problem = f"{definition(model).name} has two reads of this path: give each one of its own"
    elif found.quota is not None:
        problem = "the quota is that of the entity: write it at serve"
    elif "key" in {field.alias or name for name, field in found.request.model_fields.items()}:
        problem = "its request has a field called key, which names the item in direct invocation: call it otherwise"
    if problem is not None:
        raise DeclarationError(function.__qualname__, f"cannot be served as {path} of an item: {problem}")
    return ItemRead(
        model, path, found.read, found.request, found.answer, found.many, found.summary, found.text, found.access
    )


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
