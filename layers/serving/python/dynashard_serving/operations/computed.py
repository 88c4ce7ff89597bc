"""Reads that a domain computes, and roll-ups, for callers who may have them."""

from typing import Any

from pydantic import BaseModel

from dynashard.service import Dynashard
from dynashard_serving.access import Caller
from dynashard_serving.declare import Endpoint
from dynashard_serving.operations.permits import Permit, admitted


def right_of(declared: Endpoint) -> str:
    """Return the operation of a read: `list` if it answers with a list, else `get`."""
    return "list" if declared.many else "get"


def permit_to(declared: Endpoint, caller: Caller | None) -> Permit:
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
    return declared.read(backend, caller.tenant, request)
