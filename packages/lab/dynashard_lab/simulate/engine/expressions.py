"""Expressions as functions of an item: compiled once for each text, and then called with the request's placeholders."""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from dynashard.transport.interface import Wire
from dynashard_lab.simulate.engine.parsing import COMPARISONS, Tree, condition_tree, paths, placeholders, update_clauses
from dynashard_lab.simulate.engine.refusal import invalid
from dynashard_lab.simulate.engine.values import (
    added,
    begins_with,
    contains,
    equal,
    ordering,
    size,
    subtracted,
    without,
)

Names = Mapping[str, str]
Values = Mapping[str, Wire]
Condition = Callable[[Wire, Names, Values], bool]
Operand = Callable[[Wire, Names, Values], Wire | None]

_KEPT: Final = 4096
_NONE: Final[Mapping[str, Any]] = {}
_ORDERED: Final = frozenset({"S", "N", "B"})
_TYPES: Final = {"begins_with": frozenset({"S", "B"}), **dict.fromkeys(("<", "<=", ">", ">=", "between"), _ORDERED)}
"""The types of values that a function or operator takes."""
_ADDED: Final = {"ADD": frozenset({"N", "SS", "NS", "BS"}), "DELETE": frozenset({"SS", "NS", "BS"})}
"""The types of values that a clause of an update takes."""
_EXPRESSIONS: Final = (
    "ConditionExpression", "UpdateExpression", "FilterExpression", "KeyConditionExpression", "ProjectionExpression",
)  # fmt: skip


_NO_PLACEHOLDERS: Final[frozenset[str]] = frozenset()


def names_of(request: Mapping[str, Any]) -> Names:
    """Return the names that a request gives to its placeholders."""
    names: Names = request.get("ExpressionAttributeNames", _NONE)
    return names


def values_of(request: Mapping[str, Any]) -> Values:
    """Return the values that a request gives to its placeholders."""
    values: Values = request.get("ExpressionAttributeValues", _NONE)
    return values


def check_placeholders(request: Mapping[str, Any]) -> None:
    """Refuse placeholders that no expression of a request uses, and used ones that it does not define."""
    names, values = names_of(request), values_of(request)
    used = _NO_PLACEHOLDERS.union(*[_placeholders(request[name]) for name in _EXPRESSIONS if name in request])
    if len(used) != len(names) + len(values) or not used.issuperset(names) or not used.issuperset(values):
        raise invalid(f"Placeholders are unused, or not defined: {sorted(used ^ {*names, *values})}")


@lru_cache(_KEPT)
def _placeholders(text: str) -> frozenset[str]:
    return placeholders(text)


def attribute(path: Tree, names: Names) -> str:
    """Return the name of the attribute at a path."""
    name: str = path[1]
    return names[name] if name[0] == "#" else name


@lru_cache(_KEPT)
def condition(text: str) -> Condition:
    """Return a condition or filter as a function that says whether it holds."""
    tree = condition_tree(text)
    holds, typed = _compiled(tree), tuple(_typed(tree))
    if not typed:
        return holds

    def checked(item: Wire, names: Names, values: Values) -> bool:
        for placeholder, kinds in typed:
            if kinds.isdisjoint(values[placeholder]):
                raise invalid(f"Incorrect operand type for a function or operator: {placeholder}")
        return holds(item, names, values)

    return checked


