"""Reads that a domain computes, and roll-ups, for callers who may have them."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from dynashard.errors import FieldError, ValidationFailedError
from dynashard.service import Dynashard
from dynashard_serving.access import Caller
from dynashard_serving.declare import Endpoint, ItemRead
from dynashard_serving.documents import NO_TIME, field_errors, number_as_time
from dynashard_serving.operations.item_reads import Key
from dynashard_serving.operations.permits import Permit, admitted
from dynashard_serving.operations.served import Served

Given = Mapping[str, Any]
"""The parameters of a read, by name."""
Model = TypeVar("Model", bound=BaseModel)
_TIME: Final = TypeAdapter(datetime)


def request_of(given: Given, parse: Callable[[Given], Model]) -> Model:
    """Return the request that parameters describe.

    As in listings, a time without a zone is in UTC, and so is a day, and a number is not a time.

    Raises:
        ValidationFailedError: with every parameter at fault.
    """
    try:
        found = parse(given)
    except ValidationError as error:
        if in_utc := _in_utc(error):
            return request_of({**given, **in_utc}, parse)
        raise ValidationFailedError(*field_errors(error)) from error
    names = {field.alias or name: name for name, field in type(found).model_fields.items()}
    numbers = [each for each, value in given.items() if number_as_time(str(value), getattr(found, names[each]))]
    if numbers:
        raise ValidationFailedError(*(FieldError(each, NO_TIME, "datetime_parsing") for each in numbers))
    return found


def _in_utc(error: ValidationError) -> dict[str, str]:
    """Return the times that were refused because they have no zone, by parameter, with that of UTC."""
    return {
        str(each["loc"][0]): _TIME.validate_python(each["input"]).replace(tzinfo=UTC).isoformat()
        for each in error.errors(include_url=False, include_context=False)
        if each["type"] == "timezone_aware" and len(each["loc"]) == 1
    }


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
