"""Listings that continue without their cursor, when the backend refuses it: keyset pagination by the client itself.

An ordered listing continues from the last sort key that it returned. In the other orders no key says what is left, so
the listing begins again, and leaves out what it has returned.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from hashlib import blake2b
from typing import Any, Final

from pydantic_core import to_json

from dynashard.entity import Entity, EntityDefinition, IndexDefinition
from dynashard.errors import InvalidCursorError, InvalidQueryError
from dynashard.schema import MAX_SORT_KEY_BYTES
from dynashard_client.answers import Page
from dynashard_serving.documents import TENANT

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
        self, entity: EntityDefinition[Any], partition: Mapping[str, Any], asked: Mapping[str, Any], attempts: int
    ) -> None:
        listed = _listed(entity, asked.get("index"), partition)
        distinct = asked.get("distinct")
        self._sort = listed.sort
        self._identity = (distinct,) if distinct else tuple(name for name in entity.key_fields if name != TENANT)
        self._ordered = asked.get("order") == "ordered"
        self._forward = asked.get("direction", "asc") == "asc"
        # Copies of an item have other keys, so all values are remembered that were returned.
        self._by_key = self._ordered and not distinct
        self._last: str | None = None
        self._returned: set[bytes] = set()
        self._attempts = attempts
        self._vain = 0
        fields = asked.get("fields")
        needed = {*self._identity, *(listed.sort.fields if self._ordered else ())}
        if fields is not None and (missing := sorted(needed - set(fields))):
            raise InvalidQueryError(
                f"a listing that may be resumed returns the fields of its keys: add {missing[0]}", field="fields"
            )

    def unseen(self, page: Page[Any]) -> Page[Any]:
        """Return a page without the items that were returned before, and remember the others."""
        items = [item for item in page.items if self._is_new(item)]
        self._vain = 0 if items else self._vain
        return replace(page, items=items)

    def begin_after(self, item: Any) -> None:
        """Continue after an item that the caller has; raises `InvalidQueryError` if no sort key says where that is."""
        if not self._by_key:
            raise InvalidQueryError(
                "only a listing with order='ordered', without distinct, begins after an item", field="after"
            )
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

    def _is_new(self, item: Any) -> bool:
        values = item.__dict__ if isinstance(item, Entity) else item
        identity = blake2b(_text(values, self._identity), digest_size=_DIGEST_BYTES).digest()
        if self._ordered:
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


def resumed_pages(
    listing: Callable[[Mapping[str, Any]], Page[Any]], asked: Mapping[str, Any], resumption: Resumption
) -> Iterator[Page[Any]]:
    """Yield the pages of a listing, which continues after each cursor of its own that is refused.

    `listing` returns the page for some arguments. Raises `InvalidCursorError` if nothing was returned before the
    refusal, or nothing new after it for as many attempts as `resumption` has.
    """
    while True:
        try:
            page = listing(asked)
        except InvalidCursorError:
            again = resumption.continued(asked)
            if again is None:
                raise
            asked = again
            continue
        yield resumption.unseen(page)
        if page.cursor is None:
            return
        asked = {**asked, "cursor": page.cursor}


def _listed(
    entity: EntityDefinition[Any], index: str | None, partition: Mapping[str, Any]
) -> EntityDefinition[Any] | IndexDefinition:
    """Return what is listed: the index with this name, or the table."""
    if index in entity.indexes:
        return entity.indexes[index]
    if index is not None or not {*entity.partition_fields} - {TENANT} <= partition.keys():
        raise InvalidQueryError("a listing that may be resumed names its index", field="index")
    return entity


def _text(values: Mapping[str, Any], names: tuple[str, ...]) -> bytes:
    return to_json([values[name] for name in names])
