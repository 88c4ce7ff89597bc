"""Plans of writes: puts, updates and deletes of one item, and checks of a condition."""

import re
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from dynashard.codec import item_size
from dynashard.transport.interface import Wire
from dynashard_lab.plan.limits import WRITE_UNIT_BYTES
from dynashard_lab.simulate.engine.expressions import condition, names_of, updated, values_of
from dynashard_lab.simulate.engine.plans import METERING, PLACEHOLDERS, Plan, check_parameters
from dynashard_lab.simulate.engine.refusal import RefusedError, condition_failed, invalid
from dynashard_lab.simulate.engine.tables import Row, StoredKey, Table
from dynashard_lab.simulate.model import Access

LARGEST_ITEM: Final = 400 * 1024
CHECK: Final = "ConditionCheck"
_COMMON: Final = METERING | PLACEHOLDERS | {"ConditionExpression", "ReturnValuesOnConditionCheckFailure"}
_KNOWN: Final[Mapping[str, frozenset[str]]] = {
    "PutItem": _COMMON | {"Item", "ReturnValues"},
    "UpdateItem": _COMMON | {"Key", "UpdateExpression", "ReturnValues"},
    "DeleteItem": _COMMON | {"Key", "ReturnValues"},
    CHECK: _COMMON | {"Key"},
}
_RETURNED: Final[Mapping[str, frozenset[str]]] = {
    "PutItem": frozenset({"NONE", "ALL_OLD"}),
    "UpdateItem": frozenset({"NONE", "ALL_OLD", "ALL_NEW"}),
    "DeleteItem": frozenset({"NONE", "ALL_OLD"}),
    CHECK: frozenset({"NONE"}),
}
_PLAIN_NUMBER: Final = re.compile(r"0|-?[1-9][0-9]{0,37}(\.[0-9]{0,20}[1-9])?").fullmatch
_NESTED: Final = frozenset({"N", "NS", "L", "M"})


def plan_write(table: Table, operation: str, request: Mapping[str, Any]) -> Plan:
    """Return the plan of a write of one item; raises `RefusedError` if the request is wrong."""
    check_parameters(request, _KNOWN[operation])
    returned = request.get("ReturnValues", "NONE")
    if returned not in _RETURNED[operation]:
        raise invalid(f"{operation} does not return {returned}")
    key = table.key_of(request["Item"]) if operation == "PutItem" else table.exact_key(request["Key"])
    old = table.row(key)
    before: Wire = {} if old is None else old.item
    text = request.get("ConditionExpression")
    if text is not None and not condition(text)(before, names_of(request), values_of(request)):
        shown = request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD" and old is not None
        refused = condition_failed(dict(before) if shown else None)
        return Plan(table, [_own(key, old, old)], refused=refused, old=old, new=old)
    if operation == CHECK:
        return Plan(table, [_own(key, old, old)], old=old, new=old)
    new = _after(table, operation, request, before, key)
    answer: Wire = {}
    if returned == "ALL_OLD" and old is not None:
        answer["Attributes"] = dict(before)
    elif returned == "ALL_NEW" and new is not None:
        answer["Attributes"] = dict(new.item)
    return Plan(table, accesses_of(table, key, old, new), answer, old=old, new=new, writes=True)


def plan_batch_action(table: Table, action: Mapping[str, Any]) -> Plan:
    """Return the plan of one action of a BatchWriteItem."""
    ((kind, request),) = action.items()
    if kind == "PutRequest":
        return plan_write(table, "PutItem", request)
    if kind == "DeleteRequest":
        return plan_write(table, "DeleteItem", request)
    raise invalid(f"A batch has no action {kind}")


def accesses_of(table: Table, key: StoredKey, old: Row | None, new: Row | None) -> list[Access]:
    """Return what the table and each index consume if a row is replaced by another."""
    accesses = [_own(key, old, new)]
    for index in table.schema.indexes:
        before = None if old is None else table.place(index, old.item)
        after = None if new is None else table.place(index, new.item)
        if before is not None and before == after:
            if old is not None and new is not None and old.item != new.item:
                accesses.append(_access(index, before, max(old.size, new.size), new.size - old.size))
            continue
        if before is not None and old is not None:
            accesses.append(_access(index, before, old.size, -old.size))
        if after is not None and new is not None:
            accesses.append(_access(index, after, new.size, new.size))
    return accesses


def _own(key: StoredKey, old: Row | None, new: Row | None) -> Access:
    before, after = 0 if old is None else old.size, 0 if new is None else new.size
    return Access(key.hash, key.sort, _units(max(before, after)), size=float(after - before))


def _access(index: str, place: tuple[str, tuple[str, ...]], size: int, growth: int) -> Access:
    return Access(place[0], place[1][0], _units(size), target=index, size=float(growth))


def _units(size: int) -> float:
    return float(max(1, -(-size // WRITE_UNIT_BYTES)))


def _after(table: Table, operation: str, request: Mapping[str, Any], before: Wire, key: StoredKey) -> Row | None:
    if operation == "DeleteItem":
        return None
    if operation == "PutItem":
        item = _normal(request["Item"])
        what = "Item size has exceeded the maximum allowed size"
    else:
        names = table.schema.key
        own = {names.hash: {"S": key.hash}, **({names.sort: {"S": key.sort}} if names.sort else {})}
        if "UpdateExpression" in request:
            item = _normal(updated(before or own, request, tuple(own)))
        else:
            item = dict(before or own)
        what = "Item size to update has exceeded the maximum allowed size"
    size = item_size(item)
    if size > LARGEST_ITEM:
        raise invalid(what)
    for index in table.schema.indexes:
        place = table.place(index, item)
        if place is not None and not (place[0] and place[1][0]):
            raise invalid(f"One or more parameter values are not valid: a key of index {index} is an empty text")
    return Row(item, size)


def _normal(item: Mapping[str, Wire]) -> Wire:
    """Return a copy of an item whose numbers are written as DynamoDB writes them.

    Items share the texts that many of them have: of millions of items that is half of the memory.
    """
    after = dict(item)
    for name, value in item.items():
        if "S" in value:
            after[name] = _text(value["S"])
        elif not _NESTED.isdisjoint(value):
            after[name] = _normal_value(value)
    return after


@lru_cache(4096)
def _text(text: str) -> Wire:
    return {"S": text}


def _normal_value(value: Wire) -> Wire:
    ((kind, held),) = value.items()
    if kind == "N":
        return value if _PLAIN_NUMBER(held) else {"N": _number(held)}
    if kind == "NS":
        return {"NS": [_number(member) for member in held]}
    if kind == "L":
        return {"L": [_normal_value(member) for member in held]}
    return {"M": _normal(held)} if kind == "M" else value


def _number(text: str) -> str:
    try:
        number = Decimal(text).normalize()
    except ArithmeticError:
        raise RefusedError("ValidationException", f"The parameter cannot be converted to a number: {text}") from None
    return f"{number or Decimal(0):f}"
