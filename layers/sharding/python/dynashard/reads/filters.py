"""Filters: conditions on fields, as callers write them, and as expressions that DynamoDB applies after reading.

REST, direct invocation and Python use the words of `WORDS`: `{"created_at": {"gte": ..., "lt": ...}, "status": "open"}`
here is `?created_at[gte]=...&created_at[lt]=...&status=open` over REST. A filter saves answers, not read units, unless
`key_ranges` can make a range of sort keys of it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from dynashard.codec import encode_value
from dynashard.cures import hint
from dynashard.entity import EntityDefinition
from dynashard.errors import InvalidQueryError, InvalidValueError
from dynashard.reads.matching import Term
from dynashard.schema import EXPIRES_AT, MOVED_TO, VERSION

Operator = Literal["=", "<>", "<", "<=", ">", ">=", "in", "begins_with", "contains", "exists"]
WORDS: Final[Mapping[str, Operator]] = {
    "eq": "=",
    "ne": "<>",
    "gt": ">",
    "gte": ">=",
    "lt": "<",
    "lte": "<=",
    "in": "in",
    "prefix": "begins_with",
    "contains": "contains",
    "exists": "exists",
}
"""The operators as callers write them, with what DynamoDB calls them, which Python takes too."""
_USE: Final = f"use one of {', '.join(WORDS)}"
MAX_MEMBERS: Final = 100
"""Values of one `in`: DynamoDB takes no more."""
MAX_CONDITIONS: Final = 50
MAX_EXPRESSION: Final = 4000
"""Bytes of a filter expression. DynamoDB takes 4 KB, of which a listing that follows markers needs some."""

_EQUALITIES: Final = frozenset({"=", "<>"})
_COMPARISONS: Final = _EQUALITIES | {"<", "<=", ">", ">="}
_OPERATORS: Final = get_args(Operator)
_PARTS: Final = len(("field", "operator", "value"))
_EXAMPLE: Final = (
    'write {"field": value}, {"field": {"gte": value}}, or a list of tuples such as ("field", "gte", value)'
)
_FUNCTIONS: Final = frozenset({"begins_with", "contains"})
_ORDERED: Final = frozenset({"S", "N", "B"})
"""Types that have an order, as DynamoDB names them."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on one field.

    `operator` is one of `WORDS`, or DynamoDB's name of it, which is kept: a comparison, `in` (a list of values),
    `prefix`, `contains` (a part of a text, a member of a list or set), or `exists`, whose `value` is True or False.
    """

    field: str
    operator: str
    value: Any

    def __post_init__(self) -> None:
        if isinstance(self.operator, str) and self.operator in WORDS:
            object.__setattr__(self, "operator", WORDS[self.operator])


Filters = Mapping[str, Any] | Sequence[Filter | tuple[str, str, Any]]
"""By field, the value that it must have or a mapping of operators; or conditions, also as `("age", "gte", 18)`."""


def filters_of(given: Any) -> tuple[Filter, ...]:
    """Return the conditions that a caller gives; raises `InvalidQueryError` for what is none."""
    if given.__class__ is tuple and not given:
        return ()
    if isinstance(given, Mapping):
        return tuple(condition for name, value in given.items() for condition in conditions_on(name, value))
    if isinstance(given, Filter) or _is_condition(given):
        given = [given]
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidQueryError(f"filters is {given!r}; {_EXAMPLE}", field="filters")
    return tuple(map(_condition, given))


def conditions_on(name: str, value: Any) -> list[Filter]:
    """Return the conditions on one field: one for each operator of a mapping, or equality with any other value."""
    if is_operators(value):
        return [Filter(name, operator, operand) for operator, operand in value.items()]
    return [Filter(name, "=", value)]


def is_operators(value: Any) -> bool:
    """Whether a value is a mapping of operators. A field's own value that looks like one is written `{"eq": value}`."""
    if not isinstance(value, Mapping) or not value:
        return False
    return all(isinstance(each, str) and (each in WORDS or each in _OPERATORS) for each in value)


