"""The requests of a batch, and how they are sent: each is done by itself, and has an outcome of its own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from dynashard_client.arguments import written_as
from dynashard_client.documents import Document, written
from dynashard_client.errors import InvalidQueryError

KeyLike = Mapping[str, Any] | BaseModel | str
"""A key by its fields, the tenant's left out or not; an item that has it; or the value of its only field."""
MOST: Final = 100
"""Requests that one batch takes."""
MOST_BYTES: Final = 1024 * 1024
"""Bytes of a batch that is sent over REST, which takes twice as many."""


@written_as('Get("ada")')
@dataclass(frozen=True, slots=True)
class Get:
    """Read an item; the outcome has it."""

    key: KeyLike
    consistent: bool = False


@written_as("Create(User(...))")
@dataclass(frozen=True, slots=True)
class Create:
    """Store a new item; the outcome has it."""

    item: BaseModel
    idempotency_key: str | None = None


@written_as("Put(User(...))")
@dataclass(frozen=True, slots=True)
class Put:
    """Store an item, whether or not its key had one; the outcome has it."""

    item: BaseModel
    if_match: str | None = None


@written_as('Update("ada", {"field": value})')
@dataclass(frozen=True, slots=True)
class Update:
    """Apply a JSON Merge Patch, or a JSON Patch, which is a list; the outcome has the item."""

    key: KeyLike
    patch: Mapping[str, Any] | Sequence[Mapping[str, Any]]
    if_match: str | None = None


@written_as('Delete("ada")')
@dataclass(frozen=True, slots=True)
class Delete:
    """Delete an item; the outcome has nothing."""

    key: KeyLike
    if_match: str | None = None


BatchRequest = Get | Create | Put | Update | Delete


def repeatable(requests: Sequence[Mapping[str, Any]]) -> bool:
    """Whether requests may be sent again although they may have been done: no write could undo what others wrote."""
    return all(each["operation"] in ("get", "create") for each in requests)


def asked(
    request: BatchRequest, key_of: Callable[[KeyLike], Document], document_of: Callable[[Any], Document], new_key: str
) -> dict[str, Any]:
    """Return a request as the backend takes it; `new_key` is the idempotency key of a create without one."""
    members: dict[str, Any]
    match request:
        case Get():
            members = {"key": key_of(request.key), "consistent": request.consistent or None}
        case Create():
            members = {"item": document_of(request.item), "idempotency_key": request.idempotency_key or new_key}
        case Put():
            members = {"item": document_of(request.item), "if_match": request.if_match}
        case Update():
            patch = to_jsonable_python(request.patch)
            members = {"key": key_of(request.key), "patch": patch, "if_match": request.if_match}
        case Delete():
            members = {"key": key_of(request.key), "if_match": request.if_match}
        case _:
            given = f"a {type(request).__name__}"
            raise InvalidQueryError(f"batch takes requests; it got {given}; write batch([Put(item), Get(key)])")
    named = {name: value for name, value in members.items() if value is not None}
    return {"operation": type(request).__name__.lower(), **named}


def divided(requests: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """Return the places of requests in batches: of so many, and so large, as one request takes."""
    batches: list[list[int]] = []
    size = 0
    for place, each in enumerate(requests):
        length = len(written(each).encode())
        if not batches or len(batches[-1]) == MOST or size + length > MOST_BYTES:
            batches.append([])
            size = 0
        batches[-1].append(place)
        size += length
    return batches
