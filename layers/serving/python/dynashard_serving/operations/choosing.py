"""Select the items of a listing or a count: its index, partitions, sort keys and filters."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, Final

from dynashard import reads
from dynashard.errors import FieldError, ValidationFailedError
from dynashard.keys import KeyTemplate
from dynashard.reads import Filter, Order
from dynashard.reads.bounds import Bounds
from dynashard.reads.filters import MAX_MEMBERS, is_operators
from dynashard.reads.key_ranges import open_field
from dynashard.reads.limits import MAX_LIMIT
from dynashard.reads.operators import EQUALITIES, PARTS, ranged_words
from dynashard_serving.documents import TENANT
from dynashard_serving.exposure import RESERVED
from dynashard_serving.limits import MAX_CHOICES
from dynashard_serving.operations.requests import Choice, List, Paging
from dynashard_serving.operations.served import Served, exactly

Options = dict[str, Any]
"""Arguments of a collection's `list`."""
_ORDERS: Final = tuple(Order)


def index_of(served: Served, asked: str | None, names: Collection[str], ranged: Collection[str] = ()) -> str | None:
    """Return the index that a request lists; None for the table.

    Args:
        served: the entity.
        asked: the index that the request names.
        names: what the request gives by name. If it names no index, fields select it as in Python; see
            `dynashard.reads.index_of`.
        ranged: the fields that it gives with an operator that a range of sort keys can stand for.

    Raises:
        ValidationFailedError: there is no such index.
    """
    if asked is not None:
        if asked not in served.indexes:
            known = ", ".join(served.indexes) or "none"
            raise ValidationFailedError(FieldError("index", f"Unknown index; known are {known}.", "enum"))
        return asked
    fields = (served.entity.model_fields.keys() & set(names)) - RESERVED
    return reads.index_of(
        served.definition,
        {TENANT, *fields},
        indexes=served.indexes,
        filters=served.exposed.filters,
        ranged=served.entity.model_fields.keys() & set(ranged),
    )


def chosen(served: Served, choice: Choice) -> Options:
    """Return the arguments of a listing that select its items.

    Raises:
        ValidationFailedError: with every member at fault: `partition.author`, `sort.state`, `filters.status`, and
            `filters.created_at[gte]` for the value of an operator.
        InvalidKeyError: a key cannot hold a value.
    """
    index = choice.index
    listed = served.definition if index is None else served.indexes[index]
    sort, operators = _sort_fields(served, choice.sort, listed.sort)
    options = {
        "partition": partitions(served, choice.partition, choice.tenant, index),
        "index": index,
        "filters": [*filters_on(served, choice.filters), *operators],
        "consistent": choice.consistent,
        "strict": choice.strict,
        **ranged(choice, dict(reads.sort_range(listed.sort, sort))),
    }
    return reads.narrowed(served.definition, listed, sort, options)


def listed(served: Served, request: List) -> Options:
    """The arguments of a listing.

    Raises:
        ValidationFailedError, InvalidKeyError: as `chosen`, `paged`; or a field cannot be listed.
    """
    fields = None if request.fields is None else served.projected(request.fields)
    options = {**chosen(served, request.choice), **paged(request.paging), "fields": fields}
    if request.distinct is None:
        return options
    return {**options, "distinct": _one_of("distinct", request.distinct, served.exposed.distinct)}


def paged(paging: Paging) -> Options:
    """Return the arguments of a listing for its pages.

    Raises:
        ValidationFailedError: with the one at fault.
    """
    if not 1 <= paging.limit <= MAX_LIMIT:
        raise ValidationFailedError(FieldError("limit", f"Use a number from 1 to {MAX_LIMIT}.", "out_of_range"))
    return {
        "order": _one_of("order", paging.order, _ORDERS),
        "direction": _one_of("direction", paging.direction, ("asc", "desc")),
        "limit": paging.limit,
        "cursor": paging.cursor,
    }


def partitions(served: Served, given: Mapping[str, Any], tenant: str, index: str | None) -> Any:
    """Return the logical partitions that fields name: one as its fields, several as a list of them.

    A field with a list of values names several partitions; two such fields, each with each.

    Raises:
        ValidationFailedError: a field is missing, unknown, of another tenant or invalid; or there are too many.
    """
    fields = served.partition_fields(index)
    if not fields and not given:
        return {TENANT: tenant}
    exactly(fields, given, tenant, "partition")
    several = {name: given[name] if isinstance(given[name], list) else [given[name]] for name in fields}
    count = prod(len(values) for values in several.values())
    if count > MAX_CHOICES:
        message = f"These values name {count} logical partitions; one request may name at most {MAX_CHOICES}."
        raise ValidationFailedError(FieldError("partition", message, "out_of_range"))
    if empty := [name for name, values in several.items() if not values]:
        message = "Name at least one value."
        raise ValidationFailedError(*(FieldError(f"partition.{name}", message, "out_of_range") for name in empty))
    values = [[served.value(name, each, f"partition.{name}") for each in several[name]] for name in fields]
    found = [{TENANT: tenant, **dict(zip(fields, picked, strict=True))} for picked in product(*values)]
    return found[0] if len(found) == 1 else found


