"""Partial updates: from new values of fields to one UpdateItem expression."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from decimal import Context, Decimal
from functools import lru_cache
from types import NoneType
from typing import Any, Final, NamedTuple

from dynashard.codec import encode_value
from dynashard.codec.numeric import MAX_DIGITS, MAX_EXPONENT, MIN_EXPONENT
from dynashard.cures import hint
from dynashard.entity import Entity, EntityDefinition, IndexDefinition, plain_types
from dynashard.errors import InvalidKeyError, InvalidValueError
from dynashard.repository.path_updates import MOST_CHARACTERS, PathUpdates
from dynashard.schema import MOVED_FROM, PREV, REV
from dynashard.transport.interface import Wire

_EXACT: Final = Context(prec=MAX_EXPONENT - MIN_EXPONENT + MAX_DIGITS + 1)
"""Holds the sum of any two numbers of DynamoDB without rounding."""
_NUMBERS: Final = frozenset({int, float, Decimal})

Attributes = Mapping[str, Mapping[str, Any]]


class FieldUpdates(NamedTuple):
    """Checked updates of an item's fields: new values, None to remove one, and what is added to numbers and sets."""

    set: Mapping[str, Any]
    add: Mapping[str, Any]

    @property
    def fields(self) -> frozenset[str]:
        """All fields that are updated."""
        return frozenset(self.set) | frozenset(self.add)


def check_updates(
    entity: EntityDefinition[Any], values: Mapping[str, Any], *, remove: Collection[str], add: Mapping[str, Any]
) -> FieldUpdates:
    """Check updates against the entity's fields and validators. Fields can be removed if their default is None.

    Raises:
        InvalidKeyError: a key field would change.
        InvalidValueError: a field that is unknown, that the repository sets, or that is updated twice, or a value that
            the field does not accept.
    """
    single = _checked_names(entity, tuple(values), tuple(remove), tuple(add))
    checked = {
        name: entity.assignment.check(name, value) if name in single else value for name, value in values.items()
    }
    added = {name: _addition(entity, name, value) for name, value in add.items()} if add else {}
    return FieldUpdates({**checked, **dict.fromkeys(remove)}, added)


@lru_cache(maxsize=1024)
def _checked_names(
    entity: EntityDefinition[Any], values: tuple[str, ...], remove: tuple[str, ...], add: tuple[str, ...]
) -> frozenset[str]:
    """Check the names of updated fields; return those whose new values are checked one by one.

    Of the others, the whole decides; see `applied`.
    """
    named = (*values, *remove, *add)
    for name in named:
        if name in entity.key_fields:
            raise InvalidKeyError(f"{name} is part of the key, which cannot change", field=name)
        if name not in entity.model.model_fields or name in entity.server_fields:
            near = hint(name, set(entity.model.model_fields) - {*entity.server_fields, *entity.key_fields, name})
            raise InvalidValueError(f"{name} is not a field of {entity.name} that callers set{near}", field=name)
        if named.count(name) > 1:
            raise InvalidValueError(f"{name} is updated twice", field=name)
    for name in remove:
        if entity.model.model_fields[name].default is not None:
            raise InvalidValueError(f"{name} cannot be removed, because its default is not None", field=name)
    return frozenset(values) - entity.assignment.dependent


def _addition(entity: EntityDefinition[Any], name: str, value: Any) -> Any:
    """What is added to a field, as a type whose sum the field can hold."""
    if isinstance(value, set | frozenset):
        members = entity.assignment.check(name, value)
        if isinstance(members, set | frozenset):
            return members
        raise InvalidValueError(f"{name} is not a set, so no members can be added", field=name)
    kinds = plain_types(entity.model.model_fields[name].annotation) - {NoneType}
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not kinds or not kinds <= _NUMBERS:
        raise InvalidValueError(f"{name}: only numbers can be added to numbers, and sets to sets", field=name)
    if Decimal in kinds:
        return Decimal(str(value))
    if float in kinds:
        return float(value) if isinstance(value, Decimal) else value
    if isinstance(value, int):
        return value
    raise InvalidValueError(f"{name} holds whole numbers: add a whole number", field=name)