def not_operators(name: str, value: Mapping[Any, Any]) -> InvalidQueryError:
    """Return the error of a mapping that a field cannot have as a value, with a name that is not an operator."""
    return InvalidQueryError(f"{name}: {value!r} is neither a value of the field nor operators; {_USE}", field=name)


def _condition(given: Any) -> Filter:
    if isinstance(given, Filter):
        return given
    if _is_condition(given):
        return Filter(*given)
    raise InvalidQueryError(f"{given!r} is not a filter; {_EXAMPLE}", field="filters")


def _is_condition(given: Any) -> bool:
    return isinstance(given, tuple | list) and len(given) == _PARTS and all(isinstance(part, str) for part in given[:2])


class FilterExpression(Struct, frozen=True):
    """Filters as DynamoDB takes them; `terms` are the same for items that the layer filters itself."""

    text: str
    names: dict[str, str]
    values: dict[str, dict[str, Any]]
    terms: tuple[Term, ...] = ()

    def __and__(self, other: "FilterExpression") -> "FilterExpression":
        """Return both, whose placeholders must differ."""
        text = " AND ".join(term for term in (self.text, other.text) if term)
        return FilterExpression(text, self.names | other.names, self.values | other.values, self.terms + other.terms)

    @property
    def passing_markers(self) -> "FilterExpression":
        """The same, but relocation markers pass, because the items that they lead to are filtered."""
        if not self.text:
            return self
        return replace(self, text=f"({self.text}) OR attribute_exists({MOVED_TO})")

    def passing_older(self, version: int) -> "FilterExpression":
        """The same, but items of earlier versions of a declaration pass, because they are filtered once upgraded."""
        if not self.text:
            return self
        older = f"attribute_not_exists({VERSION}) OR {VERSION} < :older"
        return replace(self, text=f"({self.text} OR {older})", values=self.values | {":older": {"N": str(version)}})

    def matches(self, item: Mapping[str, Any]) -> bool:
        """Whether a stored item passes, by DynamoDB's rules."""
        return all(term.holds(item) for term in self.terms)


_ALL: Final = FilterExpression("", {}, {})
"""The expression that every item passes."""


def filter_expression(entity: EntityDefinition[Any], filters: Filters) -> FilterExpression:
    """Return all filters joined by AND; the text is '' if there are none.

    Raises:
        InvalidQueryError: an unknown field or operator.
        InvalidValueError: a value that the field does not take.
    """
    if not filters:
        return _ALL
    texts: list[str] = []
    terms: list[Term] = []
    names: dict[str, str] = {}
    values: dict[str, dict[str, Any]] = {}
    conditions = filters_of(filters)
    if len(conditions) > MAX_CONDITIONS:
        raise InvalidQueryError(
            f"{len(conditions)} conditions are given; give at most {MAX_CONDITIONS}", field="filters"
        )
    for i, condition in enumerate(conditions):
        attribute = _attribute(entity, condition)
        name, place = f"#f{i}", f":f{i}"
        names[name] = attribute
        operator, operands = _operands(entity, condition)
        if operator == "in":
            placeholders = {f"{place}_{n}": member for n, member in enumerate(operands)}
            terms.append(Term(attribute, operator, {"L": operands}))
        else:
            placeholders = dict(zip([place], operands, strict=False))
            terms.append(Term(attribute, operator, *operands))
        values |= placeholders
        texts.append(_TEXTS[operator].format(name=name, operator=operator, value=", ".join(placeholders)))
    text = " AND ".join(texts)
    if len(text) > MAX_EXPRESSION:
        raise InvalidQueryError("the filters are too many for one request; give fewer conditions", field="filters")
    return FilterExpression(text, names, values, tuple(terms))


_TEXTS: Final[Mapping[str, str]] = {
    **dict.fromkeys(_COMPARISONS, "{name} {operator} {value}"),
    **dict.fromkeys(_FUNCTIONS, "{operator}({name}, {value})"),
    "in": "{name} IN ({value})",
    "exists": "attribute_exists({name})",
    "not_exists": "attribute_not_exists({name})",
    "set": "attribute_exists({name}) AND {name} <> {value}",
    "unset": "(attribute_not_exists({name}) OR {name} = {value})",
}
_NULL: Final = {"NULL": True}


