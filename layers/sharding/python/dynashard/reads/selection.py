"""What an index query is, for Python, REST and direct invocation: which listing the named fields select, and its range.

A listing is one of the table or of an index. Fields select it if they are all fields of its partition, and perhaps the
first fields of its sort key. Sort fields choose the sort keys that begin with their values; all of them, one key.
"""

from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, Final

from dynashard.arguments import check_flag
from dynashard.cures import hint
from dynashard.entity import EntityDefinition, IndexDefinition
from dynashard.errors import InvalidKeyError, InvalidQueryError, InvalidValueError
from dynashard.keys import KeyTemplate
from dynashard.model_schema import model_schema
from dynashard.reads.bounds import Bounds
from dynashard.reads.filters import filters_of, is_operators, not_operators
from dynashard.reads.first_fields import text_of_first_fields
from dynashard.reads.key_ranges import RANGES, key_range
from dynashard.reads.query import Order, Query, QueryArguments
from dynashard.schema import MAX_SORT_KEY_BYTES

OPTIONS: Final = frozenset({*QueryArguments.__annotations__, "reverse"})
"""The arguments of listings that are not fields."""
_OTHERS: Final = ("cursor", "workers")
_ELSEWHERE: Final = {
    **dict.fromkeys(("ascending", "asc"), 'order="ordered"'),
    **dict.fromkeys(("begins_with", "startswith", "starts_with"), 'prefix="..."'),
    **dict.fromkeys(("desc", "descending", "reversed"), "reverse=True"),
    **dict.fromkeys(("after", "exclusive_start_key", "next_token", "offset", "page", "skip"), "cursor=page.cursor"),
    **dict.fromkeys(("attributes", "columns", "projection", "select"), "fields=[...]"),
    **dict.fromkeys(("filter", "filter_by", "where"), "filters={...}"),
    **dict.fromkeys(("max_items", "max_results", "page_size", "per_page", "size", "take"), "limit=..."),
    **dict.fromkeys(("order_by", "sort", "sort_by"), 'order="ordered", or the index=... that has this order'),
    "index_name": "index=...",
}
"""What other libraries call the arguments of listings, and how they are written here."""
_FEW: Final = {"enum": "members", "literal": "expected"}
"""Kinds of schemas of values that are one of a few, and where they have these."""
Listed = EntityDefinition[Any] | IndexDefinition


def index_of(
    entity: EntityDefinition[Any],
    names: Collection[str],
    *,
    indexes: Mapping[str, IndexDefinition] | None = None,
    filters: Collection[str] = (),
    ranged: Collection[str] = (),
) -> str | None:
    """Return the index that fields select; None for the table.

    The table comes first. An index is selected if it is the only one that takes all fields, or, if the table's
    partition is not named, the only one whose partition is. A listing that reads a range of its sort keys for a field
    with an operator comes before one that only filters by it.

    Args:
        entity: the compiled declaration.
        names: the fields that are named.
        indexes: the indexes that may be selected; all but read replicas if None.
        filters: the fields that may filter any listing.
        ranged: the fields that are named with an operator that a range of keys can stand for.
    """
    given = set(names)
    if indexes is None:
        indexes = listed_indexes(entity)
    if ranged:
        listings: list[Listed] = [entity, *indexes.values()]
        reading = [each for each in listings if _takes(each, given, filters, ranged, reads=True)]
        if reading and (reading[0] is entity or len(reading) == 1):
            return next((name for name, index in indexes.items() if index is reading[0]), None)
    if _takes(entity, given, filters, ranged):
        return None
    fitting = [name for name, index in indexes.items() if _takes(index, given, filters, ranged)]
    if len(fitting) == 1:
        return fitting[0]
    if given.issuperset(entity.partition.fields):
        return None
    covered = [name for name, index in indexes.items() if given.issuperset(index.partition.fields)]
    return covered[0] if len(covered) == 1 else None


def listed_indexes(entity: EntityDefinition[Any]) -> dict[str, IndexDefinition]:
    """Return the indexes that can be listed: all but read replicas."""
    return {name: index for name, index in entity.indexes.items() if not index.replica}