def ranged(choice: Choice, sort: Mapping[str, Any]) -> Options:
    """Return the arguments of a listing for its sort keys: those of `sort` or `prefix`, between `from` and `to`.

    Raises:
        ValidationFailedError: `sort` and `prefix` are given, or no key of them can lie between `from` and `to`.
    """
    if sort and choice.prefix is not None:
        message = f"{next(iter(choice.sort))} already selects the beginning of sort keys. Remove this."
        raise ValidationFailedError(FieldError("prefix", message, "contradiction"))
    selected: Options = {"prefix": choice.prefix, "start": None, "end": None, **sort}
    if not sort and not choice.prefix:
        return {**selected, "start": choice.start, "end": choice.end}
    if choice.start is None and choice.end is None:
        return selected
    within = Bounds.of(prefix=selected["prefix"], start=selected["start"], end=selected["end"])
    for name, outside in (("from", _beyond(within, choice.start)), ("to", _before(within, choice.end))):
        if outside:
            message = "No sort key that is selected lies there. Remove this, or select other keys."
            raise ValidationFailedError(FieldError(name, message, "contradiction"))
    if not within.high_open:
        # A prefix as long as a key may be: one key at most.
        return selected
    start = max(text for text in (within.low, choice.start) if text is not None)
    end = min((text for text in (within.high, choice.end) if text is not None), default=None)
    return {**selected, "prefix": None, "start": start, "end": end}


def _beyond(within: Bounds, start: str | None) -> bool:
    if start is None or within.high is None:
        return False
    return within.high < start or (within.high == start and within.high_open)


def _before(within: Bounds, end: str | None) -> bool:
    return end is not None and within.low is not None and end <= within.low


def _sort_fields(
    served: Served, given: Mapping[str, Any], template: KeyTemplate
) -> tuple[dict[str, Any], list[Filter]]:
    """The values of the first sort fields that a request chooses, and what it says by operators of the next one."""
    if not given:
        return {}, []
    if unknown := [name for name in given if name not in template.fields]:
        message = f"The sort key has no such field; it has {', '.join(template.fields) or 'none'}."
        raise ValidationFailedError(*(FieldError(f"sort.{name}", message, "unknown_parameter") for name in unknown))
    equal = {
        name: _equal(served, name, value, "sort", lambda field: ranged_words(served.definition, template, field))
        for name, value in given.items()
        if not is_operators(value)
    }
    operators: list[Filter] = []
    for name in given.keys() - equal.keys():
        if name != open_field(template, equal):
            before = ", ".join(each for each in template.fields[: template.fields.index(name)] if each not in equal)
            message = f"Operators choose a range of the first sort field without a value. Give {before} too."
            raise ValidationFailedError(FieldError(f"sort.{name}", message, "contradiction"))
        operators += conditions_of(served, name, given[name], "sort", ranged_words(served.definition, template, name))
    return equal, operators


def filters_on(served: Served, given: Mapping[str, Any]) -> list[Filter]:
    """Return the conditions that a request names: by field, a value, or values by operator.

    Raises:
        ValidationFailedError: with each field that is not declared, operator that it does not take, or value.
    """
    known = served.exposed.filters
    if unknown := [name for name in given if name not in known]:
        message = f"Unknown filter; known are {', '.join(known) or 'none'}."
        raise ValidationFailedError(*(FieldError(f"filters.{name}", message, "unknown_parameter") for name in unknown))
    return [each for name, value in given.items() for each in conditions_of(served, name, value, "filters")]


def conditions_of(
    served: Served, name: str, given: Any, place: str, words: Sequence[str] | None = None
) -> list[Filter]:
    """Return what a request says of one field. `words` are the operators that it takes; those of its type if None."""
    if not is_operators(given):
        return [Filter(name, "=", _equal(served, name, given, place, served.operators))]
    words = served.operators(name) if words is None else words
    found, errors = [], []
    for word, value in given.items():
        at = f"{place}.{name}[{word}]"
        if word not in words:
            errors.append(FieldError(at, _taken(name, words), "unknown_parameter"))
            continue
        try:
            found.append(Filter(name, word, _operand(served, name, word, value, at)))
        except ValidationFailedError as error:
            errors += error.errors
    if errors:
        raise ValidationFailedError(*errors)
    return found


def _equal(served: Served, name: str, given: Any, place: str, words: Callable[[str], Sequence[str]]) -> Any:
    """Return the value of a field; refuse a mapping that is not a value, by the words in it that are not operators."""
    try:
        return served.value(name, given, f"{place}.{name}")
    except ValidationFailedError:
        unknown = [word for word in given if word not in words(name)] if isinstance(given, Mapping) else []
        if not unknown:
            raise
        message = _taken(name, words(name))
        errors = [FieldError(f"{place}.{name}[{word}]", message, "unknown_parameter") for word in unknown]
        raise ValidationFailedError(*errors) from None


def _taken(name: str, words: Sequence[str]) -> str:
    return f"{name} takes {', '.join(words)} here." if words else f"{name} takes no operators here, only a value."


def _operand(served: Served, name: str, word: str, given: Any, at: str) -> Any:
    if word == "exists":
        if given not in ("true", "false") and not isinstance(given, bool):
            raise ValidationFailedError(FieldError(at, "Use true or false.", "enum"))
        return given in (True, "true")
    if word == "in":
        members = given if isinstance(given, list) else [given]
        if not 1 <= len(members) <= MAX_MEMBERS:
            message = f"Give 1 to {MAX_MEMBERS} values, separated by commas."
            raise ValidationFailedError(FieldError(at, message, "out_of_range"))
        # Each value once, and 1 and "1" are two. The text is ASCII, because a caller may send half a surrogate pair.
        return [served.value(name, each, at) for each in {json.dumps(each): each for each in members}.values()]
    if word in PARTS:
        if not isinstance(given, str) or not given:
            raise ValidationFailedError(FieldError(at, "Give a text that is not empty.", "string_type"))
        return given
    return served.value(name, given, at, checked=word in EQUALITIES)


def _one_of(name: str, value: str, known: Collection[str]) -> str:
    if value not in known:
        raise ValidationFailedError(FieldError(name, f"Use one of {', '.join(known) or 'none'}.", "enum"))
    return value
