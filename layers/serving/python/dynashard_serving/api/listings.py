"""Listings over HTTP, of an entity or of several as one: parameters in, a page and a `Link` to the next one out."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from dynashard.entity import Entity
from dynashard.errors import FieldError, ValidationFailedError
from dynashard.reads.limits import DEFAULT_LIMIT, MAX_LIMIT
from dynashard.reads.operators import RANGE_WORDS
from dynashard_serving.access import Access, Caller
from dynashard_serving.api.parameters import Parameters, Query
from dynashard_serving.api.request import ApiRequest
from dynashard_serving.api.resource import PREFIX, Resource
from dynashard_serving.api.response import JSON, Response, json_response
from dynashard_serving.declare import FamilyListing
from dynashard_serving.exposure import COUNT_PARAMETERS, LIST_PARAMETERS, UP_TO
from dynashard_serving.limits import DEFAULT_COUNTED, MAX_COUNTED, MAX_LINK_BYTES
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
_OPERATOR: Final = re.compile(r"([^\[\]]+)\[([a-z]+)\]")
"""The name of a parameter with an operator, such as `created_at[gte]`."""


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

    def count(self, incoming: ApiRequest) -> Response[str]:
        """`GET` of the count: how many items the parameters choose, at most `up_to`."""
        served = self._resource.served
        with by_parameter():
            known, given = _given(served, incoming.query, COUNT_PARAMETERS)
            counted = self._listings.count(served, _choice(incoming.caller, given, known), up_to=_up_to(given))
        return json_response({"count": int(counted), "exact": counted.exact})


class FamilyResource:
    """Entities that share their logical partitions, under one path."""

    def __init__(self, listing: FamilyListing, access_of: Callable[[type[Entity]], Access | None]) -> None:
        self.root = f"{PREFIX}/{listing.path}"
        self.tag = listing.tag or listing.path
        self.quota = listing.quota
        self.schema = "".join(word.capitalize() for word in listing.path.split("-")) + "Page"
        self.family = Family(listing, access_of)
        self.members = self.family.members


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
            choice = choice_of(incoming.caller, given, several, family.nested)
            page = family.page(self._collection_of, choice, paging_of(given))
        return page_response(self._resource.root, incoming.query, page)


def list_of(served: Served, incoming: ApiRequest) -> List:
    """Return the request of a listing, or refuse each parameter that is not valid (422)."""
    known, given = _given(served, incoming.query, LIST_PARAMETERS)
    return List(
        choice=_choice(incoming.caller, given, known),
        paging=paging_of(given),
        fields=given.names("fields"),
        distinct=given.text("distinct"),
    )


class _Known(NamedTuple):
    """The parameters of a listing.

    Attributes:
        listed: the index that is listed; None for the table.
        once: those that may be given once.
        several: those that may be given several times.
        partition: fields that choose logical partitions.
        sort: fields that choose sort keys.
        filters: fields that filter by a plain value.
        declared: fields that filter by an operator.
        operators: such as `created_at[gte]`, with the field and the operator.
    """

    listed: str | None
    once: Sequence[str]
    several: Sequence[str]
    partition: Sequence[str]
    sort: Sequence[str]
    filters: Sequence[str]
    declared: Sequence[str]
    operators: Mapping[str, tuple[str, str]]


def _given(served: Served, query: Query, options: Sequence[str]) -> tuple[_Known, Parameters]:
    """The parameters that a query may have, of which `options` are not fields, and those that it has."""
    names = [name for name, _ in query]
    # An operator that no field takes chooses an index too, so that its refusal names those that the field takes.
    ranged = [
        found[1]
        for name in names
        if (found := _OPERATOR.fullmatch(name)) and (found[2] in RANGE_WORDS or found[1] not in served.exposed.filters)
    ]
    index = index_of(served, dict(reversed(query)).get("index"), names, ranged)
    known = _known(served, index, tuple(options))
    return known, Parameters(query, known.once, known.several, filters=known.filters, operators=known.operators)


@lru_cache(maxsize=256)
def _known(served: Served, index: str | None, options: tuple[str, ...]) -> _Known:
    partition, sort, declared = served.partition_fields(index), served.sort_fields(index), served.exposed.filters
    distinct = ("distinct",) if served.exposed.distinct and "order" in options else ()
    once = [*options, *distinct, *sort, *declared]
    filters = [name for name in declared if name not in (*partition, *sort, *options)]
    words = {name: served.operators(name) for name in declared if name not in partition}
    words |= served.ranged_fields(index)
    operators = {f"{name}[{word}]": (name, word) for name in words for word in words[name] if word != "eq"}
    lists = [name for name, (_, word) in operators.items() if word == "in"]
    return _Known(
        index,
        [name for name in (*once, *operators) if name not in (*partition, *lists)],
        [*partition, *lists],
        partition,
        sort,
        filters,
        declared,
        operators,
    )


def _choice(caller: Caller, given: Parameters, known: _Known) -> Choice:
    """Which items the parameters choose, operators included."""
    sort: dict[str, Any] = given.some(known.sort)
    filters: dict[str, Any] = given.some(known.filters)
    for name, (field, word) in known.operators.items():
        if name not in given:
            continue
        fields = filters if field in known.declared else sort
        value = members_of(given.every(name)) if word == "in" else given.text(name)
        before = fields.get(field, {})
        # A plain parameter is equality.
        fields[field] = {**(before if isinstance(before, dict) else {"eq": before}), word: value}
    return choice_of(caller, given, known.partition, sort, index=known.listed, filters=filters)


def members_of(values: Sequence[str]) -> list[str]:
    """Return the values of an `in`: one parameter separates them by commas, several have one each, commas included."""
    return list(values) if len(values) > 1 else values[0].split(",")


def choice_of(
    caller: Caller,
    given: Parameters,
    partition: Sequence[str],
    sort: Sequence[str] | Mapping[str, Any],
    *,
    index: str | None = None,
    filters: Mapping[str, Any] | None = None,
) -> Choice:
    """Which items the parameters of a listing choose, by the names of the fields that may choose them."""
    return Choice(
        tenant=caller.tenant,
        partition={name: given.texts(name) for name in partition if name in given},
        index=index,
        sort=sort if isinstance(sort, Mapping) else given.some(sort),
        prefix=given.text("prefix"),
        start=given.text("from"),
        end=given.text("to"),
        filters=filters or {},
        consistent=given.flag("consistent"),
        strict=given.flag("strict"),
        caller=caller,
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


def _up_to(given: Parameters) -> int:
    text = given.text(UP_TO)
    if text is None:
        return DEFAULT_COUNTED
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(MAX_COUNTED)) else 0
    if not 1 <= number <= MAX_COUNTED:
        raise ValidationFailedError(FieldError(UP_TO, f"Use a number from 1 to {MAX_COUNTED}.", "out_of_range"))
    return number


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
    """Return the response with a page, and with a `Link` to the next one unless that is longer than a header may be."""
    link = "" if page.cursor is None else _next(root, query, page.cursor)
    headers = {"Link": link} if 0 < len(link) <= MAX_LINK_BYTES else {}
    return Response(HTTPStatus.OK, content_type=JSON, body=page.text, headers=headers, items=page.count)


def _next(root: str, query: Query, cursor: str) -> str:
    kept = urlencode([each for each in query if each[0] != "cursor"])
    # A cursor is in base64 for URLs already.
    return f'<{root}?{kept}{"&" if kept else ""}cursor={cursor}>; rel="next"'
