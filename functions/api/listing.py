"""Listings over HTTP: query parameters in, a page and a `Link` to the next one out."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from itertools import islice, product
from typing import Any, Final
from urllib.parse import urlencode

from aws_lambda_powertools.event_handler import Response
from pydantic import ValidationError

from dynashard import Entity, Filter, Page
from dynashard.hosting.documents import part
from dynashard.hosting.limits import MAX_LINK_BYTES
from dynashard.hosting.pages import page_that_fits
from functions.api.bodies import JSON, Document, representation
from functions.api.incoming import Incoming
from functions.api.parameters import Parameters, Query
from functions.api.problems import FieldError, invalid_fields
from functions.api.resource import LIST_PARAMETERS, TENANT, Resource

ENOUGH: Final = 101
"""One partition more than the layer lists: it says so itself."""

Options = dict[str, Any]
PageOf = Callable[..., Page[Any]]
"""Reads a page: of an entity, with these options, and of other entities that share its logical partitions."""


def answered(
    root: str, query: Query, options: Options, read: Callable[[Options], Page[Any]], shown: Callable[[Any], Document]
) -> Response[str]:
    """The answer with a page, and with a `Link` to the next one unless that is longer than a header may be.

    A page that Lambda could not answer is read again with fewer items, so a page of large items is short.

    Args:
        root: the path that was asked.
        query: what was asked.
        options: the arguments of the collection's `list`.
        read: reads a page.
        shown: what stands for an item.

    Raises:
        ProblemError: 422 with the parameter at fault.
    """
    page = page_that_fits(read, options, shown)
    link = "" if page.cursor is None else _next(root, query, page.cursor)
    headers = {"Link": link} if 0 < len(link) <= MAX_LINK_BYTES else {}
    return Response(HTTPStatus.OK, content_type=JSON, body=page.text, headers=headers)


def _next(root: str, query: Query, cursor: str) -> str:
    kept = [(name, value) for name, value in query if name != "cursor"]
    return f'<{root}?{urlencode([*kept, ("cursor", cursor)])}>; rel="next"'


def partitions_of(resource: Resource, index: str | None, tenant: str, given: Parameters) -> Any:
    """The logical partitions that a query names: one as its fields, several as a list of them.

    A field that is given several times names several partitions; two such fields, each with each.

    Raises:
        ProblemError: 422 with every field that is missing, or whose value is none of its.
    """
    fields = resource.partition_fields(index)
    missing = [name for name in fields if name not in given]
    if missing:
        message = "This listing needs the query parameter."
        raise invalid_fields(*(FieldError(name, message, "missing") for name in missing))
    values = [[parsed(resource, name, text) for text in given.texts(name)] for name in fields]
    found = [{TENANT: tenant, **dict(zip(fields, chosen, strict=True))} for chosen in islice(product(*values), ENOUGH)]
    return found[0] if len(found) == 1 else found


def parsed(resource: Resource, name: str, value: str) -> Any:
    """A field's value from its text.

    Raises:
        ProblemError: 422 if it is none of the field's values.
    """
    try:
        return resource.parse(name, value, checked=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise invalid_fields(FieldError(name, first["msg"], first["type"])) from error


class Listing:
    """The listing of a resource.

    Args:
        resource: the resource.
        page_of: reads a page of an entity.
    """

    def __init__(self, resource: Resource, page_of: PageOf) -> None:
        self._resource = resource
        self._page_of = page_of

    def page(self, incoming: Incoming) -> Response[str]:
        """`GET` of the resource: a page. Cost: what the order costs; see the collection's `list`."""
        entity: type[Entity] = self._resource.entity
        options = self.options_of(incoming)
        return answered(
            self._resource.root, incoming.query, options, lambda asked: self._page_of(entity, asked), self._shown
        )

    def _shown(self, item: Any) -> Document:
        if not isinstance(item, Mapping):
            return representation(item, item.revision)
        return part(self._resource.entity, item)

    def options_of(self, incoming: Incoming) -> Options:
        """The arguments of the collection's `list` that a query asks for.

        Raises:
            ProblemError: 422 with every parameter at fault.
        """
        index = self._index_of(incoming.query)
        several = self._resource.partition_fields(index)
        sorted_by = self._resource.sort_fields(index)
        distinct = ("distinct",) if self._resource.distinct else ()
        once = [*LIST_PARAMETERS, *distinct, *sorted_by, *self._resource.filters]
        given = Parameters(incoming.query, [name for name in once if name not in several], several)
        options = {
            "partition": partitions_of(self._resource, index, incoming.tenant, given),
            "index": index,
            "order": given.choice("order", "round_robin"),
            "direction": given.choice("direction", "asc"),
            "limit": given.limit(),
            "cursor": given.text("cursor"),
            "prefix": given.text("prefix"),
            "start": given.text("from"),
            "end": given.text("to"),
            "filters": self._filters(given, [*several, *sorted_by]),
            "fields": self._fields(given),
            "consistent": given.flag("consistent"),
        }
        return {**options, **self._sort_keys(index, sorted_by, given), **self._distinct(given)}

    def _index_of(self, query: Query) -> str | None:
        names = [value for name, value in query if name == "index"]
        if not names:
            return self._fitting_index({name for name, _ in query})
        if names[0] not in self._resource.indexes:
            known = ", ".join(self._resource.indexes) or "none"
            raise invalid_fields(FieldError("index", f"Unknown index; known are {known}.", "enum"))
        return names[0]

    def _fitting_index(self, given: set[str]) -> str | None:
        """The index that a query is about which does not name the table's own partition; None for the table."""
        if given.issuperset(self._resource.partition_fields(None)):
            return None
        fitting = [name for name in self._resource.indexes if given.issuperset(self._resource.partition_fields(name))]
        return fitting[0] if len(fitting) == 1 else None

    def _sort_keys(self, index: str | None, names: list[str], given: Parameters) -> Options:
        values = {name: parsed(self._resource, name, given.text(name) or "") for name in names if name in given}
        if not values:
            return {}
        clashing = [parameter for parameter in ("prefix", "from", "to") if parameter in given]
        if clashing:
            message = f"{next(iter(values))} says already how sort keys begin: leave this out."
            raise invalid_fields(*(FieldError(parameter, message, "contradiction") for parameter in clashing))
        text, whole = self._resource.key_text(index, values)
        # The text that comes just after another is that text and a NUL; the end of a range is left out.
        return {"start": text, "end": text + "\0"} if whole else {"prefix": text}

    def _filters(self, given: Parameters, key_fields: list[str]) -> list[Filter]:
        names = [name for name in self._resource.filters if name in given and name not in key_fields]
        return [Filter(name, "=", parsed(self._resource, name, given.text(name) or "")) for name in names]

    def _fields(self, given: Parameters) -> list[str] | None:
        text = given.text("fields")
        if text is None:
            return None
        names = text.split(",")
        known = [n for n in self._resource.entity.model_fields if n not in self._resource.definition.detached]
        unknown = [name for name in names if name not in known]
        if unknown:
            raise invalid_fields(FieldError("fields", f"Use a list of {', '.join(known)}.", "enum"))
        return list(dict.fromkeys(names))

    def _distinct(self, given: Parameters) -> Options:
        name = given.text("distinct")
        if name is None:
            return {}
        if name not in self._resource.distinct:
            known = ", ".join(self._resource.distinct)
            raise invalid_fields(FieldError("distinct", f"Use one of {known}.", "enum"))
        return {"distinct": name}
