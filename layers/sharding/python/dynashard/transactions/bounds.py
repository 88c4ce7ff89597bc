"""Bounds of sums: what a field may not fall below or rise above when a step of a transaction adds to it.

The condition of the request decides, so that no other writer can come between. A field that is not stored counts as its
default, or as 0.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple

from dynashard.codec import encode_value
from dynashard.entity import EntityDefinition
from dynashard.errors import ExhaustedError, InvalidValueError
from dynashard.repository.conditions import Condition
from dynashard.repository.updates import added_to, start_of

Number = int | float | Decimal

_ROOM: Final = "{name}: {field} is {value}, so {amount} cannot be {verb}: it must stay at {side} {bound}"


class Bound(NamedTuple):
    """What a field must be after `amount` was added: at least `least`, at most `most`; None for no bound."""

    field: str
    amount: Decimal
    least: Decimal | None
    most: Decimal | None

    def refusal(self, name: str, value: Number | None) -> ExhaustedError | None:
        """Return the error of adding to an item with this value; None if the sum keeps to the bounds."""
        now = _exact(value or 0)
        after: Decimal = added_to(now, self.amount)
        for bound, side, off in (
            (self.least, "least", self.least is not None and after < self.least),
            (self.most, "most", self.most is not None and after > self.most),
        ):
            if bound is not None and off:
                taken = side == "least"
                left = _difference(now, bound) if taken else _difference(bound, now)
                text = _ROOM.format(
                    name=name,
                    field=self.field,
                    value=_plain(now),
                    amount=_plain(abs(self.amount)),
                    verb="taken" if taken else "added",
                    side=side,
                    bound=_plain(bound),
                )
                return ExhaustedError(
                    f"{text}. Ask for at most {_plain(max(left, Decimal(0)))}.", available=_plain(left)
                )
        return None


def bounds_of(
    entity: EntityDefinition[Any],
    add: Mapping[str, Any],
    at_least: Mapping[str, Number] | None,
    at_most: Mapping[str, Number] | None,
) -> tuple[Bound, ...]:
    """Return the bounds of an update; raises `InvalidValueError` if one is not a number, or of a field not added to."""
    least, most = at_least or {}, at_most or {}
    for name, bound in (*least.items(), *most.items()):
        if name not in add or isinstance(add[name], set | frozenset):
            raise InvalidValueError(
                f"{entity.name}: {name} has a bound, and nothing is added to it: name it in add", field=name
            )
        if isinstance(bound, bool) or not isinstance(bound, int | float | Decimal) or not _exact(bound).is_finite():
            raise InvalidValueError(f"{entity.name}: the bound of {name} is {bound!r}; give a number", field=name)
    named = dict.fromkeys([*least, *most])
    return tuple(
        Bound(
            name,
            _exact(add[name]),
            _exact(least[name]) if name in least else None,
            _exact(most[name]) if name in most else None,
        )
        for name in named
    )


def condition_of(entity: EntityDefinition[Any], bounds: Sequence[Bound]) -> Condition:
    """Return the condition that the stored item keeps to the bounds after the addition."""
    terms: list[str] = []
    values: dict[str, Any] = {}
    names: dict[str, str] = {}
    for number, bound in enumerate(bounds):
        [names[f"#bound{number}"]] = entity.attributes_of([bound.field])
        for limit, sign, slot in ((bound.least, ">=", "least"), (bound.most, "<=", "most")):
            if limit is None:
                continue
            before = _difference(limit, bound.amount)
            term = f"#bound{number} {sign} :{slot}{number}"
            start = _exact(start_of(entity, bound.field) or 0)
            absent = before <= start if sign == ">=" else before >= start
            terms.append(f"(attribute_not_exists(#bound{number}) OR {term})" if absent else term)
            values[f":{slot}{number}"] = encode_value(_plain(before), path=bound.field)
    return Condition(" AND ".join(terms), values, names)


def refusal_of(name: str, bounds: Sequence[Bound], values: Mapping[str, Any]) -> ExhaustedError | None:
    """Return the error of adding to an item with these fields; None if the sums keep to the bounds."""
    refused = (bound.refusal(name, values.get(bound.field)) for bound in bounds)
    return next((each for each in refused if each is not None), None)


def _exact(value: Number) -> Decimal:
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def _difference(one: Decimal, other: Decimal) -> Decimal:
    difference: Decimal = added_to(one, other.copy_negate())
    return difference


def _plain(value: Decimal) -> int | Decimal:
    """Return a whole number as an int, whose text has no exponent."""
    return int(value) if value == value.to_integral_value() else value
