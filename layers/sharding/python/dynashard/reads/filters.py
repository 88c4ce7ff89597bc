"""Conditions on fields that DynamoDB applies after reading: they save answers, not read units."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from dynashard.entity import EntityDefinition
from dynashard.errors import InvalidQueryError
from dynashard.schema import EXPIRES_AT

Operator = Literal["=", "<>", "<", "<=", ">", ">=", "begins_with", "contains", "exists"]

_COMPARISONS: Final = frozenset({"=", "<>", "<", "<=", ">", ">="})
_FUNCTIONS: Final = frozenset({"begins_with", "contains"})


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on one field.

    Attributes:
        field: the field.
        operator: a comparison, `begins_with`, `contains` (a part of a text, a member of a list or set), or `exists`.
        value: what to compare with; for `exists`, True or False.
    """

    field: str
    operator: Operator
    value: Any


@dataclass(frozen=True, slots=True)
class FilterExpression:
    """Filters as DynamoDB takes them."""

    text: str
    names: dict[str, str]
    values: dict[str, dict[str, Any]]

    def __and__(self, other: "FilterExpression") -> "FilterExpression":
        """Both; their placeholders must differ."""
        text = " AND ".join(term for term in (self.text, other.text) if term)
        return FilterExpression(text, self.names | other.names, self.values | other.values)


def filter_expression(entity: EntityDefinition[Any], filters: Sequence[Filter]) -> FilterExpression:
    """All filters joined by AND; the text is '' if there are none.

    Raises:
        InvalidQueryError: a field the entity does not have, or an operator that is none.
        InvalidValueError: a value the field does not take.
    """
    terms: list[str] = []
    names: dict[str, str] = {}
    values: dict[str, dict[str, Any]] = {}
    for i, condition in enumerate(filters):
        field, operator = condition.field, condition.operator
        if field not in entity.model.model_fields:
            raise InvalidQueryError(f"{entity.name} has no field {field} to filter by", field=field)
        name, value = f"#f{i}", f":f{i}"
        names[name] = EXPIRES_AT if field == entity.expires else field
        if operator == "exists":
            terms.append(f"attribute_{'exists' if condition.value else 'not_exists'}({name})")
            continue
        if operator in _COMPARISONS:
            values[value] = entity.encode_field(field, entity.check_value(field, condition.value))
            terms.append(f"{name} {operator} {value}")
        elif operator in _FUNCTIONS:
            # A part of a text or a member of a set need not be a value the whole field could have.
            values[value] = entity.encode_field(field, condition.value)
            terms.append(f"{operator}({name}, {value})")
        else:
            raise InvalidQueryError(f"{operator!r} is no filter operator", field=field)
    return FilterExpression(" AND ".join(terms), names, values)
