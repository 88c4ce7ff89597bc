"""Listings and counts, with the options that REST gives."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from dynashard import Collection, Entity, Filter, Order, Page
from dynashard.errors import FieldError, ValidationFailedError
from dynashard.hosting.documents import Document, part
from dynashard.hosting.pages import page_that_fits, told_outside
from functions.commands.items import shown
from functions.commands.request import Asked, Members

DEFAULT_LIMIT: Final = 50
MAX_LIMIT: Final = 1000
CHOOSING: Final = ("partition", "index", "sort", "prefix", "from", "to", "filters", "consistent")
"""Members that choose items."""
TURNING: Final = ("order", "direction", "limit", "cursor")
"""Members that say how to turn their pages."""

Options = dict[str, Any]
PageOf = Callable[[type[Entity], Mapping[str, Any]], Page[Any]]
CollectionOf = Callable[[type[Entity]], Collection[Any]]


class Listings:
    """Pages and counts.

    Args:
        page_of: reads a page of an entity.
        collection_of: gives the items of an entity.
    """

    def __init__(self, page_of: PageOf, collection_of: CollectionOf) -> None:
        self._page_of = page_of
        self._collection_of = collection_of

    def page(self, asked: Asked) -> Mapping[str, Any]:
        """A page. Cost: what the order costs; see the collection's `list`.

        A page that Lambda could not answer is read again with fewer items, so a page of large items is short.
        """
        asked.only(*CHOOSING, *TURNING, "fields", "distinct")
        options = self._chosen(asked) | turning(asked) | {"fields": _fields(asked), **_distinct(asked)}
        read = partial(self._page_of, asked.served.entity)
        return page_that_fits(read, options, partial(_part, asked)).document

    def count(self, asked: Asked) -> int:
        """How many items there are. Cost: what reading all of them costs."""
        asked.only(*CHOOSING)
        options = self._chosen(asked)
        items = self._collection_of(asked.served.entity)
        with told_outside():
            return items.count(options.pop("partition"), **options)

    def _chosen(self, asked: Asked) -> dict[str, Any]:
        index = _index(asked)
        sort = asked.served.sort_range(asked.document("sort", needed=False), index)
        return {
            "partition": asked.served.partitions(asked.document("partition", needed=False), asked.tenant, index),
            "index": index,
            "filters": _filters(asked),
            "consistent": asked.flag("consistent"),
            **ranged(asked, sort),
        }


def turning(asked: Members) -> Options:
    """The arguments of a listing for how to turn its pages."""
    return {
        "order": asked.choice("order", Order.ROUND_ROBIN, tuple(Order)),
        "direction": asked.choice("direction", "asc", ("asc", "desc")),
        "limit": asked.number("limit", DEFAULT_LIMIT, MAX_LIMIT),
        "cursor": asked.text("cursor"),
    }


def ranged(asked: Members, sort: Mapping[str, Any]) -> Options:
    """The arguments of a listing for its sort keys: those that `sort` gave, or those of `prefix`, `from` and `to`.

    Raises:
        ValidationFailedError: both are given.
    """
    ranges = {"prefix": asked.text("prefix"), "start": asked.text("from"), "end": asked.text("to")}
    if sort and any(value is not None for value in ranges.values()):
        message = "It says already how sort keys begin: leave out prefix, from and to."
        raise ValidationFailedError(FieldError("sort", message, "contradiction"))
    return {**ranges, **sort}


def _index(asked: Asked) -> str | None:
    name = asked.text("index")
    if name is not None and name not in asked.served.indexes:
        known = ", ".join(asked.served.indexes) or "none"
        raise ValidationFailedError(FieldError("index", f"Unknown index; known are {known}.", "enum"))
    return name


def _filters(asked: Asked) -> list[Filter]:
    given, known = asked.document("filters", needed=False), asked.served.exposed.filters
    unknown = [name for name in given if name not in known]
    if unknown:
        message = f"Unknown filter; known are {', '.join(known) or 'none'}."
        raise ValidationFailedError(*(FieldError(f"filters.{name}", message, "unknown_parameter") for name in unknown))
    return [Filter(name, "=", asked.served.value(name, value, f"filters.{name}")) for name, value in given.items()]


def _fields(asked: Asked) -> list[str] | None:
    names, known = asked.texts("fields"), tuple(asked.served.entity.model_fields)
    if names is None:
        return None
    if not names or any(name not in known for name in names):
        raise ValidationFailedError(FieldError("fields", f"Use a list of {', '.join(known)}.", "enum"))
    return list(dict.fromkeys(names))


def _distinct(asked: Asked) -> dict[str, str]:
    name, known = asked.text("distinct"), asked.served.exposed.distinct
    if name is None:
        return {}
    if name not in known:
        raise ValidationFailedError(FieldError("distinct", f"Use one of {', '.join(known) or 'none'}.", "enum"))
    return {"distinct": name}


def _part(asked: Asked, item: Any) -> Document:
    return part(asked.served.entity, item) if isinstance(item, Mapping) else shown(item)
