"""Reads that a domain computes, and roll-ups, for callers who may have them."""

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from dynashard.service import Dynashard
from dynashard_serving.access import Caller
from dynashard_serving.declare import Endpoint, ItemRead
from dynashard_serving.operations.item_reads import Key
from dynashard_serving.operations.permits import Permit, admitted
from dynashard_serving.operations.served import Served


def right_of(declared: Endpoint | ItemRead) -> str:
    """Return the operation of a read: `list` if it answers with a list, else `get`."""
    return "list" if declared.many else "get"


def permit_to(declared: Endpoint | ItemRead, caller: Caller | None) -> Permit:
    """Return the permit to a read, or refuse it before its parameters are read.

    Raises:
        NotPermittedError: the caller does not have the right.
    """
    return admitted(declared.access, f"/{declared.path}", [right_of(declared)], caller)


def computed(declared: Endpoint, backend: Dynashard, caller: Caller, request: BaseModel) -> Any:
    """Return what a read answers a caller. Its owner rule and its policy judge the request.

    Raises:
        NotPermittedError: the caller may not send this request.

    Cost: what the domain's function costs.
    """
    permit_to(declared, caller).require_new(request)
    return declared.read(backend, caller if declared.of_caller else caller.tenant, request)


def about_item(
    declared: ItemRead,
    served: Served,
    backend: Dynashard,
    *,
    caller: Caller,
    key: Key,
    request: Callable[[], BaseModel],
) -> Any:
    """Return what a read about an item answers a caller who may read the item.

    Args:
        declared: the read.
        served: the entity of the item.
        backend: the entities.
        caller: who asks.
        key: the key of the item.
        request: makes the request from its parameters, once the item is read.

    Raises:
        NotFoundError: there is no such item that the caller may read.
        NotPermittedError: the caller may read no item, or may not send this request.

    Cost: 1 consistent read, and what the domain's function costs.
    """
    permit, reading = permit_to(declared, caller), served.permit("get", caller)
    item = reading.found(lambda: backend.collection(declared.of).get(key, consistent=True))
    wanted = request()
    permit.require_new(wanted)
    return declared.read(backend, item, wanted)
