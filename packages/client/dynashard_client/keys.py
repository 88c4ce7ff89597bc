"""Keys of items, as callers write them, and as a backend takes them."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from dynashard_client.arguments import check_key
from dynashard_client.batches import KeyLike
from dynashard_client.documents import TENANT, Document
from dynashard_client.errors import FieldError, InvalidKeyError, ValidationFailedError
from dynashard_client.resource import Resource


def key_document(resource: Resource[Any], key: KeyLike, tenant: str | None) -> Document:
    """Return a key as its document.

    Raises:
        InvalidKeyError: a key of several fields is not a mapping.
        ValidationFailedError: it is of another tenant than the client's.
    """
    named = _named(resource, key)
    if tenant is not None and named.get(TENANT, tenant) != tenant:
        # REST addresses items without their tenant: this one would be taken for another's.
        message = f"Not accepted: {TENANT}. It is not the client's tenant."
        raise ValidationFailedError(message, errors=[FieldError(f"key.{TENANT}", message, "immutable")])
    return {str(name): to_jsonable_python(value) for name, value in named.items()}


def _named(resource: Resource[Any], key: KeyLike) -> Mapping[str, Any]:
    address = resource.address
    check_key(resource.name, address, key)
    if isinstance(key, Mapping):
        return key
    if isinstance(key, BaseModel):
        names = (*address, TENANT) if TENANT in type(key).model_fields else address
        return {name: getattr(key, name) for name in names}
    if len(address) != 1:
        raise InvalidKeyError(f"The key of {resource.name} is a mapping of {', '.join(address)}; got {key!r}.")
    return {address[0]: key}
