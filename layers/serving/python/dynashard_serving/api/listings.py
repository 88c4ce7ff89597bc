"""Listings over HTTP, of an entity or of several as one: parameters in, a page and a `Link` to the next one out."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from dynashard.errors import ValidationFailedError
from dynashard.reads.limits import DEFAULT_LIMIT, MAX_LIMIT
from dynashard_serving.api.parameters import Parameters, Query
from dynashard_serving.api.request import ApiRequest
from dynashard_serving.api.resource import PREFIX, Resource
from dynashard_serving.api.response import JSON, UNDECODABLE, Response
from dynashard_serving.declare import Exposed, FamilyListing
from dynashard_serving.exposure import LIST_PARAMETERS
from dynashard_serving.limits import MAX_LINK_BYTES
from dynashard_serving.operations.choosing import index_of
from dynashard_serving.operations.families import Family
from dynashard_serving.operations.listings import Listings
from dynashard_serving.operations.pages import Answer
from dynashard_serving.operations.requests import Choice, List, Paging
from dynashard_serving.operations.served import Served

PLACES: Final = ("partition", "sort", "filters")
"""Where a listing's request has fields, which are all parameters here."""
OF_FAMILIES: Final = ("limit", "order", "direction", "prefix", "from", "to", "cursor", "consistent", "strict")
"""The parameters of a listing of a family, besides those of its key."""
_DEFAULT: Final = Paging()


class ListingRoute:
    """The listing of a resource."""

    def __init__(self, resource: Resource, listings: Listings) -> None:
        self._resource = resource
        self._listings = listings

    def page(self, incoming: ApiRequest) -> Response[str]:
        """`GET` of the resource: a page."""
        served = self._resource.served
        with by_parameter():
            page = self._listings.page(served, list_of(served, incoming))
        return page_response(self._resource.root, incoming.query, page)


class FamilyResource:
    """Entities that share their logical partitions, under one path."""

    def __init__(self, listing: FamilyListing) -> None:
        self.root = f"{PREFIX}/{listing.path}"
        self.tag = listing.tag or listing.path
        self.schema = "".join(word.capitalize() for word in listing.path.split("-")) + "Page"
        self.family = Family(listing)
        self.members = [Served(Exposed(entity, path=listing.path)) for entity in self.family.models]


class FamilyRoute:
    """The listing of a family."""

    def __init__(self, resource: FamilyResource, collection_of: Callable[..., Any]) -> None:
        self._resource = resource
        self._collection_of = collection_of

    def page(self, incoming: ApiRequest) -> Response[str]:
        """`GET` of the family: a page of all, or of one item and what is below it."""
        family, several = self._resource.family, self._resource.members[0].partition_fields(None)
        given = Parameters(incoming.query, [*OF_FAMILIES, *family.nested], several)
        with by_parameter():
            choice = choice_of(incoming.tenant, given, several, family.nested)
            page = family.page(self._collection_of, choice, paging_of(given))
        return page_response(self._resource.root, incoming.query, page)


def list_of(served: Served, incoming: ApiRequest) -> List:
    """Return the request of a listing, or refuse each parameter that is not valid (422)."""
    names = [name for name, _ in incoming.query]
    index = index_of(served, dict(reversed(incoming.query)).get("index"), names)
    known = _known(served, index)
    given = Parameters(incoming.query, known.once, known.several, filters=known.filters)
    filters = given.some(known.filters)
    return List(
        choice=choice_of(incoming.tenant, given, known.several, known.sort, index=index, filters=filters),
        paging=paging_of(given),
        fields=given.names("fields"),
        distinct=given.text("distinct"),
    )


class _Known(NamedTuple):
    """The parameters of a listing that may be given once, or several times; which are of the sort key, or filters."""

    once: Sequence[str]
    several: Sequence[str]
    sort: Sequence[str]
    filters: Sequence[str]


@lru_cache(maxsize=256)
def _known(served: Served, index: str | None) -> _Known:
    several, sort, declared = served.partition_fields(index), served.sort_fields(index), served.exposed.filters
    distinct = ("distinct",) if served.exposed.distinct else ()
    once = [*LIST_PARAMETERS, *distinct, *sort, *declared]
    filters = [name for name in declared if name not in (*several, *sort)]
    return _Known([name for name in once if name not in several], several, sort, filters)


def choice_of(
    tenant: str,
    given: Parameters,
    partition: Sequence[str],
    sort: Sequence[str],
    *,
    index: str | None = None,
    filters: Mapping[str, str] | None = None,
) -> Choice:
    """Which items the parameters of a listing choose, by the names of the fields that may choose them."""
    return Choice(
        tenant=tenant,
        partition={name: given.texts(name) for name in partition if name in given},
        index=index,
        sort=given.some(sort),
        prefix=given.text("prefix"),
        start=given.text("from"),
        end=given.text("to"),
        filters=filters or {},
        consistent=given.flag("consistent"),
        strict=given.flag("strict"),
    )


def paging_of(given: Parameters) -> Paging:
    """Return the pages that the parameters of a listing ask for. A limit that is not a number becomes 0 and fails."""
    text = given.text("limit")
    limit = DEFAULT_LIMIT if text is None else 0
    if text and text.isascii() and text.isdigit() and len(text) <= len(str(MAX_LIMIT)):
        limit = int(text)
    order, direction = given.text("order"), given.text("direction")
    return Paging(
        order=_DEFAULT.order if order is None else order,
        direction=_DEFAULT.direction if direction is None else direction,
        limit=limit,
        cursor=given.text("cursor"),
    )


@contextmanager
def by_parameter() -> Iterator[None]:
    """Name the parameter at fault for the member of the request that it became."""
    try:
        yield
    except ValidationFailedError as error:
        raise ValidationFailedError(*map(_flat, error.errors), omitted=error.omitted) from error


def _flat(error: Any) -> Any:
    place, _, name = error.field.partition(".")
    return error._replace(field=name) if place in PLACES and name else error


def page_response(root: str, query: Query, page: Answer) -> Response[str]:
    """Return the response with a page, and with a `Link` to the next one unless that is longer than a header may be.

    A header has the number of stored items that the page leaves out.
    """
    link = "" if page.cursor is None else _next(root, query, page.cursor)
    headers = {"Link": link} if 0 < len(link) <= MAX_LINK_BYTES else {}
    if page.undecodable:
        headers[UNDECODABLE] = str(len(page.undecodable))
    return Response(HTTPStatus.OK, content_type=JSON, body=page.text, headers=headers, items=page.count)


def _next(root: str, query: Query, cursor: str) -> str:
    kept = urlencode([each for each in query if each[0] != "cursor"])
    # A cursor is in base64 for URLs already.
    return f'<{root}?{kept}{"&" if kept else ""}cursor={cursor}>; rel="next"'