def _typed(tree: Tree) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the values that must be of certain types, whether they are compared or not."""
    kind, *parts = tree
    if kind in ("and", "or", "not"):
        for part in parts:
            yield from _typed(part)
    elif kind in _TYPES:
        for operand_ in parts:
            if operand_[0] == "value":
                yield operand_[1], _TYPES[kind]


@lru_cache(_KEPT)
def projection(text: str) -> tuple[Tree, ...]:
    """Return the attributes that a projection names."""
    return tuple(paths(text))


def projected(item: Wire, request: Mapping[str, Any]) -> Wire:
    """Return a copy of an item with the attributes that a request projects, all if it has no projection."""
    text = request.get("ProjectionExpression")
    if text is None:
        return dict(item)
    names = names_of(request)
    wanted = [attribute(path, names) for path in projection(text)]
    return {name: item[name] for name in wanted if name in item}


def _compiled(tree: Tree) -> Condition:
    kind = tree[0]
    if kind in ("and", "or", "not"):
        return _logical(kind, [_compiled(part) for part in tree[1:]])
    if kind in ("attribute_exists", "attribute_not_exists"):
        path, wanted = tree[1], kind == "attribute_exists"
        return lambda item, names, _values: (attribute(path, names) in item) is wanted
    if kind in ("begins_with", "contains"):
        return _both(tree[1], tree[2], begins_with if kind == "begins_with" else contains)
    if kind in COMPARISONS:
        return _comparison(kind, tree[1], tree[2])
    if kind == "between":
        low, high = _comparison(">=", tree[1], tree[2]), _comparison("<=", tree[1], tree[3])
        return lambda item, names, values: low(item, names, values) and high(item, names, values)
    members = [_comparison("=", tree[1], member) for member in tree[2]]
    return lambda item, names, values: any(member(item, names, values) for member in members)


def _logical(kind: str, parts: list[Condition]) -> Condition:
    if kind == "not":
        [inner] = parts
        return lambda item, names, values: not inner(item, names, values)
    left, right = parts
    if kind == "and":
        return lambda item, names, values: left(item, names, values) and right(item, names, values)
    return lambda item, names, values: left(item, names, values) or right(item, names, values)


def _both(left: Tree, right: Tree, holds: Callable[[Wire, Wire], bool]) -> Condition:
    """Return a condition on two operands, which does not hold if either is absent."""
    first, second = operand(left), operand(right)

    def check(item: Wire, names: Names, values: Values) -> bool:
        mine, theirs = first(item, names, values), second(item, names, values)
        return mine is not None and theirs is not None and holds(mine, theirs)

    return check


def _comparison(kind: str, left: Tree, right: Tree) -> Condition:
    if kind == "=":
        return _both(left, right, equal)
    if kind == "<>":
        same = _both(left, right, equal)
        return lambda item, names, values: not same(item, names, values)
    allowed = {"<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1)}[kind]
    return _both(left, right, lambda mine, theirs: ordering(mine, theirs) in allowed)


def operand(tree: Tree) -> Operand:
    """Return an operand as a function of an item; None if the attribute is absent."""
    kind = tree[0]
    if kind == "path":
        return lambda item, names, _values: item.get(attribute(tree, names))
    if kind == "value":
        return lambda _item, _names, values: values[tree[1]]
    if kind == "size":
        measured = operand(tree[1])

        def size_of(item: Wire, names: Names, values: Values) -> Wire | None:
            value = measured(item, names, values)
            return None if value is None else size(value)

        return size_of
    first, second = operand(tree[1]), operand(tree[2])
    if kind == "if_not_exists":
        return lambda item, names, values: first(item, names, values) or second(item, names, values)
    combine = added if kind == "+" else subtracted

    def result(item: Wire, names: Names, values: Values) -> Wire | None:
        mine, theirs = first(item, names, values), second(item, names, values)
        if mine is None or theirs is None:
            raise invalid("The provided expression refers to an attribute that does not exist in the item")
        return combine(mine, theirs)

    return result


@lru_cache(_KEPT)
def _update(text: str) -> dict[str, list[tuple[Tree, Operand | None]]]:
    """Return the actions of an update by clause, each with its attribute and its operand."""
    return {
        clause: [(tree, None) if clause == "REMOVE" else (tree[1], operand(tree[2])) for tree in actions]
        for clause, actions in update_clauses(text).items()
    }


def updated(item: Wire, request: Mapping[str, Any], key_names: tuple[str, ...]) -> Wire:
    """Return an item after the update of a request. Every operand is that of the item before it."""
    names, values = names_of(request), values_of(request)
    after, touched = dict(item), set(key_names)
    for clause, actions in _update(request["UpdateExpression"]).items():
        for path, of in actions:
            name = attribute(path, names)
            if name in touched:
                raise invalid(f"{name} is part of the key, or is updated twice")
            touched.add(name)
            value = of(item, names, values) if of else None
            if clause in _ADDED and value is not None and _ADDED[clause].isdisjoint(value):
                raise invalid(f"Incorrect operand type for {clause}: {name}")
            new = _changed(clause, item.get(name), value)
            if new is None:
                after.pop(name, None)
            else:
                after[name] = new
    return after


def _changed(clause: str, before: Wire | None, value: Wire | None) -> Wire | None:
    """Return the value of an attribute after an action; None if it is removed."""
    if value is None:
        if clause == "SET":
            raise invalid("The provided expression refers to an attribute that does not exist in the item")
        return None
    if clause == "SET":
        return value
    if clause == "ADD":
        return added(before, value)
    return None if before is None else without(before, value)