def sort_range(template: KeyTemplate, values: Mapping[str, Any]) -> dict[str, str]:
    """Return the arguments of a listing for the sort keys that begin with these fields; exactly one key with all.

    Raises `InvalidKeyError` if they are not the first fields of the sort key, or cannot be part of a key.
    """
    if not values:
        return {}
    text = text_of_first_fields(template, values)
    # The next text after another is that text and a NUL. The end of a range is exclusive.
    return {"start": text, "end": text + "\0"} if len(values) == len(template.fields) else {"prefix": text}


def query_of(entity: EntityDefinition[Any], partition: Any, arguments: Mapping[str, Any]) -> Query:
    """Return the query that a listing's arguments ask for.

    Args:
        entity: the compiled declaration.
        partition: the fields of a logical partition, a sequence of such, the value of the one field that the keywords
            leave open, or None.
        arguments: those of `Query` from `index` on, `reverse`, and fields by keyword.

    Raises:
        InvalidQueryError: an unknown argument or field, with the nearest valid name; fields that select no listing.
        InvalidKeyError, InvalidValueError: as of `Query`.
    """
    options, fields, operators = _parted(arguments)
    _require_known(entity, fields, operators)
    if partition.__class__ is not dict and isinstance(partition, Sequence) and not isinstance(partition, str | bytes):
        given_each = [_typed(entity, _merged(each, fields)) for each in partition]
        return Query(entity, given_each, **_filtered(options, operators))
    index = options.get("index")
    if index is not None and not isinstance(index, str):
        cure = f"write the name of an index: {', '.join(listed_indexes(entity)) or 'there is none'}"
        raise InvalidQueryError(f"index is a {type(index).__name__}; {cure}", field="index")
    given = _typed(entity, _given(entity, index, partition, fields))
    if index is not None and index not in listed_indexes(entity):
        # The query's own check has the error.
        return Query(entity, given, **_filtered(options, operators))
    ranged = [each.field for each in filters_of(operators) if each.operator in RANGES] if operators else ()
    index, selecting = _selected(entity, index, tuple(given), tuple(ranged))
    options["index"] = index
    listed: Listed = entity if index is None else entity.indexes[index]
    own = {name: value for name, value in given.items() if name not in selecting}
    sort = {name: given[name] for name in selecting}
    chosen = sort_range(listed.sort, sort) if sort else {}
    if chosen and (clash := [name for name in ("prefix", "start", "end") if options.get(name) is not None]):
        message = f"{next(iter(sort))} already selects the beginning of sort keys; leave out {clash[0]}"
        raise InvalidQueryError(message, field=clash[0])
    asked = _filtered({**options, **chosen} if chosen else options, operators)
    kept = narrowed(entity, listed, sort, asked)
    if kept is asked:
        return Query(entity, own, **asked)
    return Query(entity, own, **kept, former=Query(entity, own, **asked))