def _attribute(entity: EntityDefinition[Any], condition: Filter) -> str:
    """The stored attribute of a condition."""
    field = condition.field
    if field not in entity.model.model_fields:
        near = hint(field, entity.model.model_fields)
        raise InvalidQueryError(f"{entity.name} has no field {field} to filter by{near}", field=field)
    if field in entity.attachments and condition.operator != "exists":
        raise InvalidQueryError(f"{field} is an attachment: a listing only knows whether it exists", field=field)
    return EXPIRES_AT if field == entity.expires else field


def _operands(entity: EntityDefinition[Any], condition: Filter) -> tuple[str, list[dict[str, Any]]]:
    """The operator of a condition as a `Term` has it, and its values as they are stored."""
    operator = condition.operator
    if operator == "exists":
        if condition.field not in entity.optional:
            # None is stored, unless it is the default.
            return ("set" if _exists(condition) else "unset"), [_NULL]
        return ("exists" if _exists(condition) else "not_exists"), []
    if operator == "in":
        return operator, [_compared(entity, Filter(condition.field, "=", each)) for each in _members(condition)]
    if operator in _COMPARISONS:
        return operator, [_compared(entity, condition)]
    if operator in _FUNCTIONS:
        return operator, [_sought(entity, condition)]
    message = f"{operator!r} is not a filter operator; {_USE}"
    raise InvalidQueryError(message, field=condition.field)


def _members(condition: Filter) -> list[Any]:
    """The values of an `in`."""
    given = condition.value
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        message = f"{condition.field}: in takes a list of values, not {given!r}"
        raise InvalidQueryError(message, field=condition.field)
    members = list(given)
    if not 1 <= len(members) <= MAX_MEMBERS:
        message = f"{condition.field}: in has {len(members)} values; it takes 1 to {MAX_MEMBERS}"
        raise InvalidQueryError(message, field=condition.field)
    return members


def _exists(condition: Filter) -> bool:
    if not isinstance(condition.value, bool):
        message = f"{condition.field}: exists is {condition.value!r}; it must be True or False"
        raise InvalidQueryError(message, field=condition.field)
    return condition.value


def _compared(entity: EntityDefinition[Any], condition: Filter) -> dict[str, Any]:
    """The value of a comparison, which must be one that the field could have."""
    field, operator = condition.field, condition.operator
    try:
        checked = entity.assignment.check(field, condition.value)
        stored = entity.encode({field: checked})
    except InvalidValueError as error:
        if isinstance(condition.value, Mapping):
            raise not_operators(field, condition.value) from error
        if isinstance(condition.value, list | tuple | set | frozenset):
            message = f'{error.message}; for any of several values, write filters={{{field!r}: {{"in": [...]}}}}'
            raise InvalidValueError(message, field=field) from error
        raise
    if not stored:
        raise InvalidQueryError(f"{field} is not stored if it is None; use exists", field=field)
    if field == entity.expires:
        # It is stored to the second, and compared with the very time.
        return encode_value(checked - _EPOCH)
    [value] = stored.values()
    if operator not in _EQUALITIES and not _ORDERED.issuperset(value):
        raise InvalidQueryError(f"{field} has values without an order, which {operator} cannot compare", field=field)
    return dict(value)


def _sought(entity: EntityDefinition[Any], condition: Filter) -> dict[str, Any]:
    """The value that a function looks for, which may be of another type than the field: a member, or part of a text."""
    field, operator = condition.field, condition.operator
    if field == entity.expires:
        raise InvalidQueryError(f"{field} is a time; use a comparison", field=field)
    value = entity.encode_field(field, condition.value)
    if operator == "begins_with" and not {"S", "B"}.issuperset(value):
        raise InvalidQueryError(f"{field}: prefix takes a text or bytes", field=field)
    return value
