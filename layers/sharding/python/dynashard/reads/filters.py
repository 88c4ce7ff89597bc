"""Filter expressions: conditions on fields that DynamoDB applies after reading. They save answers, not read units."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from dynashard.entity import EntityDefinition
from dynashard.errors import InvalidQueryError
from dynashard.nearest import hint
from dynashard.reads.matching import Term
from dynashard.schema import EXPIRES_AT, MOVED_TO, VERSION

Operator = Literal["=", "<>", "<", "<=", ">", ">=", "begins_with", "contains", "exists"]

_EQUALITIES: Final = frozenset({"=", "<>"})
_COMPARISONS: Final = _EQUALITIES | {"<", "<=", ">", ">="}
_OPERATORS: Final = get_args(Operator)
_PARTS: Final = len(("field", "operator", "value"))
_EXAMPLE: Final = 'write {"field": value}, or a list of tuples such as ("field", "=", value)'
_FUNCTIONS: Final = frozenset({"begins_with", "contains"})
_ORDERED: Final = frozenset({"S", "N", "B"})
"""Types that have an order, as DynamoDB names them."""


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on one field.

    `operator` is a comparison, `begins_with`, `contains` (a part of a text, a member of a list or set), or `exists`,
    whose `value` is True or False.
    """

    field: str
    operator: Operator
    value: Any


Filters = Mapping[str, Any] | Sequence[Filter | tuple[str, str, Any]]
"""Values that fields must have, by field; or conditions, also as tuples such as `("age", ">=", 18)`."""


def filters_of(given: Any) -> tuple[Filter, ...]:
    """Return the conditions that a caller gives; raises `InvalidQueryError` for what is none."""
    if given.__class__ is tuple and not given:
        return ()
    if isinstance(given, Mapping):
        return tuple(_equal(name, value) for name, value in given.items())
    if isinstance(given, Filter) or _is_condition(given):
        given = [given]
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidQueryError(f"filters is {given!r}; {_EXAMPLE}", field="filters")
    return tuple(map(_condition, given))


def _equal(name: str, value: Any) -> Filter:
    if isinstance(value, Mapping) and value and all(operator in _OPERATORS for operator in value):
        operator, operand = next(iter(value.items()))
        cure = f"write filters=[({name!r}, {operator!r}, {operand!r})]"
        raise InvalidQueryError(f"the filter of {name} is {value!r}; {cure}", field="filters")
    return Filter(name, "=", value)


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
    for i, condition in enumerate(filters_of(filters)):
        field, operator = condition.field, condition.operator
        if field not in entity.model.model_fields:
            near = hint(field, entity.model.model_fields)
            raise InvalidQueryError(f"{entity.name} has no field {field} to filter by{near}", field=field)
        if field in entity.attachments and operator != "exists":
            raise InvalidQueryError(f"{field} is an attachment: a listing only knows whether it exists", field=field)
        name, value = f"#f{i}", f":f{i}"
        names[name] = EXPIRES_AT if field == entity.expires else field
        if operator == "exists":
            texts.append(f"attribute_{'exists' if condition.value else 'not_exists'}({name})")
            terms.append(Term(names[name], "exists" if condition.value else "not_exists"))
            continue
        if operator in _COMPARISONS:
            values[value] = _compared(entity, condition)
            texts.append(f"{name} {operator} {value}")
        elif operator in _FUNCTIONS:
            values[value] = _sought(entity, condition)
            texts.append(f"{operator}({name}, {value})")
        else:
            message = f"{operator!r} is not a filter operator; use one of {', '.join(_OPERATORS)}"
            raise InvalidQueryError(message, field=field)
        terms.append(Term(names[name], operator, values[value]))
    return FilterExpression(" AND ".join(texts), names, values, tuple(terms))


def _compared(entity: EntityDefinition[Any], condition: Filter) -> dict[str, Any]:
    """The value of a comparison, which must be one that the field could have."""
    field, operator = condition.field, condition.operator
    stored = entity.encode({field: entity.assignment.check(field, condition.value)})
    if not stored:
        raise InvalidQueryError(f"{field} is not stored if it is None; use exists", field=field)
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
        raise InvalidQueryError(f"{field}: begins_with takes a text or bytes", field=field)
    return value
