"""Plans of reads: of single items, of Queries and of Scans."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import chain, islice
from typing import Any, Final

from dynashard.transport.interface import Wire
from dynashard_lab.plan.limits import READ_UNIT_BYTES
from dynashard_lab.simulate.engine.expressions import attribute, condition, names_of, projected, values_of
from dynashard_lab.simulate.engine.parsing import Tree, condition_tree
from dynashard_lab.simulate.engine.plans import METERING, PLACEHOLDERS, Plan, check_parameters
from dynashard_lab.simulate.engine.refusal import invalid
from dynashard_lab.simulate.engine.tables import Collection, Entry, KeyNames, Row, Table, scan_order
from dynashard_lab.simulate.model import TABLE, Access

_PAGE_BYTES: Final = 1 << 20
_ONE: Final = METERING | {"Key", "ConsistentRead", "ProjectionExpression", "ExpressionAttributeNames"}
_MANY: Final = METERING | PLACEHOLDERS | {
    "ConsistentRead", "ExclusiveStartKey", "FilterExpression", "IndexName", "Limit", "ProjectionExpression", "Select",
}  # fmt: skip
_QUERY: Final = _MANY | {"KeyConditionExpression", "ScanIndexForward"}
_SCAN: Final = _MANY - {"IndexName"} | {"Segment", "TotalSegments"}
_SELECTED: Final = (None, "COUNT", "ALL_ATTRIBUTES", "SPECIFIC_ATTRIBUTES")


def plan_get(table: Table, request: Mapping[str, Any], *, consistent: bool | None = None) -> Plan:
    """Return the plan of a GetItem, or of one key of a batch or transaction, whose consistency is given."""
    check_parameters(request, _ONE)
    key = table.exact_key(request["Key"])
    row = table.row(key)
    strong = request.get("ConsistentRead", False) if consistent is None else consistent
    access = Access(key.hash, key.sort, read_units(0 if row is None else row.size, consistent=strong), reading=True)
    return Plan(table, [access], {} if row is None else {"Item": projected(row.item, request)})


def read_units(size: int, *, consistent: bool) -> float:
    """Return the units of reading so many bytes at once."""
    return max(1, -(-size // READ_UNIT_BYTES)) * (1.0 if consistent else 0.5)


def plan_query(table: Table, request: Mapping[str, Any]) -> Plan:
    """Return the plan of a Query. Its units are consumed where it begins to read."""
    check_parameters(request, _QUERY)
    index = request.get("IndexName", TABLE)
    if index != TABLE and request.get("ConsistentRead"):
        raise invalid("Consistent reads are not supported on global secondary indexes")
    names = table.schema.key if index == TABLE else table.schema.indexes.get(index)
    if names is None:
        raise invalid(f"The table does not have the specified index: {index}")
    hash_key, tests = _key_condition(request, names)
    collection = table.collection(index, hash_key) or Collection()
    first, last = _range(collection, tests)
    forward = request.get("ScanIndexForward", True)
    start = request.get("ExclusiveStartKey")
    if start is not None:
        found = table.place(index, start)
        if found is None or found[0] != hash_key:
            raise invalid("The provided starting key is outside query boundaries based on provided conditions")
        if forward:
            first = max(first, bisect_right(collection.order, found[1]))
        else:
            last = min(last, bisect_left(collection.order, found[1]))
    order = collection.order
    entries = (
        islice(order, first, max(first, last)) if forward else map(order.__getitem__, range(last - 1, first - 1, -1))
    )
    page = _Page(request, table, index)
    page.read(collection.rows[entry] for entry in entries)
    at = order[first if forward else last - 1][0] if first < last else ""
    return page.plan(hash_key, at)


def plan_scan(table: Table, request: Mapping[str, Any]) -> Plan:
    """Return the plan of a Scan of the table or of a segment. Its units are consumed where it begins to read."""
    check_parameters(request, _SCAN)
    segments = request.get("TotalSegments", 1)
    if ("Segment" in request) != ("TotalSegments" in request) or not 0 <= request.get("Segment", 0) < segments:
        raise invalid("Segment and TotalSegments belong together")
    start = request.get("ExclusiveStartKey")
    after = None if start is None else table.exact_key(start)
    keys = list(table.segment(request.get("Segment", 0), segments))
    if after is not None:
        keys = keys[bisect_left(keys, scan_order(after.hash), key=scan_order) :]

    def rows() -> Iterator[Row]:
        for key in keys:
            collection = table.collections[TABLE][key]
            place = (after.sort, after.hash, after.sort) if after is not None and key == after.hash else None
            begin = 0 if place is None else bisect_right(collection.order, place)
            yield from (collection.rows[entry] for entry in islice(collection.order, begin, None))

    page = _Page(request, table, TABLE)
    page.read(rows())
    return page.plan(keys[0] if keys else "", "")


class _Page:
    """What one Query or Scan reads: until its limit, 1 MB, or the end."""

    def __init__(self, request: Mapping[str, Any], table: Table, index: str) -> None:
        self._request = request
        self._table = table
        self._index = index
        if request.get("Select") not in _SELECTED:
            raise invalid(f"This engine does not know Select={request['Select']}")
        self._limit = request.get("Limit")
        if self._limit is not None and self._limit < 1:
            raise invalid("Limit must be greater than or equal to 1")
        self._items: list[Wire] = []
        self._found = 0
        self._scanned = 0
        self._bytes = 0
        self._last: Wire | None = None

    def read(self, rows: Iterator[Row]) -> None:
        request, text = self._request, self._request.get("FilterExpression")
        passes, names, values = condition(text) if text else None, names_of(request), values_of(request)
        counted = request.get("Select") == "COUNT"
        for row in rows:
            self._scanned += 1
            self._bytes += row.size
            if passes is None or passes(row.item, names, values):
                self._found += 1
                if not counted:
                    self._items.append(projected(row.item, request))
            if self._scanned == self._limit or self._bytes >= _PAGE_BYTES:
                # DynamoDB does not look whether there is more.
                self._last = self._key(row.item)
                return

    def _key(self, item: Wire) -> Wire:
        schema = self._table.schema
        names = (*schema.key, *(() if self._index == TABLE else schema.indexes[self._index]))
        return {name: item[name] for name in names if name}

    def plan(self, hash_key: str, sort_key: str) -> Plan:
        strong = self._request.get("ConsistentRead", False)
        units = read_units(self._bytes, consistent=strong)
        access = Access(hash_key, sort_key, units, reading=True, target=self._index)
        answer: Wire = {"Count": self._found, "ScannedCount": self._scanned}
        if self._request.get("Select") != "COUNT":
            answer["Items"] = self._items
        if self._last is not None:
            answer["LastEvaluatedKey"] = self._last
        return Plan(self._table, [access], answer)


_Test = tuple[str, tuple[Tree, ...]]


@lru_cache(4096)
def _terms(text: str) -> tuple[tuple[str, Tree, tuple[Tree, ...]], ...]:
    """Return the tests of a key condition: their kinds, their attributes and their values."""

    def flat(tree: Tree) -> Iterator[Tree]:
        return chain(flat(tree[1]), flat(tree[2])) if tree[0] == "and" else iter((tree,))

    found = []
    for kind, path, *operands in flat(condition_tree(text)):
        known = kind in ("=", "<", "<=", ">", ">=", "between", "begins_with")
        if not known or path[0] != "path" or any(each[0] != "value" for each in operands):
            raise invalid(f"Invalid key condition, or one that this engine does not know: {text}")
        found.append((kind, path, tuple(operands)))
    return tuple(found)


def _key_condition(request: Mapping[str, Any], names: KeyNames) -> tuple[str, list[tuple[str, list[str]]]]:
    """Return the partition key that a Query names, and its test of the sort key, if it has one."""
    placeholders, values = names_of(request), values_of(request)
    hash_key: str | None = None
    tests: list[tuple[str, list[str]]] = []
    for kind, path, operands in _terms(request["KeyConditionExpression"]):
        texts = [values[each[1]].get("S") for each in operands]
        name = attribute(path, placeholders)
        if name == names.hash and kind == "=" and hash_key is None:
            hash_key = texts[0]
        elif name == names.sort and None not in texts and not tests:
            tests.append((kind, [text for text in texts if text is not None]))
        else:
            raise invalid("Query key condition not supported")
    if not hash_key:
        raise invalid("Query condition missed key schema element, or its value is empty")
    return hash_key, tests


def _range(collection: Collection, tests: list[tuple[str, list[str]]]) -> tuple[int, int]:
    """Return where the entries that pass the test of the sort key begin and end."""
    order = collection.order
    if not tests:
        return 0, len(order)
    [(kind, texts)] = tests
    if kind == "begins_with":
        length = len(texts[0])

        def cut(entry: Entry) -> str:
            return entry[0][:length]

        return bisect_left(order, texts[0], key=cut), bisect_right(order, texts[0], key=cut)
    first, last = 0, len(order)
    if kind in ("=", ">=", "between"):
        first = bisect_left(order, texts[0], key=_sort)
    elif kind == ">":
        first = bisect_right(order, texts[0], key=_sort)
    if kind in ("=", "<="):
        last = bisect_right(order, texts[0], key=_sort)
    elif kind == "<":
        last = bisect_left(order, texts[0], key=_sort)
    elif kind == "between":
        last = bisect_right(order, texts[1], key=_sort)
    return first, last


def _sort(entry: Entry) -> str:
    return entry[0]