@lru_cache(maxsize=1024)
def start_of(entity: EntityDefinition[Any], name: str) -> float | Decimal | None:
    """Return what a field that is not stored counts as when something is added to it: its default, or 0.

    None says that DynamoDB cannot add to it, so the item is read and the sum is set: it has another set than an empty
    one as its default, or None may be stored in it, which is not a number.
    """
    field = entity.model.model_fields[name]
    factory, default = field.default_factory, None if field.is_required() else field.default
    if factory is not None:
        return 0 if factory in (set, frozenset) else None
    if (default is not None or field.is_required()) and entity.takes_none(name):
        return None
    if isinstance(default, set | frozenset):
        return None if default else 0
    return default or 0


@lru_cache(maxsize=1024)
def touched_indexes(entity: EntityDefinition[Any], fields: frozenset[str]) -> Sequence[IndexDefinition]:
    """Return the indexes whose keys an update of some fields may change, also by its own stamp."""
    written = fields | entity.updated_fields
    return [index for index in entity.indexes.values() if written & index.fields]


class Applied(NamedTuple):
    """What an update makes of an item that was read: all of its fields, and what of them is written."""

    fields: dict[str, Any]
    updates: FieldUpdates


def applied(entity: EntityDefinition[Any], current: Entity, updates: FieldUpdates) -> Applied:
    """Return what an update makes of an item that was read.

    Validators that see several fields may change further ones. Those are written too: readers would get them anyway,
    and the keys of indexes, filters and reservations go by what is stored.

    Raises:
        InvalidValueError: a sum or the whole is refused.
        InvalidKeyError: the key would change.
    """
    after = {**entity.values_of(current), **updates.set}
    for name, value in updates.add.items():
        if not isinstance(value, set | frozenset):
            # Refuses a sum that DynamoDB cannot hold; it adds exactly, floats too.
            encode_value(_EXACT.add(_exact(after[name] or 0), _exact(value)), path=name)
        after[name] = entity.assignment.check(name, added_to(after[name], value))
    summed = {name: after[name] for name in updates.add if start_of(entity, name) is None}
    added = {name: value for name, value in updates.add.items() if name not in summed}
    if not entity.assignment.checks_whole(updates.fields):
        return Applied(after, FieldUpdates({**updates.set, **summed}, added))
    whole, own = _as_a_whole(entity, current, after), entity.server_fields | entity.attachments.keys()
    changed = {n: whole[n] for n, value in after.items() if n not in own and whole[n] != value}
    for name in entity.key_fields:
        if name in changed:
            message = f"{name} is part of the key, which cannot change, and it would become {changed[name]!r}"
            raise InvalidKeyError(message, field=name)
    added = {name: value for name, value in added.items() if name not in changed}
    given = {name: whole[name] for name in (*updates.set, *summed)}
    return Applied({**after, **given, **changed}, FieldUpdates({**given, **changed}, added))


