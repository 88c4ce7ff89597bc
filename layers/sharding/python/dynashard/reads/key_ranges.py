"""Filters on the first field of a sort key that is still open, as ranges of sort keys.

A filter is applied after reading, so a page of few passing items reads many others. A range is a key condition: what
lies outside is not read. `{created_at}#{id}` sorts by `created_at`, so `created_at` from March on is one range of keys.

A condition is replaced by a range only if both choose the same items whatever is stored:

    field                                   gt, gte, lt, lte        prefix
    fixed digits: times, `{seq:012d}`       exact                   not a text
    a text that ends the key                exact                   exact
    a text with more of the key behind it   a wider range, and      exact without a character of what
                                            the filter is kept      follows, else as the others

The wider range of a text is for `gt` and `gte` only: a shorter value may sort after a longer one with its separator.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, Final, NamedTuple

from dynashard.entity import EntityDefinition
from dynashard.entity.checks import plain_types
from dynashard.errors import InvalidKeyError, InvalidValueError
from dynashard.keys import KeyTemplate, TemplateField
from dynashard.reads.bounds import Bounds
from dynashard.reads.filters import Filter
from dynashard.reads.first_fields import text_of_first_fields
from dynashard.schema import MAX_SORT_KEY_BYTES

RANGES: Final = frozenset({">", ">=", "<", "<=", "begins_with"})
"""The operators that a range of sort keys can stand for."""

TIMES: Final = (date, datetime)
"""Types of days and of times."""


class KeyRange(NamedTuple):
    """The sort keys that conditions choose, and the conditions that must still be applied after reading."""

    bounds: Bounds
    rest: tuple[Filter, ...]


def open_field(template: KeyTemplate, equal: Mapping[str, Any]) -> str | None:
    """Return the field of a sort key whose range can be read: the first one without a value; None if there is none."""
    if set(template.first_fields[: len(equal)]) != set(equal):
        return None
    return next(iter(template.fields[len(equal) :]), None)


def key_range(
    entity: EntityDefinition[Any], template: KeyTemplate, equal: Mapping[str, Any], conditions: Sequence[Filter]
) -> KeyRange:
    """Return the range of sort keys that conditions choose.

    Args:
        entity: the compiled declaration.
        template: the sort key of the table or of the index that is listed.
        equal: the values of its first fields, if any are chosen.
        conditions: what must hold for an item.

    Cost: none.
    """
    name = open_field(template, equal)
    bounds, rest = Bounds(), list[Filter]()
    for condition in conditions:
        found = None
        if condition.field == name and condition.operator in RANGES:
            found = _range(entity, template, equal, condition)
        if found is None:
            rest.append(condition)
            continue
        within, exact = found
        bounds = bounds.within(within)
        if not exact:
            rest.append(condition)
    return KeyRange(bounds, tuple(rest))


def ranged_operators(entity: EntityDefinition[Any], template: KeyTemplate, name: str | None) -> tuple[str, ...]:
    """Return the operators on a first field of a sort key that choose a range of keys: they read little besides."""
    if name is None:
        return ()
    part, following = _place(template, name)
    if _is_fixed(entity, part):
        return (">", ">=", "<", "<=")
    if not _is_text(entity, name) or part.spec:
        return ()
    return ("begins_with",) if following else (">", ">=", "<", "<=", "begins_with")


def _place(template: KeyTemplate, name: str) -> tuple[TemplateField, str]:
    """The field in its template, and the text that follows it: "" if it ends the key."""
    place, part = next((i, p) for i, p in enumerate(template.parts) if isinstance(p, TemplateField) and p.name == name)
    following = template.parts[place + 1] if place + 1 < len(template.parts) else ""
    return part, following if isinstance(following, str) else "\0"


def _range(
    entity: EntityDefinition[Any], template: KeyTemplate, equal: Mapping[str, Any], condition: Filter
) -> tuple[Bounds, bool] | None:
    """The keys that one condition chooses, and whether they are exactly those; None if no range says it."""
    part, following = _place(template, condition.field)
    fixed = _is_fixed(entity, part)
    if not fixed and (part.spec or not _is_text(entity, condition.field) or not isinstance(condition.value, str)):
        return None
    try:
        head = text_of_first_fields(template, equal)
        text = template.field_text(part, {part.name: _typed(entity, condition)}) if fixed else _text(entity, condition)
        begins = _prefixed(head + str.__str__(text))
    except (InvalidKeyError, UnicodeEncodeError):
        # No key has such a value, so only the filter knows what it means.
        return None
    if condition.operator == "begins_with":
        return None if fixed else (begins, not following or not set(following) & set(condition.value))
    of_entity = Bounds.of(prefix=head, start=None, end=None)
    if not fixed and following:
        return (Bounds(low=begins.low).within(of_entity), False) if condition.operator in (">", ">=") else None
    return (_fixed_range if fixed else _text_range)(condition.operator, begins).within(of_entity), True


def _fixed_range(operator: str, begins: Bounds) -> Bounds:
    """The keys of a comparison with a value of fixed length: only keys with this very value begin with its text."""
    low = {">=": begins.low, ">": begins.high}.get(operator)
    high = {"<": begins.low, "<=": begins.high}.get(operator)
    return Bounds(low, high, high_open=True)


def _text_range(operator: str, begins: Bounds) -> Bounds:
    """The keys of a comparison with a text that ends the key."""
    if operator in (">", ">="):
        return Bounds(low=begins.low, low_open=operator == ">")
    return Bounds(high=begins.low, high_open=operator == "<")


def _typed(entity: EntityDefinition[Any], condition: Filter) -> Any:
    return entity.assignment.check(condition.field, condition.value)


def _text(entity: EntityDefinition[Any], condition: Filter) -> str:
    """What a text is compared with: as the field's validators make it, as a filter compares it."""
    value: str = condition.value
    if condition.operator == "begins_with":
        return value
    try:
        checked = _typed(entity, condition)
    except InvalidValueError:
        # It may be the beginning of a value, which is too short to be one.
        return value
    return checked if isinstance(checked, str) else value


def _prefixed(text: str) -> Bounds:
    """The keys that begin with a text, if it is short enough that others can; raises `InvalidKeyError` if it is not."""
    within = Bounds.of(prefix=text, start=None, end=None)
    if not text or within.high is None or not within.high_open or len(text.encode()) >= MAX_SORT_KEY_BYTES:
        raise InvalidKeyError("no range of sort keys has this beginning")
    return within


def _is_fixed(entity: EntityDefinition[Any], part: TemplateField) -> bool:
    """Whether the text of a field has the same length for every value, and the order of the values."""
    types = plain_types(entity.model.model_fields[part.name].annotation)
    if part.spec:
        return part.width is not None and types == {int}
    return len(types) == 1 and all(issubclass(each, TIMES) for each in types)


def _is_text(entity: EntityDefinition[Any], name: str) -> bool:
    return plain_types(entity.model.model_fields[name].annotation) == {str}