def _parted(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return the options, the fields that have a value, and those with operators."""
    options: dict[str, Any] = {}
    fields: dict[str, Any] = {}
    operators: dict[str, Any] = {}
    for name, value in arguments.items():
        if name in OPTIONS:
            options[name] = value
        elif is_operators(value):
            operators[name] = value
        else:
            fields[name] = value
    if "reverse" in options:
        _reverse(options)
    return options, fields, operators


def _given(
    entity: EntityDefinition[Any], index: str | None, partition: Any, fields: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the fields that are given by name or in a mapping, and the one whose value is given by itself."""
    if partition is None:
        return fields
    if partition.__class__ is dict or isinstance(partition, Mapping):
        return _merged(partition, fields) if fields else partition
    return {**fields, _open_field(entity, index, partition, fields): partition}


@lru_cache(maxsize=1024)
def _selected(
    entity: EntityDefinition[Any], index: str | None, names: tuple[str, ...], ranged: tuple[str, ...]
) -> tuple[str | None, tuple[str, ...]]:
    """Return the listing that fields with these names select, and those of them that are not of its partition.

    It is the index that is asked for, if one is. Raises `InvalidQueryError` if they select none.
    """
    if index is None:
        index = index_of(entity, names, ranged=ranged)
    listed: Listed = entity if index is None else entity.indexes[index]
    sort = tuple(name for name in names if name not in listed.partition.fields)
    _require_selected(entity, listed, names, sort)
    return index, sort


def narrowed(
    entity: EntityDefinition[Any], listed: Listed, sort: Mapping[str, Any], options: dict[str, Any]
) -> dict[str, Any]:
    """Return a listing's arguments with ranges of sort keys in place of those of its filters that they can stand for.

    Returns `options` themselves if there is nothing to replace. Cost: none.

    Args:
        entity: the compiled declaration.
        listed: the table's entity, or the index that is listed.
        sort: the values of the first sort fields, which `options` have as a prefix.
        options: the arguments of `Query` after the partition.
    """
    conditions = filters_of(options.get("filters", ()))
    if not conditions:
        return options
    texts = [options.get(name) for name in ("prefix", "start", "end")]
    if not any(each.operator in RANGES for each in conditions) or not all(
        text is None or (isinstance(text, str) and text) for text in texts
    ):
        return options
    prefix, start, end = texts
    found = key_range(entity, listed.sort, sort, conditions)
    if found.bounds == Bounds() or (prefix is not None and (start is not None or end is not None)):
        return options
    both = Bounds.of(prefix=prefix, start=start, end=end).within(found.bounds)
    # The next text after another is that text and a NUL. The start of a range is inclusive, its end exclusive.
    first = f"{both.low}\0" if both.low is not None and both.low_open else both.low
    last = f"{both.high}\0" if both.high is not None and not both.high_open else both.high
    if any(len(text.encode()) > MAX_SORT_KEY_BYTES for text in (first, last) if text is not None):
        return options
    if first is not None and last is not None and first > last:
        # Nothing lies in between.
        last = first
    return {**options, "prefix": None, "start": first, "end": last, "filters": found.rest}


def _filtered(options: dict[str, Any], operators: Mapping[str, Any]) -> dict[str, Any]:
    """The options with the conditions that were given as fields among the filters."""
    if not operators:
        return options
    return {**options, "filters": (*filters_of(options.get("filters", ())), *filters_of(operators))}


def _takes(
    listed: Listed, given: set[str], filters: Collection[str], ranged: Collection[str] = (), *, reads: bool = False
) -> bool:
    """Whether a listing takes all fields; with `reads`, only if it reads a range of keys for one of the `ranged`."""
    partition = set(listed.partition.fields)
    rest = given - partition - set(filters)
    if not partition <= given or rest != set(listed.sort.first_fields[: len(rest)]):
        return False
    following = listed.sort.fields[len(rest) :][:1]
    return set(ranged) <= {*following, *filters} and (not reads or not set(ranged).isdisjoint(following))


def _reverse(options: dict[str, Any]) -> None:
    """Replace `reverse` by the order and direction that it stands for: what is reversed has an order."""
    reverse = options.pop("reverse")
    if reverse is None:
        return
    check_flag("reverse", reverse)
    direction = "desc" if reverse else "asc"
    if options.setdefault("direction", direction) != direction:
        message = f"reverse={reverse} contradicts direction={options['direction']!r}; give one of them"
        raise InvalidQueryError(message, field="reverse")
    if reverse:
        options.setdefault("order", Order.ORDERED)


def _require_known(entity: EntityDefinition[Any], fields: Mapping[str, Any], operators: Collection[str]) -> None:
    for name in (*fields, *operators):
        if name not in entity.model.model_fields:
            known = [each for each in (*OPTIONS, *_OTHERS, *entity.model.model_fields) if each != name]
            near = _operator_hint(entity, name) or hint(name, known, _ELSEWHERE)
            message = f"{name} is neither an argument of listings nor a field of {entity.name}{near}"
            raise InvalidQueryError(message, field=name)
        value = fields.get(name) if name in _key_fields(entity) else None
        if isinstance(value, Mapping):
            raise not_operators(name, value)
        if isinstance(value, list | tuple | set | frozenset):
            one = name in entity.partition.fields
            cure = f'a list of partitions, [{{"{name}": ...}}, ...]' if one else f'{name}={{"in": [...]}}'
            raise InvalidQueryError(f"{name} has several values; write {cure}", field=name)


def _operator_hint(entity: EntityDefinition[Any], name: str) -> str:
    """Return what to write for a field and its operator in one name, as in `age__gte=18`; '' for another name."""
    field, _, operator = name.partition("__")
    return f'; write {field}={{"{operator}": ...}}' if operator and field in entity.model.model_fields else ""


def _typed(entity: EntityDefinition[Any], given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return fields of keys as their types; raise `InvalidKeyError` for a value that is not one of a field's choices.

    No item has a key with it, so the listing would be empty.
    """
    values = entity.key_values(given)
    for name, numbers in _choices(entity).items():
        if name not in values or (isinstance(value := values[name], str) and value in numbers):
            continue
        try:
            entity.assignment.check(name, value)
        except InvalidValueError as error:
            raise InvalidKeyError(str(error), field=name) from error
    return values


@lru_cache(maxsize=1024)
def _choices(entity: EntityDefinition[Any]) -> Mapping[str, frozenset[str]]:
    """The fields that have one of a few values, of an enum or of a `Literal`, each with the texts of those numbers.

    A key has a number as its text, so either may be given.
    """
    from dynashard.compiled.schemas import value_schema  # noqa: PLC0415 - with the compiled readers

    found: dict[str, frozenset[str]] = {}
    for name, field in model_schema(entity.model).fields.items():
        schema = value_schema(field["schema"])
        if schema["type"] in _FEW:
            choices = [each.value if isinstance(each, Enum) else each for each in schema[_FEW[schema["type"]]]]
            found[name] = frozenset(str(each) for each in choices if isinstance(each, int))
    return found


def _key_fields(entity: EntityDefinition[Any]) -> set[str]:
    """The fields of the entity's key and of those of its indexes, none of which can have a mapping as its value."""
    return {*entity.key_fields, *(name for index in entity.indexes.values() for name in index.fields)}


def _merged(partition: Any, fields: Mapping[str, Any]) -> dict[str, Any]:
    if partition.__class__ is not dict and not isinstance(partition, Mapping):
        message = f"A partition is {partition!r}; write its fields, such as {{'tenant_id': 'abc'}}."
        raise InvalidQueryError(message, field="partition")
    if twice := partition.keys() & fields.keys():
        raise InvalidQueryError(f"{min(twice)} is given twice; give it once", field=min(twice))
    return {**partition, **fields}


def _open_field(entity: EntityDefinition[Any], index: str | None, value: object, given: Mapping[str, Any]) -> str:
    """The one field of the partition that is not given by name, whose value a positional argument is."""
    listed: Listed = entity.indexes[index] if index in listed_indexes(entity) else entity
    left = [name for name in listed.partition.fields if name not in given]
    if len(left) != 1:
        fields = ", ".join(f"{name}=..." for name in listed.partition.fields)
        raise InvalidQueryError(
            f"{value!r} does not name a partition of {entity.name}; write {fields}", field="partition"
        )
    return left[0]


def _require_selected(
    entity: EntityDefinition[Any], listed: Listed, given: Collection[str], sort: Collection[str]
) -> None:
    """Refuse fields that are not of the selected listing, with the listings that there are."""
    unknown = [name for name in sort if name not in listed.sort.first_fields]
    if not unknown:
        return
    name = unknown[0]
    if name not in entity.model.model_fields:
        near = hint(name, (*listed.partition.fields, *listed.sort.fields))
        known = ", ".join(listed.partition.fields)
        raise InvalidQueryError(f"{name} is not a field of the partition, {known}{near}", field=name)
    ways = [f"the table by {_fields(entity)}"]
    ways += [f"{each} by {_fields(index)}" for each, index in listed_indexes(entity).items()]
    unique = [each for each in entity.unique if each.named.issuperset(given)]
    found = f"To find the item with a unique value, write find({_given_by_name(unique[0].ordered)}). " if unique else ""
    raise InvalidQueryError(
        f"No listing of {entity.name} is by {' and '.join(given)}; it lists {', '.join(ways)}. {found}"
        f"To choose among the items that a listing reads, write filters={{{name!r}: ...}}",
        field=name,
    )


def _given_by_name(names: Collection[str]) -> str:
    return ", ".join(f"{name}=..." for name in names)


def _fields(listed: Listed) -> str:
    return " and ".join([*listed.partition.fields, *listed.sort.first_fields])