def _as_a_whole(entity: EntityDefinition[Any], current: Entity, after: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return fields as the validators of the whole make them; raises `InvalidValueError` if they refuse them."""
    check = entity.assignment.check_whole
    try:
        return check(after)
    except InvalidValueError:
        try:
            check(entity.values_of(current))
        except InvalidValueError:
            # It holds what only another version knows, so these validators cannot judge it.
            return after
        raise


def _exact(value: float | Decimal) -> Decimal:
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def added_to(before: Any, value: Any) -> Any:
    """Return what a field holds after something was added to it, or to None."""
    if isinstance(value, set | frozenset):
        return (before or set()) | value
    # DynamoDB adds exactly. Python would round to 28 digits.
    if isinstance(value, Decimal):
        return _EXACT.add(before or 0, value)
    if isinstance(value, float) or isinstance(before, float):
        return float(_EXACT.add(_exact(before or 0), _exact(value)))
    return (before or 0) + value


def update_expression(
    entity: EntityDefinition[Any],
    updates: FieldUpdates,
    *,
    system: Attributes,
    first: Attributes,
    gone: Collection[str],
    now: datetime,
    before: Wire,
) -> dict[str, Any]:
    """Return the parts of an UpdateItem request that carry the updates, and stamps of the time `now`.

    `system` has further attributes to set, `first` those to set if the item has none, and `gone` those to remove: the
    keys of indexes that the item leaves. Of objects that `before` has, only the members that differ are written, unless
    that takes more than an expression can hold.
    """
    emptied = [name for name, value in updates.set.items() if entity.left_out(name, value)]
    values = {name: value for name, value in updates.set.items() if name not in emptied}
    values.update(dict.fromkeys(entity.updated_fields, now))
    attributes = {**entity.encode(values), **system}
    members = PathUpdates("m") if before else None
    if members is not None:
        for name in before.keys() & attributes.keys():
            members.compare((name,), before[name], attributes.pop(name), deep=True, lists=entity.stored_lists.of(name))
    # A moved copy has `MovedFrom` until its next real write, which this is.
    removed = (MOVED_FROM, *gone, *entity.attributes_of(emptied))
    added = {name: encode_value(value, path=name) for name, value in updates.add.items()} if updates.add else {}
    terms = _terms(entity, tuple(attributes), tuple(first), removed, tuple(added))
    stored = dict(zip(terms.slots, (*attributes.values(), *first.values(), *added.values()), strict=True))
    if terms.starts:
        stored.update(terms.starts)
    if members is None:
        return {
            "UpdateExpression": terms.expression([], []),
            "ExpressionAttributeNames": terms.names,
            "ExpressionAttributeValues": stored,
        }
    expression = terms.expression(members.assigned(), members.removed)
    if len(expression) > MOST_CHARACTERS:
        return update_expression(entity, updates, system=system, first=first, gone=gone, now=now, before={})
    return {
        "UpdateExpression": expression,
        "ExpressionAttributeNames": {**terms.names, **members.names()},
        "ExpressionAttributeValues": stored | members.values(),
    }


class _Terms(NamedTuple):
    """What the names of attributes decide about an update expression.

    Attributes:
        names: the names by placeholder.
        slots: the placeholders of values, in the order of the names.
        starts: what attributes count as that do not exist and are added to, by placeholder.
        assigned, removed, added: the terms of each clause.
    """

    names: Mapping[str, str]
    slots: Sequence[str]
    starts: Wire
    assigned: str
    removed: str
    added: str

    def expression(self, assigned: Sequence[str], removed: Sequence[str]) -> str:
        """Return the expression, with further terms."""
        more = f" ADD {self.added}" if self.added else ""
        return f"SET {', '.join([self.assigned, *assigned])} REMOVE {', '.join([self.removed, *removed])}{more}"


@lru_cache(maxsize=1024)
def _terms(
    entity: EntityDefinition[Any],
    attributes: tuple[str, ...],
    first: tuple[str, ...],
    removed: tuple[str, ...],
    added: tuple[str, ...],
) -> _Terms:
    """Return the terms of an update of attributes, of which a program has few different ones."""
    names = {f"#{i}": name for i, name in enumerate([*attributes, *first, *removed, *added])}
    place = {name: alias for alias, name in names.items()}
    slots = {name: ":rev" if name == REV else f":{place[name][1:]}" for name in [*attributes, *first, *added]}
    terms = [f"{place[name]} = {slots[name]}" for name in attributes]
    terms += [f"{place[name]} = if_not_exists({place[name]}, {slots[name]})" for name in first]
    if PREV not in attributes:
        # The revision that is replaced is not known; an adopted item may have none.
        terms.append(f"{PREV} = if_not_exists({REV}, :rev)")
    starts = {name: start for name in added if (start := start_of(entity, name))}
    terms += [f"{place[n]} = if_not_exists({place[n]}, :s{slots[n][1:]}) + {slots[n]}" for n in starts]
    return _Terms(
        names,
        list(slots.values()),
        {f":s{slots[name][1:]}": encode_value(start, path=name) for name, start in starts.items()},
        ", ".join(terms),
        ", ".join(place[name] for name in removed),
        ", ".join(f"{place[name]} {slots[name]}" for name in added if name not in starts),
    )
