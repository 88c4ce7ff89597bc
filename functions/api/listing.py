"""Listings over HTTP: query parameters in, a page and a `Link` to the next one out."""

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

from aws_lambda_powertools.event_handler import Response
from pydantic import ValidationError

from dynashard import Entity, Filter, Page
from dynashard.errors import InvalidQueryError
from functions.api.bodies import JSON, Document, representation, written
from functions.api.incoming import Incoming
from functions.api.problems import FieldError, invalid_fields
from functions.api.resource import LIST_PARAMETERS, TENANT, Resource

DEFAULT_LIMIT: Final = 50
MAX_LIMIT: Final = 1000
MAX_ANSWER_BYTES: Final = 5 * 1024 * 1024
"""Lambda answers at most 6 MB; the rest is left to headers and escapes."""
_PARAMETERS: Final = {"start": "from", "end": "to"}
"""What the layer's arguments are called here."""
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "order": ("round_robin", "ordered", "shard"),
    "direction": ("asc", "desc"),
    "consistent": ("true", "false"),
}

Query = Sequence[tuple[str, str]]
PageOf = Callable[[type[Entity], Mapping[str, Any]], Page[Any]]


def consistent_only(query: Query, *, allowed: bool = True) -> bool:
    """Read the query of a single item: `consistent=true|false`, or nothing at all where that is not allowed.

    Raises:
        ProblemError: 422 with every other parameter.
    """
    values = _once(query, ("consistent",) if allowed else ())
    return _choice(values, "consistent", "false") == "true"


def _once(query: Query, allowed: Sequence[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    errors = []
    for name, value in query:
        if name not in allowed:
            message = f"Unknown query parameter; known are {', '.join(allowed) or 'none'}."
            errors.append(FieldError(name, message, "unknown_parameter"))
        elif name in values:
            errors.append(FieldError(name, "Give this query parameter once.", "repeated_parameter"))
        values[name] = value
    if errors:
        raise invalid_fields(*errors)
    return values


def _choice(values: Mapping[str, str], name: str, default: str) -> str:
    value = values.get(name, default)
    if value not in _CHOICES[name]:
        raise invalid_fields(FieldError(name, f"Use one of {', '.join(_CHOICES[name])}.", "enum"))
    return value


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
        """`GET` of the resource: a page. Cost: what the order costs; see the collection's `list`.

        A page that Lambda could not answer is read again with fewer items, so a page of large items is short.
        """
        options = self.options_of(incoming)
        while True:
            page = self._page(options)
            body = written({"items": [self._shown(item) for item in page.items], "cursor": page.cursor})
            if len(body) <= MAX_ANSWER_BYTES or options["limit"] == 1:
                break
            options["limit"] = max(1, min(len(page.items), options["limit"]) // 2)
        headers = {} if page.cursor is None else {"Link": self._next(incoming.query, page.cursor)}
        return Response(HTTPStatus.OK, content_type=JSON, body=body, headers=headers)

    def _page(self, options: Mapping[str, Any]) -> Page[Any]:
        try:
            return self._page_of(self._resource.entity, options)
        except InvalidQueryError as error:
            name = _PARAMETERS.get(error.field or "", error.field or "")
            raise invalid_fields(FieldError(name, str(error), error.code)) from error

    def _shown(self, item: Any) -> Document:
        if not isinstance(item, Mapping):
            return representation(item, item.revision)
        partial = self._resource.entity.model_construct(**item)
        shown: Document = partial.model_dump(mode="json", include=set(item))
        return shown

    def _next(self, query: Query, cursor: str) -> str:
        kept = [(name, value) for name, value in query if name != "cursor"]
        return f'<{self._resource.root}?{urlencode([*kept, ("cursor", cursor)])}>; rel="next"'

    def options_of(self, incoming: Incoming) -> dict[str, Any]:
        """The arguments of the collection's `list` that a query asks for.

        Raises:
            ProblemError: 422 with every parameter at fault.
        """
        index = self._index_of(incoming.query)
        key_fields = self._key_fields(index)
        values = _once(incoming.query, [*LIST_PARAMETERS, *key_fields, *self._resource.filters])
        lookup = None if index is None else self._resource.lookup_field(index)
        start, end = values.get("from"), values.get("to")
        if index is not None and lookup is not None and lookup in values:
            start = self._lookup(index, lookup, values)
            # The text that comes just after another is that text and a NUL; the end of a range is left out.
            end = start + "\0"
        partition = self._partition(values, [name for name in key_fields if name != lookup])
        return {
            "partition": {TENANT: incoming.tenant, **partition},
            "index": index,
            "order": _choice(values, "order", "round_robin"),
            "direction": _choice(values, "direction", "asc"),
            "limit": _limit(values),
            "cursor": values.get("cursor"),
            "prefix": values.get("prefix"),
            "start": start,
            "end": end,
            "filters": self._filters(values, key_fields),
            "fields": self._fields(values),
            "consistent": _choice(values, "consistent", "false") == "true",
        }

    def _index_of(self, query: Query) -> str | None:
        names = [value for name, value in query if name == "index"]
        if not names:
            return None
        if names[0] not in self._resource.indexes:
            known = ", ".join(self._resource.indexes) or "none"
            raise invalid_fields(FieldError("index", f"Unknown index; known are {known}.", "enum"))
        return names[0]

    def _key_fields(self, index: str | None) -> Sequence[str]:
        if index is not None:
            return self._resource.index_fields(index)
        return [name for name in self._resource.definition.partition_fields if name != TENANT]

    def _lookup(self, index: str, name: str, values: Mapping[str, str]) -> str:
        clashing = [parameter for parameter in ("prefix", "from", "to") if parameter in values]
        if clashing:
            message = f"{name} asks for one sort key already: leave this out."
            raise invalid_fields(*(FieldError(parameter, message, "contradiction") for parameter in clashing))
        return self._resource.indexes[index].sort.render({name: self._parsed(name, values[name])})

    def _filters(self, values: Mapping[str, str], key_fields: Sequence[str]) -> list[Filter]:
        names = [name for name in self._resource.filters if name in values and name not in key_fields]
        return [Filter(name, "=", self._parsed(name, values[name])) for name in names]

    def _partition(self, values: Mapping[str, str], fields: Sequence[str]) -> dict[str, Any]:
        missing = [name for name in fields if name not in values]
        if missing:
            message = "This listing needs the query parameter."
            raise invalid_fields(*(FieldError(name, message, "missing") for name in missing))
        return {name: self._parsed(name, values[name]) for name in fields}

    def _parsed(self, name: str, value: str) -> Any:
        try:
            return self._resource.parse(name, value)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            raise invalid_fields(FieldError(name, first["msg"], first["type"])) from error

    def _fields(self, values: Mapping[str, str]) -> Sequence[str] | None:
        if "fields" not in values:
            return None
        names = values["fields"].split(",")
        known = tuple(self._resource.entity.model_fields)
        unknown = [name for name in names if name not in known]
        if unknown:
            raise invalid_fields(FieldError("fields", f"Use a list of {', '.join(known)}.", "enum"))
        return list(dict.fromkeys(names))


def _limit(values: Mapping[str, str]) -> int:
    text = values.get("limit", str(DEFAULT_LIMIT))
    limit = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(MAX_LIMIT)) else 0
    if not 1 <= limit <= MAX_LIMIT:
        raise invalid_fields(FieldError("limit", f"Use a number from 1 to {MAX_LIMIT}.", "out_of_range"))
    return limit
