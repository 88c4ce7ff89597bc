"""Listings that continue without their cursor, when the backend refuses it: keyset pagination by the client itself.

An ordered listing continues from the last sort key that it returned. In the other orders no key says what is left, so
the listing begins again, and leaves out what it has returned.
"""

from collections.abc import Mapping
from dataclasses import replace
from hashlib import blake2b
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import to_json

from dynashard_client.answers import Page
from dynashard_client.documents import MAX_SORT_KEY_BYTES, TENANT
from dynashard_client.errors import FieldError, InvalidQueryError
from dynashard_client.resource import Resource
from dynashard_client.sort_keys import SortKey

MOST_REMEMBERED: Final = 1_000_000
"""Items that a listing remembers, about 100 bytes each, if no sort key says what is left of it."""
_DIGEST_BYTES: Final = 16


class Resumption:
    """What one listing has returned, and how it continues without a cursor.

    `asked` are the arguments of the listing, and `partition` the fields of its partition. `attempts` is how often in
    turn it may continue without having found a further item.

    Raises `InvalidQueryError` if the listing cannot be continued: its `fields` lack those of the item's key or of the
    listed sort key, or it names neither its index nor the table's partition.
    """

    def __init__(
        self, resource: Resource[Any], partition: Mapping[str, Any], asked: Mapping[str, Any], attempts: int
    ) -> None:
        index, distinct = asked.get("index"), asked.get("distinct")
        if index is None and partition.keys() - {TENANT} != set(resource.partition):
            raise _refusal("index", "A listing that may be resumed names its index.")
        self._identity = (distinct,) if distinct else tuple(resource.address)
        self._ordered = asked.get("order") == "ordered"
        self._sort = _sort_key(resource, index) if self._ordered else None
        self._forward = asked.get("direction", "asc") == "asc"
        # Copies of an item have other keys, so all values are remembered that were returned.
        self._by_key = self._ordered and not distinct
        self._last: str | None = None
        self._returned: set[bytes] = set()
        self._attempts = attempts
        self._vain = 0
        fields = asked.get("fields")
        needed = {*self._identity, *(self._sort.fields if self._sort else ())}
        if fields is not None and (missing := sorted(needed - set(fields))):
            raise _refusal("fields", f"A listing that may be resumed returns the fields of its keys: add {missing[0]}.")

    def unseen(self, page: Page[Any]) -> Page[Any]:
        """Return a page without the items that were returned before, and remember the others."""
        items = [item for item in page.items if self._is_new(item)]
        self._vain = 0 if items else self._vain
        return replace(page, items=items)

    def begin_after(self, item: BaseModel | Mapping[str, Any]) -> None:
        """Continue after an item that the caller has; raises `InvalidQueryError` if no sort key says where that is."""
        if not self._by_key:
            message = "Only a listing with order='ordered', without distinct, begins after an item."
            raise _refusal("after", message)
        self._is_new(item)

    def continued(self, asked: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the arguments that continue the listing without a cursor; None if nothing can."""
        if not self._returned or self._vain == self._attempts or len(self._returned) > MOST_REMEMBERED:
            return None
        self._vain += 1
        again = {name: value for name, value in asked.items() if name != "cursor"}
        if not self._ordered or self._last is None or len(self._last.encode()) >= MAX_SORT_KEY_BYTES:
            return again
        # The end of a range is exclusive, and the next text after another is that text and a NUL.
        return again | ({"start": self._last} if self._forward else {"end": self._last + "\0"})

    def _is_new(self, item: BaseModel | Mapping[str, Any]) -> bool:
        values = item.__dict__ if isinstance(item, BaseModel) else item
        identity = blake2b(_text(values, self._identity), digest_size=_DIGEST_BYTES).digest()
        if self._sort is not None:
            sort = self._sort.render(values)
            if self._by_key and sort != self._last:
                if self._last is not None and (sort > self._last) is not self._forward:
                    return False
                self._returned.clear()
            self._last = sort
        if identity in self._returned:
            return False
        self._returned.add(identity)
        return True


def _sort_key(resource: Resource[Any], index: str | None) -> SortKey:
    found = resource.sort_key(index)
    if found is None:
        listed = f"index {index}" if index else "table"
        raise _refusal("order", f"{resource.name} does not declare the sort key of the {listed}: add it to `sort`.")
    return found


def _refusal(field: str, message: str) -> InvalidQueryError:
    return InvalidQueryError(message, errors=[FieldError(field, message, InvalidQueryError.code)])


def _text(values: Mapping[str, Any], names: tuple[str, ...]) -> bytes:
    return to_json([values[name] for name in names])
